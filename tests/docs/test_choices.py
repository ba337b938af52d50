"""The table of choices in docs/assumptions.md says what each alternative really gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwmodel.api import compare

PAGE = Path(__file__).parents[2] / "docs" / "assumptions.md"


def rows() -> list[list[str]]:
    table = PAGE.read_text(encoding="utf-8").split("<!-- table: choices -->")[1].split("\n- ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")][2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_choice_gives_what_the_table_says(row: list[str]) -> None:
    edits = () if row[0].startswith("(") else (row[0],)
    steps = [
        result.step_seconds
        for result in compare("llama3_405b", "gpu", ["bf16", "delayed", "current", "mxfp8"], sets=edits).rows
    ]
    bf16, delayed, current, mx = steps
    assert [f"{bf16 / delayed:.3f}", f"{current / delayed:.3f}", f"{current / mx:.3f}"] == row[1:4]
