"""Nodes, graphs and programs: what runs, with no word on how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hwmodel.errors import ParameterError
from hwmodel.graph.tensor import TensorSpec

Params = Any
"""A frozen slots dataclass of one op; only that op's file knows its type."""


@dataclass(frozen=True, slots=True)
class Node:
    """One kernel to be: an op with its params, the tensors it reads and those it writes."""

    name: str
    op: str
    params: Params
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    after: tuple[str, ...] = ()
    """Names of nodes that must end first although no tensor passes (order written by the builder)."""
    layer: int | None = None
    role: str = ""
    """What it is in the model, such as 'qkv.fprop' or 'norm1'."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in the order they were written, with every tensor they name.

    ``inputs`` exist before the first node (weights, activations from elsewhere, state carried from an earlier step);
    every other tensor is written by exactly one node. `hwmodel.graph.order.check` refuses anything else by name.
    """

    name: str
    tensors: Mapping[str, TensorSpec]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ()

    def specs(self, names: tuple[str, ...]) -> tuple[TensorSpec, ...]:
        """The specs of ``names``, in that order."""
        return tuple(self.tensors[name] for name in names)


@dataclass(frozen=True, slots=True)
class Repeat:
    """A body that runs ``count`` times, one copy after the other, joined at the copies' edges."""

    body: Program
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ParameterError("count", f"must be >= 1, got {self.count}")


@dataclass(frozen=True, slots=True)
class Program:
    """Graphs and repeats that run one after the other; all work of one item ends before the next begins."""

    name: str
    items: tuple[Graph | Repeat, ...]
    facts: Mapping[str, int] = field(default_factory=dict)
    """Counts that reports need and the nodes do not show, such as model FLOPs per rank."""

    def graphs(self) -> tuple[tuple[Graph, int], ...]:
        """Every graph with how often it runs, in order of first run."""
        found: list[tuple[Graph, int]] = []
        for item in self.items:
            if isinstance(item, Graph):
                found.append((item, 1))
            else:
                found.extend((graph, count * item.count) for graph, count in item.body.graphs())
        return tuple(found)
