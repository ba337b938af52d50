"""Plain records everyone speaks: tensors, nodes, graphs, programs, demands, layouts, targets."""

from __future__ import annotations

from hwmodel.graph.demand import (
    INSTRUCTION_CLASSES,
    Attention,
    Collective,
    Demand,
    Elapsed,
    Fused,
    Gemm,
    Stream,
)
from hwmodel.graph.graph import Graph, Node, Params, Program, Repeat
from hwmodel.graph.layout import Layout
from hwmodel.graph.target import REFERENCE, NativeScaling, Target
from hwmodel.graph.tensor import TensorSpec

__all__ = [
    "INSTRUCTION_CLASSES",
    "REFERENCE",
    "Attention",
    "Collective",
    "Demand",
    "Elapsed",
    "Fused",
    "Gemm",
    "Graph",
    "Layout",
    "NativeScaling",
    "Node",
    "Params",
    "Program",
    "Repeat",
    "Stream",
    "Target",
    "TensorSpec",
]
