"""What happened: spans in integer picoseconds, repeats kept as counts and expanded only when asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodel.schedules.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Span:
    """One task as it happened; ``task`` is its index in the plan."""

    task: int
    start_picoseconds: int
    end_picoseconds: int
    alone_picoseconds: int
    """Time alone of the variant it ran as."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of one plan, in plan order, starting at 0."""

    plan: Plan
    spans: tuple[Span, ...]
    events: int
    """Events the engine handled to get here."""

    @property
    def makespan_picoseconds(self) -> int:
        """End of the last span, 0 for an empty plan."""
        return max((span.end_picoseconds for span in self.spans), default=0)


@dataclass(frozen=True, slots=True)
class SequenceTrace:
    """Traces that ran one after the other, each ``count`` times."""

    name: str
    items: tuple[tuple[Trace, int], ...]

    @property
    def makespan_picoseconds(self) -> int:
        """End of the last copy of the last item."""
        return sum(trace.makespan_picoseconds * count for trace, count in self.items)

    def expand(self, limit_copies: int | None = None) -> Iterator[tuple[Trace, int, int]]:
        """(trace, copy number, offset in picoseconds) of each copy, at most ``limit_copies`` of one item."""
        offset = 0
        for trace, count in self.items:
            shown = count if limit_copies is None else min(count, limit_copies)
            for copy in range(shown):
                yield trace, copy, offset + copy * trace.makespan_picoseconds
            offset += count * trace.makespan_picoseconds
