"""Rows of a sweep as CSV, JSON and a table."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from hwmodel.report import wording
from hwmodel.report.files import write_text
from hwmodel.report.tables import folded_table
from hwmodel.sweeps.run import DONE, REFUSED, SPELT, Row, is_whole
from hwmodel.units import PICOSECONDS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.table import Table

    from hwmodel.sweeps.points import Grid

SCHEMA = 1
_AFTER = ("step_seconds", "speedup", "status", "reason", "same_as")
_SHORTENED = 60


def record(row: Row) -> dict[str, object]:
    """A row as plain values, columns in their order."""
    head: dict[str, object] = {"device": row.device, "recipe": row.recipe}
    return head | dict(row.values) | {name: getattr(row, name) for name in _AFTER}


def sweep_data(workload: str, grid: Grid, rows: Sequence[Row]) -> dict[str, object]:
    """The keys of a sweep's JSON."""
    return {
        "schema": SCHEMA,
        "workload": workload,
        "complete": len(rows) == len(grid),
        "crossovers": list(crossovers(grid, rows)),
        "rows": [record(row) for row in rows],
    }


def csv_text(rows: Sequence[Row]) -> str:
    """CSV with a line of column names; an empty cell where there is no value."""
    records = [record(row) for row in rows]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if records:
        writer.writerow(records[0])
        writer.writerows([_cell(value) for value in entry.values()] for entry in records)
    return out.getvalue()


def write_rows(path: Path, workload: str, grid: Grid, rows: Sequence[Row], *, option: str = "--out") -> None:
    """Write rows to a ``.csv`` file, or to a ``.json`` file, whole or not at all."""
    if path.name.lower().endswith(".csv"):
        text = csv_text(rows)
    else:
        text = json.dumps(sweep_data(workload, grid, rows), indent=2, allow_nan=False) + "\n"
    write_text(path, text, option=option)


def table(rows: Sequence[Row], grid: Grid, *, width: int = 80) -> Table:
    """Recipe, what was swept, step and speedup; texts in several lines where that saves room that is missing."""
    records = [record(row) for row in rows]
    swept = [SPELT.get(axis.path, axis.path) for axis in grid.axes if len(axis.values) > 1]
    shown = list(dict.fromkeys([*(("device",) if len(grid.devices) > 1 else ()), "recipe", *swept]))
    tails = _tails([str(device) for device in grid.devices])
    for entry in records:
        entry["device"] = tails.get(str(entry["device"]), entry["device"])
    lines = [
        [str(place), *(_text(entry[name]) for name in shown), *_outcome(row)]
        for place, (row, entry) in enumerate(zip(rows, records, strict=True))
    ]
    names = [_short(name, shown) for name in shown]
    columns = ["row", *names, "step ms", "speedup", "status"]
    return folded_table(columns, lines, left=(*names, "status"), whole=("row", "step ms", "speedup"), width=width)


def refusals(rows: Sequence[Row]) -> list[str]:
    """Why rows were refused, each reason once with the rows it is about."""
    about: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        if row.status == REFUSED:
            about.setdefault(row.reason, []).append(place)
    return [f"row {_ranges(places)}: {reason}" for reason, places in about.items()]


def crossovers(grid: Grid, rows: Sequence[Row]) -> Iterator[dict[str, object]]:
    """Where a recipe begins or ceases to beat BF16 along an axis of whole numbers, everything else equal."""
    points = list(grid)[: len(rows)]
    for number, axis in enumerate(grid.axes):
        if len(axis.values) < 2 or not all(is_whole(value) for value in axis.values):
            continue
        lines: dict[object, list[tuple[str, Row]]] = {}
        for point, row in zip(points, rows, strict=True):
            others = tuple(pair for place, pair in enumerate(point.values) if place != number)
            lines.setdefault((point.device, point.recipe, others), []).append((point.values[number][1], row))
        for key, line in lines.items():
            done = [(value, row) for value, row in line if row.status == DONE and row.speedup is not None]
            for (before, low), (after, high) in itertools.pairwise(done):
                assert low.speedup is not None
                assert high.speedup is not None
                if (low.speedup < 1) != (high.speedup < 1):
                    others = key[2] if isinstance(key, tuple) else ()
                    yield {
                        "path": axis.path,
                        "device": low.device,
                        "recipe": low.recipe,
                        "others": dict(others),
                        "slower_than_bf16": before if low.speedup < 1 else after,
                        "not_slower": after if low.speedup < 1 else before,
                    }


def crossover_text(found: Mapping[str, object]) -> str:
    """A crossover as a sentence."""
    others = found["others"]
    assert isinstance(others, dict)
    also = "".join(f", {path}={value}" for path, value in others.items())
    return (
        f"{found['recipe']} on {found['device']}{also}: slower than BF16 at {found['path']}="
        f"{found['slower_than_bf16']}, not at {found['not_slower']}"
    )


def _outcome(row: Row) -> list[str]:
    if row.step_seconds is None:
        return ["-", "-", row.status]
    status = row.status if row.same_as is None else f"as {row.same_as}"
    return [wording.milliseconds(round(row.step_seconds * PICOSECONDS_PER_SECOND)), wording.times(row.speedup), status]


def _short(name: str, shown: Sequence[str]) -> str:
    """The last part of a path where that is enough to tell columns apart."""
    last = name.rpartition(".")[2]
    return last if sum(other.rpartition(".")[2] == last for other in shown) == 1 else name


def _tails(devices: Sequence[str]) -> dict[str, str]:
    """Each device by its name, a path by the shortest end that no other has, without the file's ending."""
    parts = {device: _segments(device) for device in devices}
    found = {}
    for device, own in parts.items():
        others = [part for other, part in parts.items() if other != device]
        lengths = range(1, len(own) + 1)
        unique = (length for length in lengths if all(part[-length:] != own[-length:] for part in others))
        found[device] = device if len(own) == 1 else "/".join(own[-next(unique, len(own)) :])
    return found


def _segments(device: str) -> tuple[str, ...]:
    """Folders and the file's name without its ending; the name alone where the device is no path."""
    path = PurePath(device)
    if path.suffix not in {".yaml", ".yml"}:
        return (device,)
    return PurePath(Path.cwd(), path.with_suffix("")).parts


def _ranges(places: Sequence[int]) -> str:
    """``0-3, 7``."""
    found: list[list[int]] = []
    for place in places:
        if found and place == found[-1][-1] + 1:
            found[-1][1:] = [place]
        else:
            found.append([place])
    return ", ".join("-".join(str(place) for place in dict.fromkeys(part)) for part in found)


def _cell(value: object) -> object:
    """A value in CSV: true and false as YAML writes them, floats with every digit."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else value


def _text(value: object) -> str:
    text = "-" if value is None else str(_cell(value))
    return text if len(text) <= _SHORTENED else f"{text[: _SHORTENED - 1]}…"
