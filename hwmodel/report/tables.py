"""Tables for the terminal. Every value has its unit; names are text, never markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
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


@dataclass(frozen=True, slots=True)
class RecipeRow:
    """One recipe's result as the tables show it."""

    recipe: str
    step_picoseconds: int
    speedup: float | None
    breakdown: Mapping[str, int]
    """Picoseconds by key; their sum is the step."""


def comparison_table(rows: Sequence[RecipeRow], *, width: int = 80) -> Table:
    """Recipe, step, speedup over BF16, then milliseconds by key (keys that are zero everywhere are left out).

    A recipe is a row where that fits into ``width`` characters, else a column.
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
        return wide
    turned = [[name, *(line[number] for line in cells)] for number, name in enumerate(names)]
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
            wording.exact_decimal(before.breakdown.get(key, 0), 9),
            wording.exact_decimal(after.breakdown.get(key, 0), 9),
            _signed(change),
        ]
        for key, change in changes.items()
        if change or before.breakdown.get(key, 0)
    ]
    steps = before.step_picoseconds, after.step_picoseconds
    total = ["step ms", *(wording.exact_decimal(step, 9) for step in steps), _signed(steps[1] - steps[0])]
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
                f"{kernel.calls:,}",
                wording.milliseconds(kernel.total_picoseconds),
                f"{100 * kernel.share_fraction:.1f} %",
                kernel.bound or "-",
            ]
            for kernel in kernels
        ],
        left=("kernel", "kind", "shape", "bound"),
    )


def change_table(changes: Sequence[Change], names: tuple[str, str] = ("before", "after")) -> Table:
    """What `diff.compare` found."""
    return list_table(
        ["key", *names, "difference"],
        [[change.path, change.before_text, change.after_text, change.delta_text] for change in changes],
        left=("key",),
    )


def list_table(columns: Sequence[str], lines: Sequence[Sequence[str]], *, left: Sequence[str] = ()) -> Table:
    """A plain table; the first column and those named in ``left`` are aligned to the left, the others to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="bold")
    for number, column in enumerate(columns):
        aligned_left = number == 0 or column in left
        table.add_column(Text(column), justify="left" if aligned_left else "right", overflow="fold")
    for line in lines:
        table.add_row(*(Text(cell) for cell in line))
    return table


def table_width(table: Table) -> int:
    """Characters a table takes when nothing has to be folded."""
    console = Console(width=_UNLIMITED)
    return Measurement.get(console, console.options, table).maximum


def _signed(picoseconds: int) -> str:
    return ("+" if picoseconds > 0 else "") + wording.exact_decimal(picoseconds, 9)
