"""Breakdown: every picosecond in one key, against a count picosecond by picosecond."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from hwmodel.errors import ParameterError
from hwmodel.report.breakdown import KEYS, breakdown, breakdown_of, busy, busy_of, hidden, in_seconds, pieces
from hwmodel.schedules.plan import MAIN_STREAM, Task, TaskInfo
from tests.report.examples import once, sequence_of, sequences, trace_of, traces

if TYPE_CHECKING:
    from hwmodel.engine.trace import SequenceTrace, Trace


def running(trace: Trace) -> list[list[tuple[str, str]]]:
    """(stream, kind) of all that runs in each picosecond, in plan order: the oracle."""
    found: list[list[tuple[str, str]]] = [[] for _ in range(trace.makespan_picoseconds)]
    for span in trace.spans:
        task = trace.plan.tasks[span.task]
        for start, end, kind in pieces(task, span.start_picoseconds, span.end_picoseconds):
            for instant in range(start, end):
                found[instant].append((task.stream, kind))
    return found


def key_of(alive: list[tuple[str, str]], streams: tuple[str, ...]) -> str:
    """The one key of a picosecond, in the order of the rules."""
    work = [(stream, kind) for stream, kind in alive if kind not in ("bubble", "host", "idle")]
    for stream, kind in work:
        if stream == MAIN_STREAM:
            return kind
    if any(kind == "collective" for _, kind in work):
        return "collective"
    if work:
        return min(work, key=lambda entry: streams.index(entry[0]))[1]
    kinds = {kind for _, kind in alive}
    return "bubble" if "bubble" in kinds else "host" if "host" in kinds else "idle"


@given(traces())
def test_each_picosecond_goes_to_the_key_that_the_rules_say(trace: Trace) -> None:
    expected = dict.fromkeys(KEYS, 0)
    for alive in running(trace):
        expected[key_of(alive, trace.plan.streams)] += 1
    assert breakdown_of(trace) == expected


@given(traces())
def test_a_kind_is_busy_in_each_picosecond_in_which_it_runs(trace: Trace) -> None:
    expected = dict.fromkeys(KEYS, 0)
    for alive in running(trace):
        kinds = {kind for _, kind in alive} - {"idle"}
        for kind in kinds or {"idle"}:
            expected[kind] += 1
    assert busy_of(trace) == expected


@given(sequences())
def test_the_sum_of_a_breakdown_is_the_makespan_and_no_kind_is_busy_for_less(run: SequenceTrace) -> None:
    charged, working = breakdown(run), busy(run)
    assert list(charged) == list(KEYS)
    assert sum(charged.values()) == run.makespan_picoseconds
    assert all(0 <= charged[key] <= working[key] <= run.makespan_picoseconds for key in KEYS)
    assert all(amount >= 0 for amount in hidden(run).values())


def test_repeats_count_every_copy() -> None:
    body = trace_of([("main", "gemm", 0, 10), ("comm", "collective", 5, 17)])
    assert breakdown(sequence_of((body, 3), (body, 2)))["gemm"] == 50
    assert hidden(sequence_of((body, 3)))["collective"] == 15


def test_a_bubble_on_the_main_stream_gives_way_to_work_in_flight() -> None:
    charged = breakdown(once([("main", "bubble", 0, 10), ("comm", "collective", 2, 5), ("side", "amax", 4, 7)]))
    assert (charged["collective"], charged["amax"], charged["bubble"]) == (3, 2, 5)


def test_the_last_part_of_a_fused_kernel_takes_the_remainder() -> None:
    task = Task("f", "main", "elementwise", 10, (), info=TaskInfo(parts=(("amax", 1), ("scale", 1), ("quantise", 1))))
    assert pieces(task, 5, 15) == ((5, 8, "amax"), (8, 11, "scale"), (11, 15, "quantise"))


def test_parts_without_time_leave_all_to_the_last() -> None:
    trace = trace_of([("main", "elementwise", 0, 9)], parts={0: (("amax", 0), ("quantise", 0))})
    assert breakdown_of(trace)["quantise"] == 9


def test_a_kind_that_is_no_key_is_refused_by_name() -> None:
    with pytest.raises(ParameterError, match=r"task 'magic.0' must be one of gemm, .*, idle, got 'magic'"):
        breakdown(once([("main", "magic", 0, 1)]))
    with pytest.raises(ParameterError, match=r"task 'gemm.0' .* got 'magic'"):
        busy(sequence_of((trace_of([("main", "gemm", 0, 1)], parts={0: (("magic", 1),)}), 1)))


def test_seconds_are_picoseconds_divided_once() -> None:
    assert in_seconds({"gemm": 1_500_000_000_000, "idle": 0}) == {"gemm": 1.5, "idle": 0.0}


def test_an_empty_run_has_an_empty_breakdown() -> None:
    assert breakdown(sequence_of()) == busy(sequence_of((trace_of([]), 3))) == dict.fromkeys(KEYS, 0)
