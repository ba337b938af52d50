"""How a kernel runs on a device, as plain records: stages, tiles, steps and bytes. Holds no timing formula.

One description, two evaluators: a closed form, and an event simulation that walks it tile by tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.units import ceil_div


@dataclass(frozen=True, slots=True)
class Stage:
    """A path or a compute unit that every tile passes."""

    name: str
    place: str
    """The path it takes or the unit it works on; what a report calls a bound."""
    cycles: int
    """Cycles it needs for one tile, its whole loop, at its own rate; 0 where only shared resources limit it."""
    bytes: int = 0
    """Bytes of one tile that it moves."""
    latency_cycles: int = 0
    """Cycles from asking to the first byte."""
    traffic: tuple[tuple[str, int], ...] = ()
    """(shared resource, bytes) of all tiles together."""
    holds: tuple[str, ...] = ()
    """Unit resources that are busy while it works."""
    behind: tuple[tuple[str, int], ...] = ()
    """(shared resource, bytes) of all tiles that the cache takes at once and hands on while other tiles run: they bound
    the phase as a whole and nobody waits for them."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Tiles that run through the same stages on teams of cores; each team takes one tile after the other.

    A tile's loop has ``extent`` elements in steps of ``step``; stages share a tile's cycles and bytes among its steps
    by their elements. Step i of a stage waits for step i of the stage before it and for one of ``buffers`` between
    them. The loop may break ``breaks`` times per tile for the promotion stages, which share their cycles evenly.
    """

    name: str
    tiles: int
    teams: int
    extent: int
    step: int
    loop: tuple[Stage, ...]
    """In the order data takes."""
    breaks: int = 0
    promotion: tuple[Stage, ...] = ()
    """Scaling and adding up of partial sums at each break."""
    promotion_overlaps: bool = False
    """The unit goes on with the next part of the loop meanwhile; otherwise it waits for every promotion stage."""
    epilogue: tuple[Stage, ...] = ()
    """Once per tile, after its loop; its stages run side by side on parts of the tile."""
    epilogue_overlaps: bool = False
    """It runs under the next tile's loop."""
    buffers: int = 2
    accumulators: int = 1
    latency_picoseconds: int = 0
    """Fixed time on top, such as the hops of a collective."""
    tile_cycles: int = 0
    """Cycles of each tile that nothing hides: its start, and handing its result over."""
    least_picoseconds: int = 0
    """What power alone allows: the phase takes no less."""

    @property
    def steps(self) -> int:
        """Steps of one tile's loop."""
        return ceil_div(self.extent, self.step)

    @property
    def waves(self) -> int:
        """Tiles that the busiest team takes."""
        return ceil_div(self.tiles, self.teams)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages."""
        return (*self.loop, *self.promotion, *self.epilogue)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A kernel: its launches, then its phases one after the other."""

    name: str
    """What sets this candidate apart from others, such as its tile."""
    clock_hz: int
    phases: tuple[Phase, ...]
    rates: tuple[tuple[str, int], ...]
    """(shared resource, bytes per second that this kernel reaches on it)."""
    holds: tuple[tuple[str, int], ...] = ()
    """(unit resource, share held from start to end, 1..2^20)."""
    launches: int = 1
    launch_picoseconds: int = 0
    """Of each launch."""
    cores_held: int = 0
    """Cores it takes from other kernels while it runs."""
