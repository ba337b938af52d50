"""Tables for the terminal: exact sums, units, and names that are no markup."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from hwmodel.report import wording
from hwmodel.report.diff import Change
from hwmodel.report.metrics import KernelTotal
from hwmodel.report.tables import (
    RecipeRow,
    change_table,
    comparison_tables,
    difference,
    difference_table,
    folded_table,
    list_table,
    slowest_table,
    table_width,
)

if TYPE_CHECKING:
    from rich.table import Table

BF16 = RecipeRow("bf16", 3_000_000_000_001, 1.0, {"gemm": 2_000_000_000_000, "attention": 1_000_000_000_001})
FP8 = RecipeRow(
    "current",
    2_100_000_000_000,
    1.4286,
    {"gemm": 1_000_000_000_000, "attention": 1_000_000_000_001, "amax": 99_999_999_999},
)


def printed(table: Table, width: int = 200) -> str:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_a_wide_terminal_gets_a_row_per_recipe_and_a_narrow_one_a_column() -> None:
    wide, narrow = (comparison_tables([BF16, FP8], width=width)[0] for width in (120, 40))
    assert (wide.row_count, narrow.row_count) == (2, 5)
    assert table_width(wide) > 40 >= table_width(narrow)
    for table in (wide, narrow):
        text = printed(table)
        assert all(word in text for word in ("bf16", "current", "step ms", "3,000.000", "1.43x", "amax ms", "100.000"))
        assert "collective" not in text


def test_columns_that_do_not_fit_stand_in_tables_of_their_own() -> None:
    tables = comparison_tables([BF16, FP8, BF16], width=40)
    assert [len(table.columns) for table in tables] == [3, 2]
    assert all(table_width(table) <= 40 for table in tables)


def test_texts_are_folded_at_separators_and_numbers_never() -> None:
    cells = [["breakdown_seconds.attention", "Huawei Ascend 950DT, 144 GB", "1,094.267", "+0.0920415 (+145.40 %)"]]
    table = folded_table(["key", "before", "after", "difference"], cells, whole=("difference",), width=70)
    text = printed(table, 70)
    words = ("breakdown_", "attention", "Huawei", "Ascend", "950DT,", "1,094.267", "+0.0920415 (+145.40 %)")
    assert all(word in text for word in words)
    assert table_width(table) <= 70
    narrow = folded_table(["key", "before", "after", "difference"], cells, width=10)
    assert "1,094.267" in printed(narrow)


def test_differences_add_up_to_the_difference_of_the_steps_to_the_picosecond() -> None:
    assert sum(difference(BF16.breakdown, FP8.breakdown).values()) == FP8.step_picoseconds - BF16.step_picoseconds
    lines = [line.split() for line in printed(difference_table(BF16, FP8)).splitlines() if " ms " in line]
    shown = {line[0]: Decimal(line[-1].replace(",", "")) for line in lines}
    assert shown.pop("step") == sum(shown.values()) == Decimal("-900.000000001")
    assert shown["gemm"] == -1000


def test_names_are_text_and_never_markup() -> None:
    name = "[red]x[/red] :smile: <b>"
    assert name in printed(list_table([name], [[name]]))
    kernel = KernelTotal(name, "gemm", "gemm", "1x2", "cube", 3, 5_000_000_000, 0.25)
    text = printed(slowest_table([kernel]))
    assert name in text
    assert all(word in text for word in ("5.000", "25.0 %", "cube", "total ms"))
    assert name in printed(change_table([Change(name, 1, 2)]))


@pytest.mark.parametrize(
    ("amount", "decimals", "text"),
    [(0, 6, "0.000000"), (-1, 9, "-0.000000001"), (10**21 + 1, 6, "1000000000000000.000001")],
)
def test_exact_decimals_keep_every_digit(amount: int, decimals: int, text: str) -> None:
    assert wording.exact_decimal(amount, decimals) == text


def test_exact_milliseconds_have_thousands_apart() -> None:
    assert wording.exact_milliseconds(-1_234_567_890_123_456) == "-1,234,567.890123456"
    assert wording.exact_milliseconds(-1) == "-0.000000001"


def test_values_read_with_their_unit() -> None:
    assert wording.flops(999_999) == "1.00 MFLOP"
    assert wording.flops(12) == "12 FLOP"
    assert wording.percent(1, 3) == "33.3 %"
    assert wording.percent(1, 0) == "0.0 %"
    assert wording.duration(1_230_000_000) == "1.230 ms"
    assert wording.times(None) == "-"
    assert len(wording.plain("x" * 1000)) == 160
    assert wording.plain("<a href='x'>&amp;") == "&lt;a href=&#x27;x&#x27;&gt;&amp;amp;"
