"""Attention: matrix work at the share of peak that attention reaches, exponentials and bytes beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.device.kernel.facts import (
    achieved_rates,
    matrix_rate,
    path_cycles,
    traffic,
    vector_rate,
    whole_cycles,
)
from hwmodel.device.kernel.pipeline import Phase, Pipeline, Stage
from hwmodel.device.sharing import FULL
from hwmodel.units import ceil_div, seconds_to_picoseconds

if TYPE_CHECKING:
    from hwmodel.device.device import Device
    from hwmodel.graph.demand import Attention


def build(demand: Attention, device: Device, cores: int) -> Pipeline:
    """The kernel on ``cores`` matrix cores and the vector cores that go with them.

    Work is even over cores; blocks of keys and values are the steps. Operands come and go on the paths of the GEMM
    stages that move a and the output.
    """
    share = device.attention_fraction.get("backward" if demand.backward else "forward", 1.0)
    rate = matrix_rate(device, demand.format)
    loop = []
    for fact in device.gemm_stages:
        if fact.unit or not {"a", "output"} & set(fact.moves):
            continue
        path = device.paths[fact.path]
        total = demand.read_bytes if "a" in fact.moves else demand.write_bytes
        count = ceil_div(total, cores)
        cycles = path_cycles(path, count, 1)
        loop.append(
            Stage(fact.name, path.name, cycles, count, path.latency_cycles, traffic(device, path, total, total))
        )
    loop.append(Stage("matrix", "matrix", whole_cycles(demand.macs / (rate * cores * share))))
    if demand.softmax_elements:
        lanes = vector_rate(device, "exp") * device.vector.cores * cores / device.matrix.cores
        loop.append(Stage("softmax", "vector", whole_cycles(demand.softmax_elements / lanes)))
    extent = max(1, demand.key_value_rows)
    block = min(extent, *(tile.n for tile in device.matrix.tiles))
    return Pipeline(
        name="backward" if demand.backward else "forward",
        clock_hz=device.clock_hz,
        phases=(Phase("main", cores, cores, extent, block, tuple(loop)),),
        rates=achieved_rates(
            device, [device.paths[fact.path] for fact in device.gemm_stages if fact.path], "attention"
        ),
        holds=tuple((name, FULL) for name in dict.fromkeys((*device.gemm_holds, *device.stream_holds))),
        launch_picoseconds=seconds_to_picoseconds(device.launch_seconds),
    )
