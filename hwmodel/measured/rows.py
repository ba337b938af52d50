"""Measured rows: a CSV file, checked whole."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hwmodel.config.locate import data_folder
from hwmodel.errors import ConfigError, ParameterError, Problem, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MICROSECOND: Final = 1e-6
LARGEST_COUNT: Final = 2**40
"""No dimension of a measured kernel comes near it."""
SHORTEST_MICROSECONDS: Final = 1e-3
"""About two cycles of a core."""
LONGEST_MICROSECONDS: Final = 1e12
"""Eleven days."""
_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Table:
    """The columns a suite's file has."""

    name: str
    text: tuple[str, ...]
    counts: tuple[str, ...]
    """Whole numbers >= 1."""
    times: tuple[str, ...]
    """Microseconds > 0, or nothing."""
    optional: tuple[str, ...] = ()
    """Columns that may be missing altogether; others that are not named are ignored."""


GEMM = Table(
    "gemm",
    text=("source", "device", "dtype_a", "dtype_b", "dtype_out", "layout", "kind", "split"),
    counts=("m", "n", "k", "batch"),
    times=("time_us",),
    optional=("dtype_out", "layout", "kind", "split", "batch"),
)
TABLES: Final[Mapping[str, Table]] = {table.name: table for table in (GEMM,)}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a file."""

    line: int
    text: Mapping[str, str]
    counts: Mapping[str, int]
    seconds: Mapping[str, float]
    """By column of a time; those that are blank are not there."""

    @property
    def source(self) -> str:
        """Who measured."""
        return self.text["source"]

    @property
    def device(self) -> str:
        """What the source calls the device."""
        return self.text["device"]

    @property
    def split(self) -> str:
        """``fit``, ``validate`` or whatever the file calls it."""
        return self.text.get("split", "")


def shipped(table: Table) -> Path:
    """The file that comes with the product."""
    return data_folder("measured") / f"{table.name}.csv"


def read_rows(path: Path, table: Table) -> tuple[Row, ...]:
    """All rows of ``path``.

    Raises:
        ConfigError: every mistake, with file, line, column, rule and value.
    """
    source = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is not text in UTF-8"
        raise ConfigError(source, (Problem("", None, f"cannot be read: {reason}"),)) from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    problems: list[Problem] = []
    rows = []
    try:
        header = next(reader, [])
        _check_header(source, header, table)
        for cells in reader:
            if not any(cells):
                continue
            row = _row(reader.line_num, header, cells, table, problems)
            if row is not None:
                rows.append(row)
    except csv.Error as error:
        problems.append(Problem("", reader.line_num, f"is not CSV: {error}"))
    if problems:
        shown = problems[:_MOST_PROBLEMS]
        if len(problems) > len(shown):
            shown.append(Problem("", None, f"and {len(problems) - len(shown)} more mistakes"))
        raise ConfigError(source, tuple(shown))
    if not rows:
        raise ConfigError(source, (Problem("", None, "has no rows below its header"),))
    return tuple(rows)


def _check_header(source: str, header: list[str], table: Table) -> None:
    wanted = [*table.text, *table.counts, *table.times]
    missing = [name for name in wanted if name not in header and name not in table.optional]
    if not missing:
        doubled = sorted({name for name in wanted if header.count(name) > 1})
        if doubled:
            raise ConfigError(source, (Problem("", 1, f"columns stand twice: {', '.join(doubled)}"),))
        return
    if not header:
        raise ConfigError(source, (Problem("", None, "is empty, must have a header and rows"),))
    raise ConfigError(
        source,
        tuple(Problem(name, 1, f"column is missing{suggestion(name, filter(None, header))}") for name in missing),
    )


def _row(line: int, header: list[str], cells: list[str], table: Table, problems: list[Problem]) -> Row | None:
    if len(cells) != len(header):
        problems.append(Problem("", line, f"must have {len(header)} columns, got {len(cells)}"))
        return None
    values = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
    before = len(problems)
    counts: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for name in table.counts:
        try:
            counts[name] = _count(values.get(name, ""), 1 if name in table.optional else None)
        except ParameterError as error:
            problems.append(Problem(name, line, error.message))
    for name in table.times:
        cell = values.get(name, "")
        if not cell:
            continue
        try:
            seconds[name] = _microseconds(cell) * MICROSECOND
        except ParameterError as error:
            problems.append(Problem(name, line, error.message))
    problems += (Problem(name, line, "must not be empty") for name in ("source", "device") if not values[name])
    if len(problems) > before:
        return None
    return Row(line, {name: values.get(name, "") for name in table.text}, counts, seconds)


def _count(cell: str, default: int | None) -> int:
    if not cell and default is not None:
        return default
    try:
        number = int(cell)
    except ValueError:
        number = 0
    if not 1 <= number <= LARGEST_COUNT:
        raise ParameterError("", f"must be a whole number from 1 to {LARGEST_COUNT}, got {cell!r}")
    return number


def _microseconds(cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not SHORTEST_MICROSECONDS <= number <= LONGEST_MICROSECONDS:
        raise ParameterError(
            "",
            f"must be a number of microseconds from {SHORTEST_MICROSECONDS:g} to {LONGEST_MICROSECONDS:g}, or blank, "
            f"got {cell!r}",
        )
    return number


def table_of(path: Path) -> Iterator[Table]:
    """The tables whose columns ``path`` has."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file), [])
    except (OSError, ValueError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "is not CSV in UTF-8"
        raise ConfigError(str(path), (Problem("", None, f"cannot be read: {reason}"),)) from None
    for table in TABLES.values():
        needed = {*table.text, *table.counts, *table.times} - {*table.optional}
        if needed <= {*header}:
            yield table
