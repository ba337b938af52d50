"""``hwmodel sweep``: every combination of devices, recipes and values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli import options
from hwmodel.cli.guard import BAD_INPUT, note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hwmodel.sweeps import Row, Sweep


def sweep(
    workload: options.Workload,
    *,
    device: Annotated[
        str, typer.Option("--device", metavar="D[,D...]", help="Devices: names or paths.", show_default=False)
    ],
    recipes: Annotated[
        str | None,
        typer.Option(
            "--recipes",
            metavar="A,B,...",
            help=f"Presets; own, or none given: the workload's own recipe. A preset {options.PRESET}.",
            show_default=False,
        ),
    ] = None,
    granularity: Annotated[
        str | None,
        typer.Option("--granularity", metavar="G,...", help="Granularities over the presets'.", show_default=False),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option("--interval", metavar="N,...", help="Amax intervals in steps; none: never.", show_default=False),
    ] = None,
    sets: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="PATH=V,V,...",
            help="Values of one path, such as batch.sequence=4096,8192; a value with commas is written [a,b]. "
            "May be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE.csv|.json", help="Write the rows to a file.", show_default=False),
    ] = None,
) -> None:
    """Simulate every combination of devices, recipes and values.

    Identical combinations are simulated once. One that cannot exist gives a row with the reason. Ctrl-C keeps the rows
    done so far.
    """
    from hwmodel.cli.outputs import check_outputs
    from hwmodel.cli.progress import progress
    from hwmodel.config.inputs import files_read
    from hwmodel.sweeps import make_grid, prepare

    grid = make_grid(workload, device, recipes=recipes, granularity=granularity, interval=interval, sets=sets)
    check_outputs({"--out": out}, files_read(workload, grid.devices, grid.naming_edits()))
    rows: list[Row] = []
    with progress() as say:
        say("checking every point")
        checked = prepare(grid)
        try:
            for row in checked.rows(say):
                rows.append(row)  # noqa: PERF402 - what is there when Ctrl-C comes is kept
        finally:
            if out is not None and rows:
                _write(out, checked, rows)
    _print(checked, rows)
    if all(row.step_seconds is None for row in rows):
        raise typer.Exit(BAD_INPUT)


def _write(out: Path, checked: Sweep, rows: Sequence[Row]) -> None:
    from hwmodel.sweeps.output import write_rows

    write_rows(out, checked.name, checked.grid, rows)
    if len(rows) < len(checked.grid):
        note(f"stopped after {len(rows)} of {len(checked.grid)} rows; these are in {out}")


def _print(checked: Sweep, rows: Sequence[Row]) -> None:
    from hwmodel.cli import show
    from hwmodel.sweeps import output

    screen = show.console()
    show.put(screen, output.table(rows, checked.grid, width=screen.width))
    found = [output.crossover_text(entry) for entry in output.crossovers(checked.grid, rows)]
    show.bullets(screen, "Where 8 bits begin to pay", found)
    show.bullets(screen, "Refused", output.refusals(rows))
