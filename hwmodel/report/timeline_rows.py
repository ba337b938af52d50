"""What a timeline shows, as plain rows: bars on lanes, blocks, the use of resources, and merging when there are many.

A repeated item is drawn once, as its first copy, and the items stand one after the other; so an instant on the drawn
axis is not one of the step, and each row knows both.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hwmodel.schedules.plan import FULL, Demands, Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hwmodel.engine.trace import SequenceTrace, Span, Trace

LIMIT_BARS = 5_000
"""Bars on one page; above it neighbours are merged."""


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One bar: a task, or ``count`` merged tasks of one lane and kind, whose total time is the bar's length."""

    lane: str
    name: str
    kind: str
    start_picoseconds: int
    """Where the bar begins on the drawn axis."""
    end_picoseconds: int
    bytes: int
    flops: int
    bound: str
    layer: int | None
    shape: str
    note: str
    """'microbatch, 1 of 32': which copy of which block this is; empty where the run is one block."""
    step_start_picoseconds: int
    """When the first of them began in the step."""
    step_end_picoseconds: int
    """When the last of them ended in the step."""
    alone_picoseconds: int
    role: str = ""
    parts: tuple[tuple[str, int], ...] = ()
    count: int = 1

    @property
    def elapsed_picoseconds(self) -> int:
        """Time of what the bar stands for."""
        return self.end_picoseconds - self.start_picoseconds


@dataclass(frozen=True, slots=True)
class Block:
    """An item of a sequence, drawn once for all its copies."""

    name: str
    copies: int
    start_picoseconds: int
    """On the drawn axis."""
    end_picoseconds: int

    @property
    def label(self) -> str:
        """``microbatch, 1 of 32``; the name alone for a single copy."""
        return self.name if self.copies == 1 else f"{self.name}, 1 of {self.copies}"

    @property
    def total_picoseconds(self) -> int:
        """Time of all copies."""
        return self.copies * (self.end_picoseconds - self.start_picoseconds)


@dataclass(frozen=True, slots=True)
class Merged:
    """Rows of several sections within a limit of bars."""

    sections: tuple[tuple[TimelineRow, ...], ...]
    window_picoseconds: int
    """Neighbours shorter than this were merged; 0 where every event has its own bar."""
    events: int


def blocks(trace: SequenceTrace) -> tuple[Block, ...]:
    """The items of ``trace`` on the drawn axis; items that take no time are left out."""
    found: list[Block] = []
    at = 0
    for one, copies in trace.items:
        until = at + one.makespan_picoseconds
        if until > at and copies > 0:
            found.append(Block(one.plan.name, copies, at, until))
            at = until
    return tuple(found)


def rows(trace: SequenceTrace) -> tuple[TimelineRow, ...]:
    """A row per task of the first copy of every item, in plan order."""
    found: list[TimelineRow] = []
    shown = [(one, copies) for one, copies in trace.items if one.makespan_picoseconds and copies > 0]
    several = len(shown) > 1 or any(copies > 1 for _, copies in shown)
    drawn = step = 0
    for one, copies in shown:
        note = Block(one.plan.name, copies, 0, 0).label if several else ""
        lanes = lane_names(one)
        for span, lane in zip(one.spans, lanes, strict=True):
            found.append(_row(one.plan.tasks[span.task], span, lane, note, drawn=drawn, step=step))
        drawn += one.makespan_picoseconds
        step += one.makespan_picoseconds * copies
    return tuple(found)


def lane_names(trace: Trace) -> tuple[str, ...]:
    """Lane of each span: its stream, or ``stream (2)`` and so on where it overlaps another span of the stream."""
    tasks = trace.plan.tasks
    free_at: dict[str, list[int]] = {}
    found = [""] * len(trace.spans)
    starts = [span.start_picoseconds for span in trace.spans]
    for index in sorted(range(len(starts)), key=starts.__getitem__):
        span = trace.spans[index]
        stream = tasks[span.task].stream
        tracks = free_at.setdefault(stream, [0])
        number = 0
        while tracks[number] > starts[index]:
            number += 1
            if number == len(tracks):
                tracks.append(0)
        tracks[number] = span.end_picoseconds
        found[index] = stream if number == 0 else f"{stream} ({number + 1})"
    return tuple(found)


def merge(sections: Sequence[Sequence[TimelineRow]], limit: int = LIMIT_BARS) -> Merged:
    """At most about ``limit`` bars with the same total time, bytes, FLOPs and count by lane and kind.

    The axis is cut into windows as short as the limit allows. In each window the rows of one lane that are shorter than
    the window and begin in it are merged by kind and stand one behind the other from the first's start; longer rows
    stay as they are. So bars of a lane never overlap, and none moves by more than a window.

    A lane keeps one bar of each kind it shows, even where those alone exceed ``limit``.
    """
    events = sum(len(section) for section in sections)
    if events <= limit:
        return Merged(tuple(tuple(section) for section in sections), 0, events)
    columns = [_Columns.of(section) for section in sections]
    last = max(row.end_picoseconds for section in sections for row in section).bit_length() + 1
    power = bisect_left(range(last), True, key=lambda power: sum(c.bars(1 << power) for c in columns) <= limit)
    window = 1 << power
    return Merged(tuple(_merge_section(section, window) for section in sections), window, events)


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """How much of each resource is in use over the drawn axis."""

    edges_picoseconds: tuple[float, ...]
    """Where use may change: every start and end, or even steps where those are too many to draw."""
    used_fractions: tuple[tuple[str, tuple[float, ...]], ...]
    """(resource, its use between one edge and the next), resources by name."""


