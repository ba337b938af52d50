"""Tables for the terminal. Every value has its unit; names are text, never markup."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from hwmodel.report import wording
from hwmodel.report.breakdown import KEYS

if TYPE_CHECKING:
    from hwmodel.report.diff import Change
    from hwmodel.report.metrics import KernelTotal

_UNLIMITED = 100_000
_LONGEST_WORD = 60
_SPARED = 10
"""Characters that the first column keeps over the others before it is folded."""
_NUMBER = re.compile(r"[-+]?[0-9][0-9,]*(\.[0-9]*)?(e[-+]?[0-9]+)?( ?[%x])?")
_PIECE = re.compile(r"[^ _./,=-]*[ _./,=-]*")


@dataclass(frozen=True, slots=True)
class RecipeRow:
    """One recipe's result as the tables show it."""

    recipe: str
    step_picoseconds: int
    speedup: float | None
    breakdown: Mapping[str, int]
    """Picoseconds by key; their sum is the step."""


def comparison_tables(rows: Sequence[RecipeRow], *, width: int = 80) -> list[Table]:
    """Recipe, step, speedup over BF16, then milliseconds by key (keys that are zero everywhere are left out).

    A recipe is a row where that fits into ``width`` characters, else a column, of as many tables as it takes.
    """
    keys = [key for key in KEYS if any(row.breakdown.get(key, 0) for row in rows)]
    names = ["recipe", "step ms", "speedup", *(f"{key} ms" for key in keys)]
    cells = [
        [
            row.recipe,
            wording.milliseconds(row.step_picoseconds),
            wording.times(row.speedup),
            *(wording.milliseconds(row.breakdown.get(key, 0)) for key in keys),
        ]
        for row in rows
    ]
    wide = list_table(names, cells)
    if table_width(wide) <= width:
        return [wide]
    groups: list[list[list[str]]] = []
    for line in cells:
        if groups and table_width(_turned(names, [*groups[-1], line])) <= width:
            groups[-1].append(line)
        else:
            groups.append([line])
    return [_turned(names, group) for group in groups]


def _turned(names: Sequence[str], lines: Sequence[Sequence[str]]) -> Table:
    """A line as a column."""
    turned = [[name, *(line[place] for line in lines)] for place, name in enumerate(names)]
    return list_table(turned[0], turned[1:])


def difference(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Picoseconds that each key adds (or, negative, saves); the sum is the difference of the steps exactly."""
    return {key: after.get(key, 0) - before.get(key, 0) for key in KEYS}


def difference_table(before: RecipeRow, after: RecipeRow) -> Table:
    """Where two recipes differ, by key, to the picosecond: the column of differences adds up to its last line."""
    changes = difference(before.breakdown, after.breakdown)
    lines = [
        [
            f"{key} ms",
            wording.exact_milliseconds(before.breakdown.get(key, 0)),
            wording.exact_milliseconds(after.breakdown.get(key, 0)),
            _signed(change),
        ]
        for key, change in changes.items()
        if change or before.breakdown.get(key, 0)
    ]
    steps = before.step_picoseconds, after.step_picoseconds
    total = ["step ms", *(wording.exact_milliseconds(step) for step in steps), _signed(steps[1] - steps[0])]
    table = list_table(["", before.recipe, after.recipe, "difference"], lines)
    table.add_section()
    table.add_row(*(Text(cell, style="bold") for cell in total))
    return table


def slowest_table(kernels: Sequence[KernelTotal]) -> Table:
    """Kernels by the time they take in all."""
    return list_table(
        ["kernel", "kind", "shape", "calls", "total ms", "% of step", "bound"],
        [
            [
                kernel.name,
                kernel.kind,
                kernel.shape or "-",
                wording.count(kernel.calls),
                wording.milliseconds(kernel.total_picoseconds),
                f"{100 * kernel.share_fraction:.1f} %",
                kernel.bound or "-",
            ]
            for kernel in kernels
        ],
        left=("kernel", "kind", "shape", "bound"),
    )


def change_table(changes: Sequence[Change], names: tuple[str, str] = ("before", "after"), *, width: int = 80) -> Table:
    """What `diff.compare` found."""
    return folded_table(
        ["key", *names, "difference"],
        [[change.path, change.before_text, change.after_text, change.delta_text] for change in changes],
        left=("key",),
        whole=("difference",),
        width=width,
    )


def folded_table(
    columns: Sequence[str],
    lines: Sequence[Sequence[str]],
    *,
    left: Sequence[str] = (),
    whole: Sequence[str] = (),
    width: int = 80,
) -> Table:
    """A plain table of ``width`` characters: texts are folded after spaces and separators, numbers never.

    Cells of the columns in ``whole`` are not folded. A table that cannot be folded enough stays wider than asked.
    """
    rows = [list(columns), *(list(line) for line in lines)]
    texts = [[row[place] for row in rows] for place in range(len(columns))]
    folded = [list(column) for column in texts]
    open_places = list(range(len(columns)))
    while open_places and _plain_width(folded) > width:
        widest = max(open_places, key=lambda place: _widest_line(folded[place]) - (0 if place else _SPARED))
        limit = _widest_line(folded[widest]) - 1
        whole_cells = columns[widest] in whole
        column = [cell if number and whole_cells else _folded(cell, limit) for number, cell in enumerate(texts[widest])]
        if _widest_line(column) > limit:
            open_places.remove(widest)
        else:
            folded[widest] = column
    turned = list(zip(*folded, strict=True))
    flags = [name in left for name in columns]
    return list_table(turned[0], turned[1:], left=[name for name, flag in zip(turned[0], flags, strict=True) if flag])


def list_table(columns: Sequence[str], lines: Sequence[Sequence[str]], *, left: Sequence[str] = ()) -> Table:
    """A plain table; the first column and those named in ``left`` are aligned to the left, the others to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="bold")
    for number, column in enumerate(columns):
        aligned_left = number == 0 or column in left
        table.add_column(Text(column), justify="left" if aligned_left else "right", no_wrap=True)
    for line in lines:
        table.add_row(*(Text(cell) for cell in line))
    return table


def table_width(table: Table) -> int:
    """Characters a table takes when nothing has to be folded."""
    console = Console(width=_UNLIMITED)
    return Measurement.get(console, console.options, table).maximum


def table_minimum(table: Table) -> int:
    """Characters a table takes when what may be folded is."""
    console = Console(width=_UNLIMITED)
    return Measurement.get(console, console.options, table).minimum


def _folded(text: str, limit: int) -> str:
    """``text`` in lines of at most ``limit`` characters where its separators allow; a number stays whole."""
    if len(text) <= limit or _NUMBER.fullmatch(text):
        return text
    lines = [""]
    for piece in _PIECE.findall(text):
        for start in range(0, len(piece), _LONGEST_WORD):
            part = piece[start : start + _LONGEST_WORD]
            if lines[-1] and len((lines[-1] + part).rstrip()) > limit:
                lines.append("")
            lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _widest_line(cells: Sequence[str]) -> int:
    return max(cell_len(line) for cell in cells for line in cell.split("\n"))


def _plain_width(columns: Sequence[Sequence[str]]) -> int:
    """Characters that `list_table` takes for these columns, headings included."""
    return sum(_widest_line(column) for column in columns) + 3 * (len(columns) - 1) + 2


def _signed(picoseconds: int) -> str:
    return ("+" if picoseconds > 0 else "") + wording.exact_milliseconds(picoseconds)
