"""What an op is: a name, the kind reports charge it to, and three pure functions of params, shapes and arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hwmodel.errors import ParameterError
from hwmodel.graph import INSTRUCTION_CLASSES, Demand, Graph, Node, Params, TensorSpec
from hwmodel.registry import Registry

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

Tensors = tuple[TensorSpec, ...]
Arrays = tuple["Array", ...]

KINDS = (
    "gemm",
    "attention",
    "elementwise",
    "quantise",
    "amax",
    "transpose",
    "scale",
    "collective",
    "optimizer",
    "bubble",
)
"""Keys of a breakdown that a node can be charged to."""


@dataclass(frozen=True, slots=True)
class Op:
    """A kind of work: what it gives, what it asks of a machine, and what it computes.

    ``infer`` decides shapes and formats of results (their names are given by whoever adds the node); ``demand`` sees
    no array and no device, ``evaluate`` no device and no clock. None for ``evaluate``: it has no arithmetic yet.
    """

    name: str
    kind: str
    params_type: type
    infer: Callable[[Any, Tensors], Tensors]
    demand: Callable[[Any, Tensors, Tensors], Demand]
    evaluate: Callable[[Any, Arrays], Arrays] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError("kind", f"must be one of {', '.join(KINDS)}, got {self.kind!r}")


OPS: Registry[Op] = Registry("op")


def register(op: Op) -> Op:
    """Add ``op`` to `OPS` under its name."""
    return OPS.register(op.name, op)


def infer_node(node: Node, graph: Graph) -> Tensors:
    """What ``node`` gives, by its op and its inputs' specs, under the node's own names."""
    return inferred(OPS.get(node.op), node.params, graph.specs(node.inputs), node.outputs, node.name)


def demand_node(node: Node, graph: Graph) -> Demand:
    """What ``node`` asks of a machine."""
    return OPS.get(node.op).demand(node.params, graph.specs(node.inputs), graph.specs(node.outputs))


def inferred(op: Op, params: Params, inputs: Tensors, names: Sequence[str], node: str) -> Tensors:
    """What ``op`` gives for ``inputs``, named ``names``; errors say which node.

    Raises:
        ParameterError: params of another op, inputs that do not fit, or another number of outputs than names.
    """
    if type(params) is not op.params_type:
        message = f"op {op.name!r} takes {op.params_type.__name__}, got {type(params).__name__}"
        raise ParameterError(f"{node}.params", message)
    try:
        specs = op.infer(params, inputs)
    except ParameterError as error:
        raise ParameterError(f"{node}.{error.field}", error.message) from error
    if len(specs) != len(names):
        message = f"op {op.name!r} gives {len(specs)} tensors here, got {len(names)} names ({', '.join(names)})"
        raise ParameterError(f"{node}.outputs", message)
    return renamed(specs, names)


def renamed(specs: Tensors, names: Sequence[str]) -> Tensors:
    """The same specs under other names, one for each."""
    return tuple(TensorSpec(name, spec.shape, spec.format) for spec, name in zip(specs, names, strict=True))


def unnamed(shape: tuple[int, ...], format: str) -> TensorSpec:
    """The spec of a result that has no name yet."""
    return TensorSpec("", shape, format)


def take(op: str, inputs: Tensors, *counts: int) -> None:
    """Refuse any other number of inputs than ``counts`` allow."""
    if len(inputs) not in counts:
        rule = " or ".join(map(str, counts))
        names = f" ({', '.join(repr(spec.name) for spec in inputs)})" if inputs else ""
        raise ParameterError("inputs", f"op {op!r} reads {rule} tensors, got {len(inputs)}{names}")


def require_shape(spec: TensorSpec, shape: tuple[int, ...], why: str) -> None:
    """Refuse a tensor that has another shape than ``shape``."""
    if spec.shape != shape:
        raise ParameterError("inputs", f"{shown(spec)} must have shape {shape}: {why}")


def shown(spec: TensorSpec) -> str:
    """A tensor as messages show it."""
    return f"{spec.name!r} {spec.shape}"


def bytes_of(specs: Tensors) -> int:
    """Bytes of all ``specs`` together."""
    return sum(spec.bytes for spec in specs)


def instructions(**counts: int) -> tuple[tuple[str, int], ...]:
    """Vector instructions by class, in the order of `INSTRUCTION_CLASSES`, without those that are none.

    Convention of all ops: a load widens on the way and costs nothing, a write of a 16 or 8-bit element costs a cast.
    """
    if unknown := counts.keys() - set(INSTRUCTION_CLASSES):
        raise ParameterError("instructions", f"must be of {', '.join(INSTRUCTION_CLASSES)}, got {sorted(unknown)}")
    return tuple((name, counts[name]) for name in INSTRUCTION_CLASSES if counts.get(name, 0))
