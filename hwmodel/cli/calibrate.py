"""``hwmodel calibrate``: constants of a device from measured times."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hwmodel.measured.calibrate import Calibration
    from hwmodel.measured.errors import Summary
    from hwmodel.measured.fitting import Picked


def calibrate(
    device: Annotated[
        str, typer.Argument(metavar="DEVICE", help="Name or path of the device to start from.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT.yaml", help="Device file to write: DEVICE with fitted values.", show_default=False),
    ],
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FILE.csv", help="Your GEMM timings instead of the shipped ones.", show_default=False
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            metavar="NAME",
            help="What the rows call the device; needed where they name several.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="NAME", help="Use rows of this source only.", show_default=False),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME", help="Use rows in this format only, such as bf16.", show_default=False
        ),
    ] = None,
    free: Annotated[
        str | None,
        typer.Option(
            "--constants",
            metavar="PATHS",
            help="What to fit, parted by commas, such as sustained_fraction.bf16,launch_seconds; overhead_seconds and "
            "rate_fraction belong to whoever timed and are printed, not written."
            " [default: as many as the rows support]",
            show_default=False,
        ),
    ] = None,
    min_microseconds: options.MinMicroseconds = options.DEFAULT_MIN_MICROSECONDS,
    json: options.Json = None,
) -> None:
    """Fit a device's constants to measured GEMM times and write a device file that has them.

    Rows whose split is 'fit' or blank are fitted; any others judge the result.
    """
    from hwmodel.cli.outputs import STANDARD_OUTPUT, check_outputs, write_json
    from hwmodel.config.device import load_device
    from hwmodel.config.inputs import files_read
    from hwmodel.config.locate import data_folder
    from hwmodel.config.measured import FILE, load_sources
    from hwmodel.measured import calibrate as fits
    from hwmodel.measured import constants, fitting, rows
    from hwmodel.measured.validate import SUITES
    from hwmodel.report.files import write_text

    table = rows.GEMM
    path = data or rows.shipped(table)
    check_outputs({"OUT": out, "--json": json}, [*files_read("", [device], []), path, data_folder("measured") / FILE])
    base_name = _base(device, out)
    shortest = options.shortest_seconds(min_microseconds)
    base = load_device(device)
    picked = fitting.pick(
        SUITES[table.name],
        rows.read_rows(path, table),
        base,
        load_sources(),
        machine=machine,
        source=source,
        form=form,
        shortest_seconds=shortest,
    )
    names = options.names(free, "--constants") or fitting.usual(base, picked.fit)
    wanted = list(dict.fromkeys(constants.constant(name, base) for name in names))
    found = fits.calibrate(base, picked.fit, wanted)
    judged = {
        "held_out_before": fits.errors(base, picked.held_out) if picked.held_out else None,
        "held_out": fits.errors(found.device, picked.held_out, found.clock) if picked.held_out else None,
    }
    of = path.name if data else f"{path.name} ({source or 'all sources'})"
    write_text(out, fitting.device_file(base_name, found, of=of), option="OUT")
    if json is not None:
        write_json(json, _data(found, judged, picked))
    if json != STANDARD_OUTPUT:
        _print(found, judged, picked, out)


def _base(device: str, out: Path) -> str:
    """What the new file extends: a name, or the way to the file from the new one's folder."""
    from hwmodel.config.locate import is_path
    from hwmodel.errors import ParameterError

    if not is_path(device):
        return device
    try:
        device.encode()
    except UnicodeEncodeError:
        raise ParameterError(
            "DEVICE", f"must be a path in UTF-8 for a device file to name it, got {device!r}"
        ) from None
    # A link is kept as the user wrote it: what a file extends is found from the folder it was asked for in.
    base = Path(device).parent.resolve() / Path(device).name
    if out.is_symlink():
        return str(base)
    way = os.path.relpath(base, out.parent.resolve())
    return way if "/" in way else f"./{way}"


def _data(found: Calibration, judged: Mapping[str, Summary | None], picked: Picked) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "schema": 1,
        "fitted": [
            {
                "path": each.constant.path,
                "before": each.before,
                "after": each.after,
                "relative_standard_error": each.relative_error,
            }
            for each in found.fitted
        ],
        "not_determined": [
            {"path": each.constant.path, "value": each.value, "reason": each.reason} for each in found.kept
        ],
        "errors_percent": {
            "before": asdict(found.before),
            "after": asdict(found.after),
            **{name: None if each is None else asdict(each) for name, each in judged.items()},
        },
        "skipped": dict(picked.skipped),
    }


def _print(found: Calibration, judged: Mapping[str, Summary | None], picked: Picked, out: Path) -> None:
    from hwmodel.cli.show import console, heading, pairs, put
    from hwmodel.report.tables import list_table

    shown = console()
    if found.fitted:
        heading(shown, "Fitted constants")
        lines = [
            [each.constant.path, f"{each.before:.4g}", f"{each.after:.4g}", f"{100 * each.relative_error:.1f}"]
            for each in found.fitted
        ]
        put(shown, list_table(["constant", "before", "after", "uncertain by %"], lines, left=("constant",)))
    if found.kept:
        heading(shown, "Not determined by these rows: kept as they were")
        put(
            shown,
            list_table(
                ["constant", "value", "because"],
                [[each.constant.path, f"{each.value:.4g}", each.reason] for each in found.kept],
                left=("constant", "because"),
            ),
        )
    heading(shown, "Errors of time in percent")
    named = [("fitted rows, before", found.before), ("fitted rows, after", found.after)]
    for name, each in zip(("rows kept aside, before", "rows kept aside, after"), judged.values(), strict=True):
        if each is not None:
            named.append((name, each))
    errors = [
        [name, f"{each.rows:,}", *(f"{x:.1f}" for x in (each.mean, each.median, each.p90)), f"{each.bias:+.1f}"]
        for name, each in named
    ]
    put(shown, list_table(["", "rows", "mean", "median", "p90", "bias"], errors, left=("",)))
    if picked.skipped:
        heading(shown, f"{sum(picked.skipped.values()):,} rows not used")
        pairs(shown, [(f"{count:,}", reason) for reason, count in picked.skipped.items()])
    if found.clock:
        heading(shown, "Of whoever timed, not of the device (not written)")
        pairs(shown, [(name, f"{number:.4g}") for name, number in found.clock.items()])
    shown.print()
    same = "" if any(each.constant.of_device for each in found.fitted) else ": the device as it was"
    shown.print(f"wrote {out}{same}", markup=False, highlight=False, soft_wrap=True)
