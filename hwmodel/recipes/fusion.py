"""Merges a producer and what is cast or measured right behind it into one kernel, as far as software offers it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hwmodel.graph import Graph, Node, Target
from hwmodel.ops.fused import FusedParams, FusedPart

if TYPE_CHECKING:
    from hwmodel.formats import ScaleLayout

PRODUCERS = frozenset(("rmsnorm", "swiglu"))
CONSUMERS = frozenset(("quantise", "amax"))


def fuse(graph: Graph, level: str, target: Target, *, amax_fuses: bool) -> Graph:
    """The same graph with fused kernels.

    Args:
        graph: nodes in an order that satisfies their dependencies.
        level: 'none' keeps every kernel apart, 'production' merges what ``target`` lists, 'ideal' whatever can be.
        target: says which fused kernels exist.
        amax_fuses: an amax may be found in the producer's kernel (false where the recipe makes it a pass of its own).
    """
    if level == "none":
        return graph
    position = {name: index for index, node in enumerate(graph.nodes) for name in node.outputs}
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    merged: dict[str, Node] = {}
    home: dict[str, str] = {}
    for index, node in enumerate(graph.nodes):
        if node.op not in PRODUCERS:
            continue
        chosen = [
            reader
            for reader in readers.get(node.outputs[0], ())
            if reader.op in CONSUMERS
            and (amax_fuses or reader.op != "amax")
            and all(position.get(name, -1) < index for name in reader.inputs if name != node.outputs[0])
            and (level == "ideal" or kernel_name(node, reader) in target.fused_kernels)
        ]
        if chosen:
            merged[node.name] = _merge(graph, node, chosen, readers)
            home.update((reader.name, node.name) for reader in chosen)
    nodes = tuple(merged.get(node.name, node) for node in graph.nodes if node.name not in home)
    nodes = tuple(replace(node, after=tuple(home.get(name, name) for name in node.after)) for node in nodes)
    written = {name for node in nodes for name in node.outputs}.union(graph.inputs)
    tensors = {name: spec for name, spec in graph.tensors.items() if name in written}
    return replace(graph, nodes=nodes, tensors=tensors)


def kernel_name(producer: Node, consumer: Node) -> str:
    """How software sets name a fused kernel: 'rmsnorm+quantise', 'swiglu_backward+quantise.block', ..."""
    direction = "_backward" if getattr(producer.params, "backward", False) else ""
    return f"{producer.op}{direction}+{consumer.op}{_family(consumer.params.layout)}"


def _family(layout: ScaleLayout) -> str:
    if layout.per_tensor:
        return ""
    return ".row" if layout.columns is None or layout.rows is None else ".block"


def _merge(graph: Graph, producer: Node, consumers: list[Node], readers: dict[str, list[Node]]) -> Node:
    parts = (producer, *consumers)
    inside = {node.name for node in parts}
    made = {name for node in parts for name in node.outputs}
    inputs = tuple(dict.fromkeys(name for node in parts for name in node.inputs if name not in made))
    consumed = set(graph.outputs)
    for name in made:
        if any(reader.name not in inside for reader in readers.get(name, ())):
            consumed.add(name)
    kept = tuple(name for node in parts for name in node.outputs if name in consumed or not _read_inside(name, parts))
    params = FusedParams(
        tuple(FusedPart(node.op, node.params, graph.specs(node.inputs), graph.specs(node.outputs)) for node in parts),
        keeps=tuple(name for name in kept if _read_inside(name, parts)),
    )
    role = "+".join((producer.role, *(node.role.rsplit(".", 1)[-1] for node in consumers)))
    return Node(producer.name, "fused", params, inputs, kept, producer.after, producer.layer, role)


def _read_inside(name: str, parts: tuple[Node, ...]) -> bool:
    return any(name in node.inputs for node in parts)
