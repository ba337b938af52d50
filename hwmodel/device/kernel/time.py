"""Time alone of any demand on a device: the best of its candidate pipelines, each shape computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.device.kernel import attention, collective, gemm, gemm_pipeline, stream
from hwmodel.device.kernel.closed import KernelTime, evaluate, picoseconds
from hwmodel.errors import ParameterError
from hwmodel.graph.demand import Attention, Collective, Demand, Elapsed, Fused, Gemm, Stream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hwmodel.device.device import Device
    from hwmodel.device.kernel.pipeline import Pipeline


class KernelTimer:
    """Times demands on one device and remembers them."""

    __slots__ = ("_best", "_gemm", "_known", "device")

    def __init__(self, device: Device) -> None:
        self.device = device
        self._gemm = gemm.GemmFacts.of(device)
        self._known: dict[tuple[Demand, int], KernelTime] = {}
        self._best: dict[tuple[Demand, int], Pipeline | None] = {}

    def time(self, demand: Demand, cores: int | None = None) -> KernelTime:
        """Time alone of ``demand`` on ``cores`` matrix cores, all of them if None.

        Raises:
            ParameterError: the device lacks a rate, kernel, tile or level that the demand needs, or has fewer cores.
        """
        key = (demand, self._cores(cores))
        if key not in self._known:
            self._known[key], self._best[key] = self._compute(demand, key[1])
        return self._known[key]

    def pipeline(self, demand: Demand, cores: int | None = None) -> Pipeline | None:
        """The pipeline behind ``time``, or None for a demand that runs no kernel (one rank alone, elapsed time)."""
        self.time(demand, cores)
        return self._best[demand, self._cores(cores)]

    def variants(self, demand: Demand) -> tuple[tuple[int, KernelTime], ...]:
        """(cores, time) by cores, most first.

        A matrix kernel has one variant with all cores and one beside each number of cores that collectives hold; any
        other demand has one.
        """
        cores = self.device.matrix.cores
        if not isinstance(demand, Gemm | Attention):
            return ((cores, self.time(demand)),)
        held = {0, *(level.cores_held for level in self.device.levels if level.cores_held < cores)}
        return tuple((cores - taken, self.time(demand, cores - taken)) for taken in sorted(held))

    def _cores(self, cores: int | None) -> int:
        """Matrix cores meant by ``cores``."""
        most = self.device.matrix.cores
        if cores is None:
            return most
        if not 1 <= cores <= most:
            raise ParameterError("cores", f"must be 1 to {most}, got {cores}")
        return cores

    def _compute(self, demand: Demand, cores: int) -> tuple[KernelTime, Pipeline | None]:
        """Time and pipeline of ``demand``, computed anew."""
        match demand:
            case Fused():
                return self._fused(demand, cores)
            case Elapsed():
                return KernelTime(demand.picoseconds, bound="elapsed"), None
            case Collective(ranks=1):
                return KernelTime(0), None
            case Gemm():
                return _best_gemm(demand, self._gemm, cores)
        return _best(_candidates(demand, self.device, cores))

    def _fused(self, demand: Fused, cores: int) -> tuple[KernelTime, Pipeline | None]:
        """The whole as one kernel, with the time of each part alone."""
        whole = self.time(demand.whole, cores)
        parts = tuple((kind, self.time(part, cores).picoseconds) for kind, part in demand.parts)
        time = KernelTime(
            whole.picoseconds,
            whole.demands,
            whole.bound,
            whole.kernel,
            whole.launches,
            whole.launch_picoseconds,
            whole.busy,
            whole.cores_held,
            parts,
        )
        return time, self._best[demand.whole, cores]


def time_alone(demand: Demand, device: Device, *, cores: int | None = None) -> KernelTime:
    """Time alone of one demand; with many, keep a ``KernelTimer``."""
    return KernelTimer(device).time(demand, cores)


def _candidates(demand: Attention | Stream | Collective, device: Device, cores: int) -> Iterable[Pipeline]:
    """Every way to run ``demand``."""
    match demand:
        case Attention():
            return [attention.build(demand, device, cores)]
        case Stream():
            return [stream.build(demand, device, cores)]
        case Collective():
            return collective.candidates(demand, device)


def _best(pipelines: Iterable[Pipeline]) -> tuple[KernelTime, Pipeline | None]:
    """The fastest of ``pipelines``; of equal ones the first."""
    return min(((evaluate(pipeline), pipeline) for pipeline in pipelines), key=lambda pair: pair[0].picoseconds)


def _best_gemm(demand: Gemm, facts: gemm.GemmFacts, cores: int) -> tuple[KernelTime, Pipeline | None]:
    """The fastest tile and split. Candidates whose floor is not below the best are not built."""
    if not demand.macs:
        launch = facts.launch_picoseconds
        return KernelTime(launch, bound="launch", launches=1, launch_picoseconds=launch), None
    best: tuple[int, Pipeline] | None = None
    for choice in gemm.choices(demand, facts, cores):
        if best is not None and choice.floor_picoseconds >= best[0]:
            break
        pipeline = gemm_pipeline.build(demand, facts, cores, choice)
        taken = picoseconds(pipeline)
        if best is None or taken < best[0]:
            best = taken, pipeline
    assert best is not None  # choices gives at least one
    return evaluate(best[1]), best[1]
