"""Device memory of a training step in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodel.units import ceil_div
from hwmodel.workload.workload import GRADIENT_BYTES

if TYPE_CHECKING:
    from hwmodel.graph import Graph
    from hwmodel.workload import Training
    from hwmodel.workload.training import StageGraphs


@dataclass(frozen=True, slots=True)
class Memory:
    """Peak bytes of one device, by part."""

    parts: Mapping[str, int]
    capacity_bytes: int

    @property
    def peak_bytes(self) -> int:
        """All parts at once."""
        return sum(self.parts.values())

    @property
    def fits(self) -> bool:
        """The peak is within capacity."""
        return self.peak_bytes <= self.capacity_bytes


def pieces_in_flight(workload: Training, rank: int) -> int:
    """Model pieces whose activations pipeline rank ``rank`` holds at its fullest (1F1B, interleaved).

    Source: warm-up depth of the interleaved schedule, Narayanan et al., arXiv:2104.04473, section 2.2.
    """
    layout = workload.layout
    if layout.pp == 1:
        return layout.vp
    whole = workload.microbatches * layout.vp
    if layout.vp == 1:
        return min(whole, layout.pp - rank)
    return min(whole, (layout.pp - rank - 1) * 2 + (layout.vp - 1) * layout.pp + 1)


def training_memory(workload: Training, graphs: StageGraphs, rank: int, capacity_bytes: int) -> Memory:
    """Parameters, their 8-bit copies, gradients, optimiser state and saved activations of pipeline rank ``rank``."""
    optimizer = workload.optimizer
    ranks, _ = workload.layout.group("dp_cp")
    shard = ceil_div(graphs.parameters, ranks) if optimizer.sharded else graphs.parameters
    pieces = pieces_in_flight(workload, rank)
    return Memory(
        {
            "parameters": 2 * graphs.parameters,
            "weight_copies": _copy_bytes(graphs.weights),
            "gradients": GRADIENT_BYTES[optimizer.gradient_format] * graphs.parameters,
            "optimizer": shard * (optimizer.master_bytes + optimizer.moment_bytes),
            "activations": ceil_div(graphs.saved_bytes * pieces, workload.layout.vp),
        },
        capacity_bytes,
    )


def _copy_bytes(weights: Graph) -> int:
    """Casts of the weights that stay for the whole step."""
    return sum(
        graph_tensor.bytes
        for node in weights.nodes
        if node.op in ("quantise", "transpose", "rearrange_scales")
        for graph_tensor in weights.specs(node.outputs)
    )
