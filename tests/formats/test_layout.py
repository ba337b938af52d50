"""One record behind every granularity: counts, bytes, directions."""

from __future__ import annotations

import pytest

from hwmodel.errors import ParameterError, RegistryError
from hwmodel.formats import ScaleLayout

TENSOR = ScaleLayout(None, None)
ROW = ScaleLayout(1, None)
MX = ScaleLayout(1, 32, "e8m0")
SQUARE = ScaleLayout(128, 128)


@pytest.mark.parametrize(
    ("layout", "shape"),
    [(TENSOR, (1, 1)), (ROW, (300, 1)), (MX, (300, 7)), (SQUARE, (3, 2)), (ROW.turned(), (1, 200))],
)
def test_a_partial_last_block_has_a_scale_of_its_own(layout: ScaleLayout, shape: tuple[int, int]) -> None:
    assert layout.scale_shape(300, 200) == shape
    assert layout.scale_count(300, 200) == shape[0] * shape[1]


def test_scale_bytes_follow_the_scale_format() -> None:
    assert MX.scale_bytes(256, 1024) == 256 * 1024 // 32
    assert SQUARE.scale_bytes(256, 1024) == 2 * 8 * 4
    assert TENSOR.scale_bytes(256, 1024) == 4


def test_only_square_and_whole_blocks_serve_both_directions() -> None:
    assert [layout.serves_both_directions for layout in (TENSOR, SQUARE, ROW, MX)] == [True, True, False, False]


def test_a_block_shorter_than_the_contraction_breaks_it() -> None:
    assert MX.breaks_contraction(64)
    assert not MX.breaks_contraction(32)
    assert not ROW.breaks_contraction(1 << 20)


def test_a_block_over_a_whole_axis_crosses_the_shards_of_that_axis() -> None:
    assert TENSOR.crosses_shard(rows_sharded=True, columns_sharded=False)
    assert not ROW.crosses_shard(rows_sharded=True, columns_sharded=False)
    assert ROW.crosses_shard(rows_sharded=False, columns_sharded=True)


def test_refusals() -> None:
    with pytest.raises(ParameterError, match=r"^rows: must be >= 1 or all, got 0$"):
        ScaleLayout(0, 32)
    with pytest.raises(RegistryError, match=r"unknown format 'e8m1'; did you mean 'e8m0'"):
        ScaleLayout(1, 32, "e8m1")
