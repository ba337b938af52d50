"""Where the time of a run went: each picosecond charged to exactly one key, and how long each kind was busy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hwmodel.engine.ablate import shares
from hwmodel.errors import ParameterError
from hwmodel.schedules.plan import MAIN_STREAM, Task
from hwmodel.units import PICOSECONDS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from hwmodel.engine.trace import SequenceTrace, Trace

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
Place = tuple[int, str]
"""A layer: rank and stream."""
_IDLE: Final[Place] = (len(KEYS), "")
"""Where tasks that stand for idleness go, and nothing looks."""


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
    by_kind = _pieces_by(trace, lambda _, kind: _IDLE if kind == "idle" else (KEYS.index(kind), kind))
    unions = {kind: _union([(start, end) for start, end, _ in found]) for (_, kind), found in by_kind.items()}
    running = dict.fromkeys(KEYS, 0) | {kind: _length(union) for kind, union in unions.items()}
    everything = _union([interval for union in unions.values() for interval in union])
    running["idle"] = trace.makespan_picoseconds - _length(everything)
    return running


def pieces(task: Task, start_picoseconds: int, end_picoseconds: int) -> tuple[Piece, ...]:
    """What a span is charged to: the task's kind, or the parts of a fused task one after the other.

    Parts share the span as `hwmodel.engine.ablate.shares` says, so that taking a kind away on one stream shortens the
    run by exactly what it was charged.
    """
    found: list[Piece] = []
    at = start_picoseconds
    for kind, share in shares(end_picoseconds - start_picoseconds, task.kind, task.info.parts):
        found.append((at, at + share, kind))
        at += share
    return tuple(found)


def check_kinds(trace: Trace) -> None:
    """Refuse a task whose kind, or a part's, is no key of a breakdown."""
    tasks = trace.plan.tasks
    kinds = {task.kind for task in tasks}
    kinds.update(kind for task in tasks if task.info.parts for kind, _ in task.info.parts)
    if not (unknown := kinds - _KNOWN):
        return
    kind = min(unknown)
    culprit = next(task for task in tasks if kind in {task.kind, *(part for part, _ in task.info.parts)})
    raise ParameterError("kind", f"task {culprit.name!r} must be one of {', '.join(KEYS)}, got {kind!r}")


def _summed(trace: SequenceTrace, of_one: Callable[[Trace], dict[str, int]]) -> dict[str, int]:
    total = dict.fromkeys(KEYS, 0)
    for one, count in trace.items:
        for key, value in of_one(one).items():
            total[key] += count * value
    return total


def _pieces_by(trace: Trace, place: Callable[[str, str], Place]) -> dict[Place, list[Piece]]:
    """Everything that took time, grouped by what ``place`` makes of a stream and a kind, in plan order."""
    check_kinds(trace)
    tasks = trace.plan.tasks
    groups: dict[Place, list[Piece]] = {}
    lists: dict[tuple[str, str], list[Piece]] = {}
    for span in trace.spans:
        start, end = span.start_picoseconds, span.end_picoseconds
        if start == end:
            continue
        task = tasks[span.task]
        for piece in pieces(task, start, end) if task.info.parts else ((start, end, task.kind),):
            if piece[0] == piece[1]:
                continue
            key = (task.stream, piece[2])
            found = lists.get(key)
            if found is None:
                found = lists[key] = groups.setdefault(place(*key), [])
            found.append(piece)
    groups.pop(_IDLE, None)
    return groups


def _precedence(stream: str, kind: str) -> Place:
    """Which layer a piece belongs to, lower first; idle is what no layer covers."""
    if kind == "idle":
        return _IDLE
    if kind in _WAIT_RANKS:
        return (_WAIT_RANKS[kind], "")
    if stream == MAIN_STREAM:
        return (0, "")
    return (1, "") if kind == "collective" else (2, stream)


def _layers(trace: Trace) -> list[list[Piece]]:
    """Pieces by precedence, first match first; collectives off the main stream, bubbles and host are one layer each."""
    layers = _pieces_by(trace, _precedence)
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
