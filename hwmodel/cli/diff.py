"""``hwmodel diff``: what differs between two results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hwmodel.cli import options
from hwmodel.cli.guard import printable

_KERNELS = "slowest_kernels"
"""Key whose entries are other kernels as soon as their order changes: counted rather than listed."""


def diff(
    before: Annotated[Path, typer.Argument(metavar="A.json", help="A result written with --json.", show_default=False)],
    after: Annotated[Path, typer.Argument(metavar="B.json", help="The one to compare it with.", show_default=False)],
    json: options.Json = None,
) -> None:
    """Compare two results key by key."""
    from hwmodel.cli.outputs import STANDARD_OUTPUT, check_outputs, write_json
    from hwmodel.report.diff import MISSING, check_kinds, compare, read_result

    check_outputs({"--json": json}, [before, after])
    results = read_result(before), read_result(after)
    check_kinds(before, results[0], after, results[1])
    changes = compare(*results)
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
    from hwmodel.cli.show import console, put
    from hwmodel.report.tables import change_table

    def shown(value: object) -> object:
        return printable(value) if isinstance(value, str) else value

    kernels = [change for change in changes if _KERNELS in change.path]
    others = [change for change in changes if _KERNELS not in change.path]
    out = console()
    if others:
        lines = [
            replace(change, path=printable(change.path_text), before=shown(change.before), after=shown(change.after))
            for change in others
        ]
        put(out, change_table(lines, width=out.width))
    if kernels:
        typer.echo(f"{_KERNELS}: {len(kernels)} difference{'s' if len(kernels) > 1 else ''}, see --json")
    if not changes:
        typer.echo("no differences")
