"""Axes and grids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.errors import ParameterError
from hwmodel.sweeps.points import Axis, Grid, Point, make_grid, read_axis, split_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,5,none", ("1", "5", "none")),
        ("one", ("one",)),
        ("2 TB/s, 4 TB/s", ("2 TB/s", "4 TB/s")),
        ("[1,2],[3,4]", ("[1,2]", "[3,4]")),
        ("[[1,2],[3,4]],[5]", ("[[1,2],[3,4]]", "[5]")),
        ("'a,b',c", ("'a,b'", "c")),
        ('"a,b","c,d"', ('"a,b"', '"c,d"')),
        ("['a,]',b],c", ("['a,]',b]", "c")),
        ("don't,do", ("don't", "do")),
    ],
)
def test_commas_part_values_except_inside_brackets_and_quotes(text: str, values: tuple[str, ...]) -> None:
    assert split_values(text, "x") == values


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x: must be values parted by commas, none of them empty, got ''"),
        ("1,", "x: must be values parted by commas, none of them empty, got '1,'"),
        ("1,,2", "x: must be values parted by commas, none of them empty, got '1,,2'"),
        ("[1,2", "x: ] is missing, got '[1,2'"),
        ("'a", "x: ' is missing, got \"'a\""),
    ],
)
def test_a_list_that_cannot_be_read_is_refused(text: str, said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        split_values(text, "x")
    assert str(caught.value) == said


@given(st.lists(st.from_regex(r"[a-z0-9 ]*[a-z0-9][a-z0-9 ]*|\[[0-9,]*\]", fullmatch=True), min_size=1))
def test_values_come_back_as_they_were_joined(values: list[str]) -> None:
    assert split_values(",".join(values), "x") == tuple(value.strip() for value in values)


def test_an_axis_needs_a_path() -> None:
    assert read_axis("batch.sequence=1,2") == Axis("batch.sequence", ("1", "2"))
    with pytest.raises(ParameterError, match="must be path=v1,v2"):
        read_axis("batch.sequence")
    with pytest.raises(ParameterError, match="must be path=v1,v2"):
        read_axis("=1")


def test_a_grid_is_the_product_in_the_order_given() -> None:
    grid = make_grid("w", "a,b", recipes="r,s", interval="1,5", sets=["steps=1,2"])
    points = list(grid)
    assert len(points) == len(grid) == 16
    assert points[0] == Point("a", "r", (("recipe.interval_steps", "1"), ("steps", "1")))
    assert points[1].values[-1] == ("steps", "2")
    assert points[-1] == Point("b", "s", (("recipe.interval_steps", "5"), ("steps", "2")))


def test_a_point_sorts_its_edits() -> None:
    point = Point("a", None, (("device.clock_hz", "1 GHz"), ("steps", "1")))
    assert point.edits == (("steps", "1"),)
    assert point.device_edits == (("clock_hz", "1 GHz"),)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"sets": ["steps=1", "steps=2"]}, "steps: is given twice"),
        ({"granularity": "row", "sets": ["recipe.granularity=mx"]}, "recipe.granularity: is given twice"),
        ({"recipes": "bf16", "sets": ["recipe=delayed"]}, "recipe: recipes are given by --recipes already"),
        ({"sets": [f"steps={','.join('1' * 400)}", f"batch.micro={','.join('1' * 400)}"]}, "at most 100,000 points"),
    ],
)
def test_a_contradictory_grid_is_refused(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        make_grid("w", "a", **arguments)  # type: ignore[arg-type]  # one dictionary for several keywords


def test_a_grid_needs_a_device() -> None:
    with pytest.raises(ParameterError, match="at least one device"):
        Grid("w", (), (), ())