def resource_use(trace: SequenceTrace, limit: int) -> ResourceUse:
    """Use of every resource a task names, in at most ``limit`` steps of time.

    A task's use is its average: what it asks for while alone, times its time alone over its elapsed time. Averages of
    several tasks may add up to slightly more than the whole; the sum is cut to 1.
    """
    marks: dict[str, list[tuple[int, float]]] = {}
    instants = {0}
    drawn = 0
    for one, copies in trace.items:
        if copies <= 0:
            continue
        for span in one.spans:
            elapsed = span.end_picoseconds - span.start_picoseconds
            if elapsed == 0:
                continue
            start, end = drawn + span.start_picoseconds, drawn + span.end_picoseconds
            for resource, demand in demands_of(one.plan.tasks[span.task], span):
                use = demand / FULL * min(1.0, span.alone_picoseconds / elapsed)
                marks.setdefault(resource, []).extend(((start, use), (end, -use)))
                instants.update((start, end))
        drawn += one.makespan_picoseconds
    instants.add(drawn)
    exact = len(instants) <= limit + 1
    edges = np.array(sorted(instants), dtype=np.float64) if exact else np.linspace(0, drawn, limit + 1)
    used = tuple((resource, tuple(_averages(marks[resource], edges).tolist())) for resource in sorted(marks))
    return ResourceUse(tuple(edges.tolist()), used)


def demands_of(task: Task, span: Span) -> Demands:
    """Shares of resources of the variant that ``span`` ran as."""
    for variant in task.variants:
        if variant.alone_picoseconds == span.alone_picoseconds:
            return variant.demands
    return task.demands


def _row(task: Task, span: Span, lane: str, note: str, *, drawn: int, step: int) -> TimelineRow:
    info = task.info
    return TimelineRow(
        lane=lane,
        name=task.name,
        kind=task.kind,
        start_picoseconds=drawn + span.start_picoseconds,
        end_picoseconds=drawn + span.end_picoseconds,
        bytes=info.bytes,
        flops=info.flops,
        bound=info.bound,
        layer=info.layer,
        shape=info.shape,
        note=note,
        step_start_picoseconds=step + span.start_picoseconds,
        step_end_picoseconds=step + span.end_picoseconds,
        alone_picoseconds=span.alone_picoseconds,
        role=info.role,
        parts=info.parts,
    )


def _averages(marks: list[tuple[int, float]], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average level between edges of a step function given as (instant, change)."""
    ordered = np.array(sorted(marks), dtype=np.float64)
    instants, levels = ordered[:, 0], np.cumsum(ordered[:, 1])
    area = np.concatenate(([0.0], np.cumsum(levels[:-1] * np.diff(instants))))
    averages: NDArray[np.float64] = np.diff(np.interp(edges, instants, area)) / np.diff(edges)
    return np.clip(averages, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class _Columns:
    """What counting the bars of a section needs."""

    starts: NDArray[np.int64]
    elapsed: NDArray[np.int64]
    places: NDArray[np.int64]
    """A number for each lane and kind."""
    place_count: int

    @classmethod
    def of(cls, section: Sequence[TimelineRow]) -> _Columns:
        numbers: dict[tuple[str, str], int] = {}
        places = [numbers.setdefault((row.lane, row.kind), len(numbers)) for row in section]
        return cls(
            np.array([row.start_picoseconds for row in section], dtype=np.int64),
            np.array([row.elapsed_picoseconds for row in section], dtype=np.int64),
            np.array(places, dtype=np.int64),
            len(numbers),
        )

    def bars(self, window: int) -> int:
        """Bars left by windows of this length."""
        short = self.elapsed < window
        keys = (self.starts[short] // window) * self.place_count + self.places[short]
        return int(np.count_nonzero(~short)) + len(np.unique(keys))


def _merge_section(section: Sequence[TimelineRow], window: int) -> tuple[TimelineRow, ...]:
    groups: dict[tuple[str, int], dict[str, list[TimelineRow]]] = {}
    merged: list[TimelineRow] = []
    for row in section:
        if row.elapsed_picoseconds >= window:
            merged.append(row)
        else:
            place = (row.lane, row.start_picoseconds // window)
            groups.setdefault(place, {}).setdefault(row.kind, []).append(row)
    for by_kind in groups.values():
        at = min(row.start_picoseconds for members in by_kind.values() for row in members)
        for members in by_kind.values():
            bar = members[0] if len(members) == 1 else _joined(members)
            until = at + sum(row.elapsed_picoseconds for row in members)
            if len(by_kind) > 1 or len(members) > 1:
                bar = replace(bar, start_picoseconds=at, end_picoseconds=until)
            merged.append(bar)
            at = until
    lanes = {lane: number for number, lane in enumerate(dict.fromkeys(row.lane for row in section))}
    return tuple(sorted(merged, key=lambda row: (lanes[row.lane], row.start_picoseconds)))


def _joined(members: list[TimelineRow]) -> TimelineRow:
    """One row for several of one lane and kind; a field on which they differ is left empty."""
    first = members[0]

    def common(values: set[str]) -> str:
        return values.pop() if len(values) == 1 else ""

    layers = {row.layer for row in members}
    return TimelineRow(
        lane=first.lane,
        name=common({row.name for row in members}),
        kind=first.kind,
        start_picoseconds=first.start_picoseconds,
        end_picoseconds=first.end_picoseconds,
        bytes=sum(row.bytes for row in members),
        flops=sum(row.flops for row in members),
        bound=common({row.bound for row in members}),
        layer=layers.pop() if len(layers) == 1 else None,
        shape=common({row.shape for row in members}),
        note=common({row.note for row in members}),
        step_start_picoseconds=min(row.step_start_picoseconds for row in members),
        step_end_picoseconds=max(row.step_end_picoseconds for row in members),
        alone_picoseconds=sum(row.alone_picoseconds for row in members),
        role=common({row.role for row in members}),
        count=sum(row.count for row in members),
    )
