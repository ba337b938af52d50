"""The critical path: who held up whom."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given

from hwmodel.engine.trace import SequenceTrace, Span, Trace
from hwmodel.report.critical import CRITICAL_KEYS, chain, critical_path
from hwmodel.schedules.plan import Plan, Task
from tests.report.examples import once, sequence_of, sequences, trace_of


def timed(*tasks: tuple[str, str, int, tuple[int, ...]]) -> Trace:
    """Tasks (stream, kind, duration, after) as early as their order allows."""
    ends: list[int] = []
    stream_ends: dict[str, int] = {}
    spans = []
    plan = []
    for index, (stream, kind, duration, after) in enumerate(tasks):
        start = max([stream_ends.get(stream, 0), *(ends[other] for other in after)])
        ends.append(start + duration)
        stream_ends[stream] = ends[-1]
        spans.append(Span(index, start, ends[-1], duration))
        plan.append(Task(f"t{index}", stream, kind, duration, (), after))
    return Trace(Plan("plan", tuple(plan)), tuple(spans), 0)


def test_the_path_changes_stream_where_a_dependency_was_late() -> None:
    trace = timed(
        ("main", "gemm", 10, ()),
        ("comm", "collective", 25, (0,)),
        ("main", "quantise", 5, ()),
        ("main", "gemm", 10, (1,)),
    )
    assert chain(trace) == (0, 1, 3)
    path = critical_path(sequence_of((trace, 2)))
    assert {key: amount for key, amount in path.items() if amount} == {"gemm": 40, "collective": 50}
    assert sum(path.values()) == 2 * trace.makespan_picoseconds


def test_bubbles_and_gaps_are_not_on_the_path() -> None:
    path = critical_path(once([("main", "gemm", 3, 10), ("main", "bubble", 10, 14), ("main", "gemm", 20, 25)]))
    assert path == dict.fromkeys(CRITICAL_KEYS, 0) | {"gemm": 12}
    assert "bubble" not in path and "idle" not in path  # noqa: PT018 - one fact


def test_a_task_that_waited_for_cores_hangs_on_who_held_them() -> None:
    trace = trace_of([("comm", "collective", 0, 8), ("main", "gemm", 0, 3), ("main", "attention", 8, 10)])
    assert chain(trace) == (0, 2)


def test_ties_prefer_the_stream_and_then_the_written_order() -> None:
    trace = timed(
        ("side", "amax", 10, ()), ("comm", "collective", 10, ()), ("main", "gemm", 10, ()), ("main", "gemm", 1, (1, 0))
    )
    assert chain(trace) == (2, 3)
    first = replace(trace.plan.tasks[2], stream="other")
    tasks = (*trace.plan.tasks[:2], first, trace.plan.tasks[3])
    assert chain(replace(trace, plan=replace(trace.plan, tasks=tasks))) == (1, 3)


@given(sequences())
def test_the_path_never_exceeds_the_makespan_and_its_spans_do_not_overlap(run: SequenceTrace) -> None:
    assert sum(critical_path(run).values()) <= run.makespan_picoseconds
    for trace, _ in run.items:
        spans = [trace.spans[index] for index in chain(trace)]
        assert all(a.end_picoseconds <= b.start_picoseconds for a, b in pairwise(spans))
        assert max((span.end_picoseconds for span in spans), default=0) == trace.makespan_picoseconds
