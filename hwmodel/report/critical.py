"""The critical path: the chain of tasks of which each began when the one before it ended.

Walked backwards from the last span to finish. Since a task starts as soon as what it waits for has ended, the task
that ended exactly at its start is what held it up, and the chain of those is the longest there is: shortening a task
off the chain cannot shorten the run. One entry per task of the chain, never a graph of all events.
"""

from __future__ import annotations

from hwmodel.engine.trace import SequenceTrace, Span, Trace
from hwmodel.report.breakdown import KEYS, check_kinds, pieces

CRITICAL_KEYS = tuple(key for key in KEYS if key not in ("bubble", "idle"))


def critical_path(trace: SequenceTrace) -> dict[str, int]:
    """Picoseconds on the critical path by key, fused tasks charged to their parts.

    The sum is the makespan less the bubbles on the chain and less gaps in it, where a task started after everything it
    waits for had ended and nothing ended just then.
    """
    total = dict.fromkeys(CRITICAL_KEYS, 0)
    for one, count in trace.items:
        check_kinds(one)
        for index in chain(one):
            span = one.spans[index]
            task = one.plan.tasks[span.task]
            for start, end, kind in pieces(task, span.start_picoseconds, span.end_picoseconds):
                if kind in total:
                    total[kind] += count * (end - start)
    return total


def chain(trace: Trace) -> tuple[int, ...]:
    """Indices in ``trace.spans`` of the critical path, first to run first; empty for an empty trace.

    Ties are settled by rule: the first in plan order of the spans that finish last; among what a task waits for, the
    one before it on its stream, then its dependencies as written. A task that started later than all of these ended
    waited for cores: the first span in plan order that ended at that instant is what held it.
    """
    if not trace.spans:
        return ()
    spans = trace.spans
    blockers = _blockers(trace)
    ended_at: dict[int, int] = {}
    for index in range(len(spans) - 1, -1, -1):
        if spans[index].end_picoseconds > spans[index].start_picoseconds:
            ended_at[spans[index].end_picoseconds] = index
    found = [max(range(len(spans)), key=lambda index: spans[index].end_picoseconds)]
    while (start := spans[found[-1]].start_picoseconds) > 0:
        before = _latest(spans, blockers[found[-1]], start)
        if before is None or spans[before].end_picoseconds < start:
            before = ended_at.get(start, before)
        if before is None:
            break
        found.append(before)
    return tuple(reversed(found))


def _blockers(trace: Trace) -> list[tuple[int, ...]]:
    """For each span, the spans that had to end first: the one before it on its stream, then its dependencies."""
    place = {span.task: index for index, span in enumerate(trace.spans)}
    previous: dict[str, int] = {}
    found: list[tuple[int, ...]] = [()] * len(trace.spans)
    for number, task in enumerate(trace.plan.tasks):
        if number not in place:
            continue
        before = (previous[task.stream],) if task.stream in previous else ()
        found[place[number]] = (*before, *(place[other] for other in task.after if other in place))
        previous[task.stream] = place[number]
    return found


def _latest(spans: tuple[Span, ...], candidates: tuple[int, ...], start: int) -> int | None:
    """The candidate that ended last, not after ``start``; the first of equals."""
    ended = [index for index in candidates if spans[index].end_picoseconds <= start]
    return max(ended, key=lambda index: spans[index].end_picoseconds, default=None)
