"""Traces built from spans, for tests of reports: by hand and at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from hwmodel.engine.trace import SequenceTrace, Span, Trace
from hwmodel.report.breakdown import KEYS
from hwmodel.schedules.plan import FULL, MAIN_STREAM, Plan, Task, TaskInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import DrawFn

Entry = tuple[str, str, int, int]
"""Stream, kind, start, end."""


def trace_of(entries: Sequence[Entry], *, parts: dict[int, tuple[tuple[str, int], ...]] | None = None) -> Trace:
    """A trace of these spans, each named by its place; ``parts`` makes some of them fused."""
    infos = [
        TaskInfo(parts=(parts or {}).get(index, ()), bytes=7 * index, flops=index) for index in range(len(entries))
    ]
    tasks = tuple(
        Task(f"{kind}.{index}", stream, kind, end - start, (("hbm", FULL // 2),), info=info)
        for index, ((stream, kind, start, end), info) in enumerate(zip(entries, infos, strict=True))
    )
    spans = tuple(Span(index, start, end, end - start) for index, (_, _, start, end) in enumerate(entries))
    return Trace(Plan("plan", tasks), spans, events=3 * len(entries))


def sequence_of(*items: tuple[Trace, int]) -> SequenceTrace:
    """A run of these traces."""
    return SequenceTrace("run", items)


def once(entries: Sequence[Entry]) -> SequenceTrace:
    """A run of one trace of these spans."""
    return sequence_of((trace_of(entries), 1))


@st.composite
def traces(draw: DrawFn) -> Trace:
    """A small trace: streams in order, each with pauses, some tasks fused, kinds of every sort."""
    kinds = st.sampled_from(KEYS)
    entries: list[Entry] = []
    parts: dict[int, tuple[tuple[str, int], ...]] = {}
    for stream in (MAIN_STREAM, "comm.tp", "comm.dp", "side", "other"):
        at = 0
        for pause, length, kind, fused in draw(
            st.lists(
                st.tuples(
                    st.integers(0, 4),
                    st.integers(0, 9),
                    kinds,
                    st.lists(st.tuples(kinds, st.integers(0, 5)), max_size=3),
                ),
                max_size=5,
            )
        ):
            if fused:
                parts[len(entries)] = tuple(fused)
            entries.append((stream, kind, at + pause, at + pause + length))
            at += pause + length
    return trace_of(entries, parts=parts)


@st.composite
def sequences(draw: DrawFn) -> SequenceTrace:
    """A run of a few small traces, some repeated, perhaps none."""
    return sequence_of(*draw(st.lists(st.tuples(traces(), st.integers(0, 4)), max_size=3)))
