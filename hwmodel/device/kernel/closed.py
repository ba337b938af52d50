"""Evaluates a pipeline in closed form: fill, steady state, drain, and the shared resources as lower bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodel.device.sharing import FULL
from hwmodel.units import PICOSECONDS_PER_SECOND, ceil_div, cycles_to_picoseconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hwmodel.device.kernel.pipeline import Phase, Pipeline, Stage

Demands = tuple[tuple[str, int], ...]
"""(resource, share used while alone, 1..FULL), sorted by name."""


@dataclass(frozen=True, slots=True)
class KernelTime:
    """How long a kernel takes on an otherwise idle device, and what it uses meanwhile."""

    picoseconds: int
    demands: Demands = ()
    bound: str = ""
    """What sets the time: 'matrix', 'power', 'vector', a path, a resource, 'latency' (fill and hops) or 'launch'."""
    kernel: str = ""
    """The candidate chosen."""
    launches: int = 0
    launch_picoseconds: int = 0
    """Of all launches, part of ``picoseconds``."""
    busy: tuple[tuple[str, int], ...] = ()
    """(path, unit or resource, picoseconds it works), averaged over cores, sorted by name."""
    cores_held: int = 0
    """Cores it takes from other kernels while it runs."""
    parts: tuple[tuple[str, int], ...] = ()
    """(breakdown kind, picoseconds alone) of a fused kernel's parts, in order."""

    def utilisation(self, place: str) -> float:
        """Share of the time that ``place`` works, 0 to 1."""
        return min(1.0, dict(self.busy).get(place, 0) / self.picoseconds) if self.picoseconds else 0.0


@dataclass(frozen=True, slots=True)
class _Span:
    """Part of a phase: what limits it, in cycles of the cores and in time of the shared resources."""

    cycles: int
    place: str
    picoseconds: int
    resource: str


def picoseconds(pipeline: Pipeline) -> int:
    """Time alone of ``pipeline``.

    A pipeline of steps takes one step of every stage plus, for all further steps, the slowest stage. Shared resources
    bound the steady state from below by all bytes over the rate that the kernel reaches.
    """
    rates = dict(pipeline.rates)
    total = pipeline.launches * pipeline.launch_picoseconds
    for phase in pipeline.phases:
        around, spans = _spans(phase, rates)
        sums = [(around, 0)]
        for span in spans:
            # Cycles are added up before they are converted, so that they are rounded once.
            sums = [
                longer
                for cycles, shared in sums
                for longer in ((cycles + span.cycles, shared), (cycles, shared + span.picoseconds))
            ]
        taken = max(cycles_to_picoseconds(cycles, pipeline.clock_hz) + shared for cycles, shared in sums)
        total += max(taken, _behind(phase, rates)[0], phase.least_picoseconds) + phase.latency_picoseconds
    return total


