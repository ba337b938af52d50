"""Counts, the slowest kernels and Amdahl's bound of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodel.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hwmodel.engine.trace import SequenceTrace
    from hwmodel.schedules.plan import Task

_WAITS = frozenset({"bubble", "host", "idle"})


@dataclass(frozen=True, slots=True)
class Counts:
    """How much of each thing a run did, repeats counted. Waits, which launch nothing, count nowhere."""

    kernels: int
    """Launches."""
    amax_passes: int
    """Kernels that find an amax, as their kind or as a part of a fused one."""
    amax_bytes: int
    """Bytes moved by kernels that do nothing but find an amax; inside another kernel it moves none of its own."""
    quantise_passes: int
    """Kernels that quantise, as their kind or as a part of a fused one."""
    transposes: int
    collectives: int
    events: int
    """Events of the engine, as if every copy had been simulated."""


@dataclass(frozen=True, slots=True)
class KernelTotal:
    """All kernels of one role (or op, where no role is given) and one shape."""

    name: str
    op: str
    kind: str
    shape: str
    bound: str
    """What sets the time alone of most of it."""
    calls: float
    """Mean per step; an int where it is whole."""
    total_picoseconds: int
    """Mean per step, rounded down."""
    share_fraction: float
    """Of the mean step. Kernels that overlap may add up to more than 1."""


def count(trace: SequenceTrace) -> Counts:
    """What a run did, repeats counted."""
    kernels = amax_bytes = events = 0
    passes = dict.fromkeys(("amax", "quantise", "transpose", "collective"), 0)
    for one, copies in trace.items:
        events += one.events * copies
        for span in one.spans:
            task = one.plan.tasks[span.task]
            info = task.info
            if info.launches == 0:
                continue
            kernels += info.launches * copies
            if info.parts:
                for kind in {kind for kind, _ in info.parts} & passes.keys():
                    passes[kind] += copies
            elif task.kind in passes and info.op != "dequantise":
                passes[task.kind] += copies
                if task.kind == "amax":
                    amax_bytes += info.bytes * copies
    return Counts(
        kernels=kernels,
        amax_passes=passes["amax"],
        amax_bytes=amax_bytes,
        quantise_passes=passes["quantise"],
        transposes=passes["transpose"],
        collectives=passes["collective"],
        events=events,
    )


def slowest_kernels(steps: Sequence[tuple[SequenceTrace, int]], n: int = 5) -> tuple[KernelTotal, ...]:
    """The ``n`` kernels by role and shape that took longest in total, slowest first; equals by name, then shape.

    Args:
        steps: the kinds of step of a period, each with how often it occurs.
        n: how many kernels at most.
    """
    picoseconds: dict[tuple[str, str], int] = {}
    calls: dict[tuple[str, str], int] = {}
    samples: dict[tuple[str, str], Task] = {}
    bounds: dict[tuple[str, str], dict[str, int]] = {}
    for one, copies in ((one, copies * often) for trace, often in steps for one, copies in trace.items):
        for span in one.spans:
            task = one.plan.tasks[span.task]
            if task.kind in _WAITS:
                continue
            group = (task.info.role or task.info.op or task.name, task.info.shape)
            elapsed = (span.end_picoseconds - span.start_picoseconds) * copies
            picoseconds[group] = picoseconds.get(group, 0) + elapsed
            calls[group] = calls.get(group, 0) + copies
            samples.setdefault(group, task)
            by_bound = bounds.setdefault(group, {})
            by_bound[task.info.bound] = by_bound.get(task.info.bound, 0) + elapsed
    period = sum(often for _, often in steps)
    makespan = sum(trace.makespan_picoseconds * often for trace, often in steps)
    slowest = sorted(picoseconds, key=lambda group: (-picoseconds[group], group))[:n]
    return tuple(
        KernelTotal(
            name=group[0],
            op=samples[group].info.op,
            kind=samples[group].kind,
            shape=group[1],
            bound=_largest(bounds[group]),
            calls=mean(calls[group], period),
            total_picoseconds=picoseconds[group] // period,
            share_fraction=picoseconds[group] / makespan if makespan else 0.0,
        )
        for group in slowest
    )


def mean(total: int, steps: int) -> float:
    """``total`` per step, an int where it is whole."""
    return total / steps if total % steps else total // steps


def gemm_share_fraction(breakdown_picoseconds: Mapping[str, int]) -> float:
    """Share of the step charged to GEMMs; 0 for an empty step."""
    total = sum(breakdown_picoseconds.values())
    return breakdown_picoseconds.get("gemm", 0) / total if total else 0.0


def speedup_ceiling(baseline_breakdown: Mapping[str, int]) -> float | None:
    """Speedup over the baseline if its GEMMs took no time (Amdahl); None where nothing else takes any time."""
    rest = sum(baseline_breakdown.values()) - baseline_breakdown.get("gemm", 0)
    return sum(baseline_breakdown.values()) / rest if rest else None


def amdahl_speedup(share_fraction: float, factor: float) -> float:
    """Speedup of the whole when ``share_fraction`` of it becomes ``factor`` times faster."""
    if not 0 <= share_fraction <= 1:
        raise ParameterError("share_fraction", f"must be within 0..1, got {share_fraction!r}")
    if not factor > 0:
        raise ParameterError("factor", f"must be > 0, got {factor!r}")
    return 1 / (1 - share_fraction + share_fraction / factor)


def _largest(amounts: Mapping[str, int]) -> str:
    """Key of the largest amount, the first by name of equals."""
    return min(amounts, key=lambda name: (-amounts[name], name))
