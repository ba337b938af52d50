"""The tables of docs/recipes.md are what the code counts, and its numbers are the mechanism's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hwmodel.ops import demand_node
from tests.docs.ledger import COLUMNS, ROWS, bytes_per_element, bytes_table, delivered, launches, layer_table
from tests.docs.pages import ROOT, markdown, rewrite_table, tables

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = ROOT / "docs" / "recipes.md"
MADE = {"bytes": bytes_table, "layer": layer_table}


@pytest.mark.parametrize("name", MADE)
def test_a_table_is_what_the_code_counts(name: str, request: pytest.FixtureRequest) -> None:
    make: Callable[[], list[list[str]]] = MADE[name]
    table = markdown(make())
    if request.config.getoption("--update-golden"):
        rewrite_table(PAGE, name, table)
    assert tables(PAGE)[name] == table


# Bytes derived by hand: 2 to read BF16, 1 for each 8-bit copy, 2 for an amax pass, 4/128 or 1/32 for each scale table.
@pytest.mark.parametrize(
    ("preset", "software", "expected"),
    [
        ("delayed", "mature", 2 + 1),
        ("current", "mature", 2 + 2 + 1),
        ("static", "mature", 2 + 1),
        ("hif8_delayed", "mature", 2 + 1),
        ("row", "mature", (2 + 1) + 2 + (2 + 1)),
        ("block", "mature", 2 + 2 * (1 + 4 / 128)),
        ("block", "early", 2 * (2 + 1 + 4 / 128)),
        ("mxfp8", "mature", 2 + 2 * (1 + 1 / 32)),
        ("mxfp8", "early", 2 * (2 + 1 + 1 / 32) + 2 * 2 / 32),  # and both tables read and written once more
    ],
)
def test_x_moves_the_bytes_that_follow_from_its_kernels(preset: str, software: str, expected: float) -> None:
    vectors = 4 * 4 * (1 / ROWS + 1 / COLUMNS) + 40 / (
        ROWS * COLUMNS
    )  # row and column scales, scalars: next to nothing
    assert bytes_per_element(delivered(preset, "x", "npu", software)) == pytest.approx(expected, abs=vectors)


@pytest.mark.parametrize(("software", "expected"), [("mature", 4.0625), ("early", 6.0625)])
def test_the_quantise_kernels_of_mx_alone(software: str, expected: float) -> None:
    graph = delivered("mxfp8", "x", "npu", software)
    moved = sum(demand_node(node, graph).bytes for node in graph.nodes if node.op == "quantise")
    assert moved / (ROWS * COLUMNS) == expected


def test_g_is_as_x_for_every_preset_of_the_page() -> None:
    for preset in ("delayed", "current", "row", "block", "mxfp8"):
        x, g = delivered(preset, "x", "npu"), delivered(preset, "g", "npu")
        assert bytes_per_element(x) == pytest.approx(bytes_per_element(g), abs=1e-2)
        assert launches(x) == launches(g)
