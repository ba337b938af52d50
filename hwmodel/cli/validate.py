"""``hwmodel validate``: predictions beside what others measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli import options

if TYPE_CHECKING:
    from rich.console import Console

    from hwmodel.measured.validate import Validation


def validate(
    suite: Annotated[
        str | None,
        typer.Argument(metavar="[gemm]", help="Which rows; found from the columns of --data.", show_default=False),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE.csv", help="Your rows instead of the shipped ones.", show_default=False),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="NAME|FILE",
            help="Predict every row with this device, whatever device it names.",
            show_default=False,
        ),
    ] = None,
    min_microseconds: options.MinMicroseconds = options.DEFAULT_MIN_MICROSECONDS,
    json: options.Json = None,
) -> None:
    """Compare predictions with measured rows: errors by source, device, format and size."""
    from hwmodel.cli.outputs import STANDARD_OUTPUT, check_outputs, write_json
    from hwmodel.config.measured import load_sources
    from hwmodel.errors import ParameterError, suggestion
    from hwmodel.measured import rows
    from hwmodel.measured.machines import Bench
    from hwmodel.measured.validate import SUITES
    from hwmodel.measured.validate import validate as run

    check_outputs({"--json": json}, [data] if data else [])
    shortest = options.shortest_seconds(min_microseconds)
    if suite is not None and suite not in SUITES:
        raise ParameterError("SUITE", f"unknown suite {suite!r}{suggestion(suite, SUITES)}")
    if suite is None:
        found = [table.name for table in rows.table_of(data)] if data else [*SUITES]
        if not found:
            raise ParameterError("--data", f"{str(data)!r} has the columns of no suite; known: {', '.join(SUITES)}")
    else:
        found = [suite]
    bench, sources = Bench(), load_sources()
    if device is not None:
        from hwmodel.config.device import load_device

        bench = Bench({device: load_device(device)})
    done = []
    for name in found:
        table = rows.TABLES[name]
        lines = rows.read_rows(data or rows.shipped(table), table)
        done.append(run(SUITES[name], lines, bench, sources, device=device, shortest_seconds=shortest))
    if json is not None:
        write_json(json, {"suites": [each.data() for each in done]})
    if json == STANDARD_OUTPUT:
        return
    from hwmodel.cli.show import console

    out = console()
    for each in done:
        _print(out, each)


def _print(out: Console, done: Validation) -> None:
    from hwmodel.cli.show import heading, pairs, put
    from hwmodel.report.tables import list_table

    titles = {
        "fit": "judged",
        "own": "of sources that are not the product's",
        "transfer": "transfer: never fitted",
        "headline": "upper envelopes and the like: not judged",
    }
    groups = done.by(lambda each: each.group)
    for role, title in titles.items():
        lines = [
            [
                *name[1:],
                f"{each.rows:,}",
                *(f"{value:.1f}" for value in (each.mean, each.median, each.p90)),
                f"{each.bias:+.1f}",
            ]
            for name, each in groups.items()
            if name[0] == role
        ]
        if lines:
            heading(out, f"{done.suite}, {title}: errors of time in percent")
            header = ["source", "device", "format", "split", "rows", "mean", "median", "p90", "bias"]
            put(out, list_table(header, lines, left=("source", "device", "format", "split")))
    sizes = done.by(lambda each: (*each.group, each.size))
    lines = [
        [
            name[1],
            name[2],
            name[3],
            name[5],
            f"{each.rows:,}",
            f"{each.mean:.1f}",
            f"{each.median:.1f}",
            f"{each.bias:+.1f}",
        ]
        for name, each in sizes.items()
        if name[0] in ("fit", "own") and name[4] != "fit"
    ]
    if lines:
        heading(out, "By measured time, all rows whose split is not 'fit'")
        header = ["source", "device", "format", "time", "rows", "mean", "median", "bias"]
        put(out, list_table(header, lines, left=("source", "device", "format", "time")))
    worst = [
        [
            each.row.device,
            each.case.format,
            each.case.shape,
            f"{1e6 * each.measured_seconds:,.1f}",
            f"{1e6 * each.predicted_seconds:,.1f}",
            f"{each.signed:+.0f}",
        ]
        for each in done.worst()
    ]
    if worst:
        heading(out, "Furthest off")
        put(
            out,
            list_table(
                ["device", "format", "shape", "measured us", "predicted us", "error %"],
                worst,
                left=("device", "format", "shape"),
            ),
        )
    if not done.compared:
        heading(
            out, f"{done.suite}: nothing could be compared; --device predicts all rows with a device of your choice"
        )
    if done.skipped:
        heading(out, f"{sum(done.skipped.values()):,} rows not compared")
        pairs(out, [(f"{count:,}", reason) for reason, count in done.skipped.items()])
