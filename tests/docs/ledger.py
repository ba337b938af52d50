"""What each preset launches, moves and asks of the GEMM, counted on the graphs that this code builds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from hwmodel.config.device import load_device, load_software
from hwmodel.config.workload import load_workload, presets
from hwmodel.device.target import target
from hwmodel.graph import Collective, Fused, Stream
from hwmodel.ops import demand_node
from hwmodel.ops.build import Builder
from hwmodel.recipes.lowering import Lowering
from hwmodel.recipes.recipe import StepKind
from hwmodel.workload import Training
from hwmodel.workload.stages import Stage
from hwmodel.workload.training import lower_stage

if TYPE_CHECKING:
    from hwmodel.graph import Graph, Target

USES = {"x": ("fprop", "wgrad"), "w": ("fprop", "dgrad"), "g": ("dgrad", "wgrad")}
ROWS, COLUMNS = 8192, 16384
PRESETS = tuple(name for name in presets() if name != "bf16")
LAYER = 1


@cache
def machine(device: str, software: str = "mature") -> Target:
    return target(load_device(device), load_software(software))


def delivered(preset: str, role: str, device: str, software: str = "mature") -> Graph:
    """The graph that brings one tensor, on one rank and with nothing fused, to both GEMMs that read it."""
    recipe = replace(presets()[preset], fusion="none")
    low = Lowering(Builder("tensor"), recipe, machine(device, software), step=StepKind())
    tensor = low.builder.input("t", (ROWS, COLUMNS), "bf16")
    delivery = low.deliver(tensor, role=role, uses=USES[role], label="t")
    for use in USES[role]:
        low.fetch(delivery, use)
    return low.builder.graph()


def bytes_per_element(graph: Graph) -> float:
    """Bytes that its kernels read and write, per element of the tensor."""
    demands = [demand_node(node, graph) for node in graph.nodes]
    return sum(demand.bytes for demand in demands if isinstance(demand, Stream)) / (ROWS * COLUMNS)


def launches(graph: Graph) -> int:
    """Kernels it launches."""
    demands = [demand_node(node, graph) for node in graph.nodes]
    return sum(demand.launches for demand in demands if isinstance(demand, Stream))


def bytes_table() -> list[list[str]]:
    """Bytes per element and launches of every preset, by role and machine."""
    machines = {
        "layout-free": ("npu", "mature"),
        "layout-free, `early`": ("npu", "early"),
        "K-contiguous only": ("h100", "mature"),
    }
    rows = [["preset", *(f"{role}, {name}" for name in machines for role in ("X", "W"))]]
    for preset in PRESETS:
        cells = []
        for device, software in machines.values():
            for role in ("x", "w"):
                graph = delivered(preset, role, device, software)
                cells.append(f"{bytes_per_element(graph):.2f} in {launches(graph)}")
        rows.append([f"`{preset}`", *cells])
    return rows


@cache
def layer(preset: str, device: str) -> Graph:
    """One microbatch of two middle layers of Llama 3.1 405B on one rank of tp 4, mature software."""
    loaded = load_workload("llama3_405b", recipe=preset).workload
    assert isinstance(loaded, Training)
    stage = Stage(1, ((LAYER, LAYER + 1),))
    return lower_stage(loaded, loaded.recipe, machine(device), stage, StepKind()).microbatch


def layer_table() -> list[list[str]]:
    """What one layer launches and sends, forward and backward together."""
    rows = [
        ["preset", "kernels", "quantise", "amax", "tiny scale kernels", "max all-reduces", "gathered MB", "NPU K loop"]
    ]
    for preset in ("bf16", *PRESETS):
        graph = layer(preset, "npu")
        nodes = [node for node in graph.nodes if node.layer == LAYER]
        counts = {"quantise": 0, "amax": 0, "scale": 0}
        kernels = maxima = gathered = 0
        for node in nodes:
            demand = demand_node(node, graph)
            kinds = [kind for kind, _ in demand.parts] if isinstance(demand, Fused) else []
            whole = demand.whole if isinstance(demand, Fused) else demand
            if isinstance(whole, Collective):
                maxima += whole.kind == "all_reduce"
                if whole.group == "tp" and whole.kind in ("all_gather", "send_recv"):
                    gathered += whole.sent_bytes
                continue
            kernels += whole.launches if isinstance(whole, Stream) else node.op in ("gemm", "attention")
            for name, ops in (
                ("quantise", ("quantise",)),
                ("amax", ("amax",)),
                ("scale", ("update_scale", "rearrange_scales")),
            ):
                counts[name] += node.op in ops or name in kinds
        numbers = (kernels, *counts.values(), maxima, round(gathered / 1e6))
        rows.append([f"`{preset}`", *map(str, numbers), k_loop(graph)])
    return rows


def k_loop(graph: Graph) -> str:
    """How the GEMMs of a layer apply scales along k."""
    found = set()
    for node in graph.nodes:
        if node.op != "gemm" or node.layer != LAYER:
            continue
        params = node.params
        if params.promote_every:
            found.add(f"breaks every {params.promote_every}")
        elif params.native_block_scales:
            found.add("whole, scales in the unit")
        elif params.epilogue_scale_vectors:
            vectors = params.epilogue_scale_vectors
            found.add(f"whole, {vectors} vector{'s' * (vectors > 1)} at the end")
        else:
            found.add("whole")
    return "; ".join(sorted(found))
