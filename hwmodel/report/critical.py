"""The critical path: the chain of tasks of which each began when the one before it ended.

Walked backwards from the last span to finish. Since a task starts as soon as what it waits for has ended, the task
that ended exactly at its start is what held it up, and the chain of those is the longest there is: shortening a task
off the chain cannot shorten the run. One entry per task of the chain, never a graph of all events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.report.breakdown import KEYS, check_kinds, pieces

if TYPE_CHECKING:
    from hwmodel.engine.trace import SequenceTrace, Trace

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
    spans, tasks = trace.spans, trace.plan.tasks
    place = {span.task: index for index, span in enumerate(spans)}
    before = _stream_predecessors(trace)
    ended_at: dict[int, int] = {}
    for index, span in enumerate(spans):
        if span.end_picoseconds > span.start_picoseconds:
            ended_at.setdefault(span.end_picoseconds, index)
    ends = [span.end_picoseconds for span in spans]
    found = [ends.index(max(ends))]
    while (start := spans[found[-1]].start_picoseconds) > 0:
        number = spans[found[-1]].task
        waited_for = (before.get(number, -1), *tasks[number].after)
        candidates = [place[other] for other in waited_for if other in place and ends[place[other]] <= start]
        latest = max(candidates, key=ends.__getitem__, default=None)
        if latest is None or ends[latest] < start:
            latest = ended_at.get(start, latest)
        if latest is None:
            break
        found.append(latest)
    return tuple(reversed(found))


def _stream_predecessors(trace: Trace) -> dict[int, int]:
    """The task before each on its stream, for those that have one."""
    previous: dict[str, int] = {}
    found: dict[int, int] = {}
    for number, task in enumerate(trace.plan.tasks):
        if task.stream in previous:
            found[number] = previous[task.stream]
        previous[task.stream] = number
    return found
