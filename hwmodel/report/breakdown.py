"""Where the time of a run went: each picosecond charged to exactly one key, and how long each kind was busy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from hwmodel.engine.trace import SequenceTrace, Trace
from hwmodel.errors import ParameterError
from hwmodel.schedules.plan import MAIN_STREAM, Task
from hwmodel.units import PICOSECONDS_PER_SECOND

KEYS: Final = (
    "gemm",
    "attention",
    "elementwise",
    "quantise",
    "amax",
    "transpose",
    "scale",
    "collective",
    "optimizer",
    "bubble",
    "host",
    "idle",
)
"""Keys of a breakdown, and the kinds a task may have."""
HIDEABLE: Final = ("amax", "collective")

_KNOWN = frozenset(KEYS)
_WAIT_RANKS = {"bubble": 3, "host": 4}

Interval = tuple[int, int]
Piece = tuple[int, int, str]
"""Start, end, kind."""


def breakdown(trace: SequenceTrace) -> dict[str, int]:
    """Picoseconds of wall time by key; their sum is the makespan exactly.

    Each picosecond goes to the first that matches: what the main stream runs; a collective in flight on another
    stream; work on another stream (streams in order of first use); a bubble; the host; idle. A bubble or a host task is
    a wait wherever it stands, so work in flight comes before it even on the main stream. A fused task is its parts one
    after the other (see `pieces`).

    Raises:
        ParameterError: a task of a kind that is no key.
    """
    return _summed(trace, breakdown_of)


def busy(trace: SequenceTrace) -> dict[str, int]:
    """Picoseconds in which each kind had something running, hidden or not; ``idle``: nothing ran.

    Kinds overlap, so the sum may exceed the makespan. No key is below its breakdown.
    """
    return _summed(trace, busy_of)


def hidden(trace: SequenceTrace) -> dict[str, int]:
    """Picoseconds of amax and of collectives that something else covered: busy less charged."""
    return hidden_time(breakdown(trace), busy(trace))


def hidden_time(charged: Mapping[str, int], running: Mapping[str, int]) -> dict[str, int]:
    """`hidden` of a breakdown and a busy time already at hand."""
    return {kind: running[kind] - charged[kind] for kind in HIDEABLE}


def in_seconds(picoseconds: Mapping[str, int]) -> dict[str, float]:
    """The same keys in seconds."""
    return {key: value / PICOSECONDS_PER_SECOND for key, value in picoseconds.items()}


def breakdown_of(trace: Trace) -> dict[str, int]:
    """`breakdown` of one copy of one trace."""
    charged = dict.fromkeys(KEYS, 0)
    covered: list[Interval] = []
    for layer in _layers(trace):
        covered = _paint(layer, covered, charged)
    charged["idle"] = trace.makespan_picoseconds - _length(covered)
    return charged


def busy_of(trace: Trace) -> dict[str, int]:
    """`busy` of one copy of one trace."""
    by_kind: dict[str, list[Interval]] = {kind: [] for kind in KEYS}
    everything: list[Interval] = []
    for _, start, end, kind in _placed_pieces(trace):
        by_kind[kind].append((start, end))
        if kind != "idle":
            everything.append((start, end))
    running = {kind: _length(_union(intervals)) for kind, intervals in by_kind.items()}
    running["idle"] = trace.makespan_picoseconds - _length(_union(everything))
    return running


def pieces(task: Task, start_picoseconds: int, end_picoseconds: int) -> tuple[Piece, ...]:
    """What a span is charged to: the task's kind, or the parts of a fused task one after the other.

    Parts share the span in proportion to their time alone, each rounded down and the last taking the remainder. Parts
    that all take no time leave everything to the last.
    """
    parts = task.info.parts
    if not parts:
        return ((start_picoseconds, end_picoseconds, task.kind),)
    elapsed = end_picoseconds - start_picoseconds
    whole = sum(alone for _, alone in parts)
    found: list[Piece] = []
    at = start_picoseconds
    for kind, alone in parts[:-1]:
        until = at + (elapsed * alone // whole if whole else 0)
        found.append((at, until, kind))
        at = until
    return (*found, (at, end_picoseconds, parts[-1][0]))


def check_kinds(trace: Trace) -> None:
    """Refuse a task whose kind, or a part's, is no key of a breakdown."""
    for task in trace.plan.tasks:
        for kind in (task.kind, *(kind for kind, _ in task.info.parts)):
            if kind not in _KNOWN:
                raise ParameterError("kind", f"task {task.name!r} must be one of {', '.join(KEYS)}, got {kind!r}")


def _summed(trace: SequenceTrace, of_one: Callable[[Trace], dict[str, int]]) -> dict[str, int]:
    total = dict.fromkeys(KEYS, 0)
    for one, count in trace.items:
        for key, value in of_one(one).items():
            total[key] += count * value
    return total


def _placed_pieces(trace: Trace) -> Iterator[tuple[str, int, int, str]]:
    """(stream, start, end, kind) of everything that took time, in plan order."""
    check_kinds(trace)
    tasks = trace.plan.tasks
    for span in trace.spans:
        start, end = span.start_picoseconds, span.end_picoseconds
        if start == end:
            continue
        task = tasks[span.task]
        if not task.info.parts:
            yield task.stream, start, end, task.kind
            continue
        for at, until, kind in pieces(task, start, end):
            if at < until:
                yield task.stream, at, until, kind


def _layers(trace: Trace) -> list[list[Piece]]:
    """Pieces by precedence, first match first; collectives off the main stream, bubbles and host are one layer each."""
    layers: dict[tuple[int, str], list[Piece]] = {}
    for stream, start, end, kind in _placed_pieces(trace):
        if kind == "idle":
            continue
        if kind in _WAIT_RANKS:
            place = (_WAIT_RANKS[kind], "")
        elif stream == MAIN_STREAM:
            place = (0, "")
        elif kind == "collective":
            place = (1, "")
        else:
            place = (2, stream)
        layers.setdefault(place, []).append((start, end, kind))
    return [layer for _, layer in sorted(layers.items(), key=lambda item: item[0][0])]


def _paint(layer: list[Piece], covered: list[Interval], charged: dict[str, int]) -> list[Interval]:
    """Charge what of ``layer`` is not covered yet; gives everything covered afterwards, sorted and disjoint."""
    layer.sort()
    painted_until = 0
    first = 0
    for begin, end, kind in layer:
        start = max(begin, painted_until)
        if start >= end:
            continue
        painted_until = end
        while first < len(covered) and covered[first][1] <= start:
            first += 1
        free = end - start
        index = first
        while index < len(covered) and covered[index][0] < end:
            free -= min(end, covered[index][1]) - max(start, covered[index][0])
            index += 1
        charged[kind] += free
    return _union([*covered, *((start, end) for start, end, _ in layer)])


def _union(intervals: list[Interval]) -> list[Interval]:
    """The same instants as sorted intervals that neither overlap nor touch."""
    intervals.sort()
    joined: list[Interval] = []
    left = right = -1
    for start, end in intervals:
        if start > right:
            if right > left:
                joined.append((left, right))
            left, right = start, end
        elif end > right:
            right = end
    if right > left:
        joined.append((left, right))
    return joined


def _length(intervals: Iterable[Interval]) -> int:
    return sum(end - start for start, end in intervals)
