"""Vector and memory kernels: bytes through the device's stages beside vector instructions, and a last reduction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.device.kernel.facts import achieved_rates, moved, path_cycles, traffic, vector_rate, whole_cycles
from hwmodel.device.kernel.pipeline import Phase, Pipeline, Stage
from hwmodel.device.sharing import FULL
from hwmodel.units import ceil_div, seconds_to_picoseconds

if TYPE_CHECKING:
    from hwmodel.device.device import Device
    from hwmodel.graph.demand import Stream


def build(demand: Stream, device: Device, cores: int) -> Pipeline:
    """The kernel, on the vector cores that go with ``cores`` matrix cores.

    Vector cores are lost with matrix cores only where both kinds of kernel hold the same unit (a GPU's cores). With
    less than a piece of data per core, some cores stay idle.
    """
    available = device.vector.cores
    if set(device.stream_holds) & set(device.gemm_holds):
        available = max(1, available * cores // device.matrix.cores)
    piece = device.vector.piece_bytes
    used = min(available, max(1, ceil_div(demand.bytes, piece))) if piece and demand.bytes else available
    totals = {"read": demand.read_bytes, "write": demand.write_bytes}
    loop = []
    for fact in device.stream_stages:
        if fact.unit:
            loop.append(Stage(fact.name, "vector", _vector_cycles(demand, device, used)))
            continue
        path = device.paths[fact.path]
        total = moved(fact, totals)
        count = ceil_div(total, used)
        loop.append(
            Stage(
                name=fact.name,
                place=path.name,
                cycles=path_cycles(path, count, 1),
                bytes=count,
                latency_cycles=path.latency_cycles if total else 0,
                traffic=traffic(device, path, total, total) if total else (),
            )
        )
    extent = max(1, ceil_div(demand.bytes, used))
    phases = [Phase("main", used, used, extent, min(extent, piece) or 1, tuple(loop))]
    if demand.reduces_across_cores:
        last = Stage("reduction", "reduction", device.vector.reduction_cycles)
        phases.append(Phase("reduction", 1, 1, 1, 1, (last,)))
    paths = [device.paths[fact.path] for fact in device.stream_stages if fact.path]
    return Pipeline(
        name=f"{used} vector cores",
        clock_hz=device.clock_hz,
        phases=tuple(phases),
        rates=achieved_rates(device, paths, demand.access),
        holds=tuple((name, max(1, FULL * used // device.vector.cores)) for name in device.stream_holds),
        launches=demand.launches,
        launch_picoseconds=seconds_to_picoseconds(device.launch_seconds),
    )


def _vector_cycles(demand: Stream, device: Device, cores: int) -> int:
    """Cycles the instructions take on each of ``cores`` vector cores."""
    return whole_cycles(sum(count / (vector_rate(device, name) * cores) for name, count in demand.instructions))
