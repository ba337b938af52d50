"""``hwmodel diff``: what differs between two results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hwmodel.cli import options


def diff(
    before: Annotated[Path, typer.Argument(metavar="A.json", help="A result written with --json.", show_default=False)],
    after: Annotated[Path, typer.Argument(metavar="B.json", help="The one to compare it with.", show_default=False)],
    json: options.Json = None,
) -> None:
    """Compare two results key by key."""
    from hwmodel.cli.outputs import STANDARD_OUTPUT, check_outputs, write_json
    from hwmodel.report.diff import MISSING, compare, read_result

    check_outputs({"--json": json}, [before, after])
    changes = compare(read_result(before), read_result(after))
    if json is not None:
        rows: list[dict[str, object]] = []
        for change in changes:
            status = "added" if change.before is MISSING else "removed" if change.after is MISSING else "changed"
            row: dict[str, object] = {"path": change.path, "status": status}
            row |= {} if change.before is MISSING else {"before": change.before}
            row |= {} if change.after is MISSING else {"after": change.after}
            rows.append(row | ({} if change.delta is None else {"delta": change.delta}))
        write_json(json, {"changes": rows})
    if json == STANDARD_OUTPUT:
        return
    from hwmodel.cli.show import console
    from hwmodel.report.tables import change_table

    if changes:
        console().print(change_table(changes))
    else:
        typer.echo("no differences")
