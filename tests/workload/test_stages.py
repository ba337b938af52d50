"""Layers over pipeline stages: each exactly once, as even as can be, the ends never longer than the middle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.graph import Layout
from hwmodel.workload.stages import EMBEDDING, HEAD, piece_sizes, stages


@given(st.integers(1, 200), st.integers(1, 64))
def test_pieces_hold_every_unit_and_differ_by_at_most_one(units: int, pieces: int) -> None:
    sizes = piece_sizes(units, pieces)
    assert sum(sizes) == units
    assert len(sizes) == pieces
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 200), st.integers(1, 64))
def test_the_ends_are_the_smaller_pieces_the_last_first(units: int, pieces: int) -> None:
    sizes = piece_sizes(units, pieces)
    small = [index for index, size in enumerate(sizes) if size == min(sizes)]
    if len(small) < pieces:
        tail = [index for index in range(pieces) if index >= pieces - (len(small) + 1) // 2]
        head = list(range(len(small) // 2))
        assert small == sorted(head + tail)


@given(st.integers(1, 130), st.integers(1, 8), st.integers(1, 8))
def test_every_unit_is_on_exactly_one_stage(layers: int, pp: int, vp: int) -> None:
    layout = Layout(pp=pp, vp=vp if pp > 1 else 1)
    cut = stages(layers, layout)
    held = [unit for stage in cut for piece in stage.pieces for unit in piece]
    assert sorted(held) == sorted([EMBEDDING, HEAD, *range(layers)])
    assert [stage.index for stage in cut] == list(range(pp))
    assert all(len(stage.pieces) == layout.vp for stage in cut)


@given(st.integers(1, 130), st.integers(1, 8), st.integers(1, 8))
def test_pieces_are_dealt_in_turn_and_in_order(layers: int, pp: int, vp: int) -> None:
    layout = Layout(pp=pp, vp=vp if pp > 1 else 1)
    cut = stages(layers, layout)
    dealt = [unit for turn in range(layout.vp) for stage in cut for unit in stage.pieces[turn]]
    assert dealt == [EMBEDDING, *range(layers), HEAD]


def test_the_embedding_is_on_the_first_stage_and_the_head_on_the_last() -> None:
    first, *middle, last = stages(126, Layout(pp=8, vp=8))
    assert (first.embeds, first.heads) == (True, False)
    assert (last.embeds, last.heads) == (False, True)
    assert not any(stage.embeds or stage.heads for stage in middle)


def test_a_published_layout_gives_pieces_of_two() -> None:
    cut = stages(126, Layout(pp=8, vp=8))
    assert {len(piece) for stage in cut for piece in stage.pieces} == {2}
    assert [len(stage.layers) for stage in cut] == [15, 16, 16, 16, 16, 16, 16, 15]


def test_one_stage_holds_everything() -> None:
    (stage,) = stages(3, Layout())
    assert stage.pieces == ((EMBEDDING, 0, 1, 2, HEAD),)
    assert stage.layers == (0, 1, 2)


@pytest.mark.parametrize(
    ("units", "pieces", "sizes"), [(10, 4, (2, 3, 3, 2)), (11, 4, (3, 3, 3, 2)), (9, 4, (2, 3, 2, 2))]
)
def test_uneven_cuts(units: int, pieces: int, sizes: tuple[int, ...]) -> None:
    assert piece_sizes(units, pieces) == sizes