def evaluate(pipeline: Pipeline) -> KernelTime:
    """Time alone of ``pipeline`` with its demands and bound."""
    rates = dict(pipeline.rates)
    total = picoseconds(pipeline)
    busy: dict[str, int] = {}
    held: dict[str, int] = {}
    for phase in pipeline.phases:
        _add_busy(phase, rates, pipeline.clock_hz, busy, held)
    demands = {name: busy[name] for name in rates if name in busy} | held
    shares = {name: min(FULL, max(1, work * FULL // total)) for name, work in demands.items() if work and total}
    for name, share in pipeline.holds:
        shares[name] = max(share, shares.get(name, 0))
    return KernelTime(
        picoseconds=total,
        demands=tuple(sorted(shares.items())),
        bound=_bound(pipeline, rates),
        kernel=pipeline.name,
        launches=pipeline.launches,
        launch_picoseconds=pipeline.launches * pipeline.launch_picoseconds,
        busy=tuple(sorted(busy.items())),
        cores_held=pipeline.cores_held,
    )


def _bound(pipeline: Pipeline, rates: dict[str, int]) -> str:
    """What the largest part of the time is due to."""
    reasons = {"launch": pipeline.launches * pipeline.launch_picoseconds, "latency": 0}
    for phase in pipeline.phases:
        around, spans = _spans(phase, rates)
        reasons["latency"] += cycles_to_picoseconds(around, pipeline.clock_hz) + phase.latency_picoseconds
        behind, name = max(_behind(phase, rates), (phase.least_picoseconds, "power"))
        if behind > sum(max(cycles_to_picoseconds(span.cycles, pipeline.clock_hz), span.picoseconds) for span in spans):
            reasons[name] = reasons.get(name, 0) + behind
            continue
        for span in spans:
            alone = cycles_to_picoseconds(span.cycles, pipeline.clock_hz)
            due, reason = (span.picoseconds, span.resource) if span.picoseconds > alone else (alone, span.place)
            reasons[reason] = reasons.get(reason, 0) + due
    return max(reasons, key=lambda name: (reasons[name], name))


def _spans(phase: Phase, rates: dict[str, int]) -> tuple[int, list[_Span]]:
    """Cycles of fill and drain, and the parts of the steady state that follow one another."""
    work = _loop_work(phase)
    place, loop_cycles, _ = max(work, key=lambda part: part[1])
    parts = [part[2] for part in work]
    around = sum(stage.latency_cycles for stage in phase.stages) + sum(parts) - max(parts)
    around += phase.waves * phase.tile_cycles
    body = (*phase.loop, *phase.promotion)
    if not phase.epilogue:
        return around, [_span(phase.waves * loop_cycles, place, body, rates)]
    last = max(phase.epilogue, key=lambda stage: stage.cycles)
    if not phase.epilogue_overlaps:
        return around, [
            _span(phase.waves * loop_cycles, place, body, rates),
            _span(phase.waves * last.cycles, last.place, phase.epilogue, rates),
        ]
    if last.cycles > loop_cycles:
        place, loop_cycles = last.place, last.cycles
    return around + last.cycles, [_span(phase.waves * loop_cycles, place, phase.stages, rates)]


def _behind(phase: Phase, rates: dict[str, int]) -> tuple[int, str]:
    """Time and name of the resource that takes longest over what the cache hands on and all else it moves."""
    if not any(stage.behind for stage in phase.stages):
        return 0, ""
    return max((ceil_div(moved * PICOSECONDS_PER_SECOND, rates[name]), name) for name, moved in _all_traffic(phase))


def _all_traffic(phase: Phase) -> list[tuple[str, int]]:
    """(shared resource, bytes) of a phase, those that the cache hands on included."""
    traffic = _traffic(phase.stages)
    for stage in phase.stages:
        for name, moved in stage.behind:
            traffic[name] = traffic.get(name, 0) + moved
    return list(traffic.items())


def _loop_work(phase: Phase) -> list[tuple[str, int, int]]:
    """(place, cycles of a tile, cycles of a step) of everything that runs side by side in the loop.

    Where the promotion does not overlap, the last stage of the loop (the unit) and the promotion take turns and count
    as one.
    """
    first = min(phase.step, phase.extent)
    work = [(stage.place, stage.cycles, ceil_div(stage.cycles * first, phase.extent)) for stage in phase.loop]
    if not phase.promotion:
        return work
    breaks = max(1, phase.breaks)
    parts = [(stage.place, stage.cycles, ceil_div(stage.cycles, breaks)) for stage in phase.promotion]
    if phase.promotion_overlaps:
        return work + parts
    place, cycles, step = work.pop()
    return [*work, (place, cycles + sum(part[1] for part in parts), step + sum(part[2] for part in parts))]


def _span(cycles: int, place: str, stages: Iterable[Stage], rates: dict[str, int]) -> _Span:
    """What limits ``stages`` that run side by side."""
    slowest, resource = 0, ""
    for name, moved in _traffic(stages).items():
        taken = ceil_div(moved * PICOSECONDS_PER_SECOND, rates[name])
        if taken > slowest:
            slowest, resource = taken, name
    return _Span(cycles, place, slowest, resource)


def _traffic(stages: Iterable[Stage]) -> dict[str, int]:
    """Bytes on each shared resource."""
    traffic: dict[str, int] = {}
    for stage in stages:
        for name, moved in stage.traffic:
            traffic[name] = traffic.get(name, 0) + moved
    return traffic


def _add_busy(phase: Phase, rates: dict[str, int], clock_hz: int, busy: dict[str, int], held: dict[str, int]) -> None:
    """Add the time each place works, and the time held units are busy, averaged over teams."""
    for name, moved in _all_traffic(phase):
        busy[name] = busy.get(name, 0) + ceil_div(moved * PICOSECONDS_PER_SECOND, rates[name])
    for stage in phase.stages:
        works = phase.tiles * stage.cycles * PICOSECONDS_PER_SECOND // (phase.teams * clock_hz)
        if works and stage.place not in rates:
            busy[stage.place] = busy.get(stage.place, 0) + works
        for name in stage.holds:
            held[name] = held.get(name, 0) + works
