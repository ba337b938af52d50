"""Lowers a graph written by hand: ops in any order, and linear layers that the recipe brings into its form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hwmodel.errors import ParameterError
from hwmodel.graph import Graph, Node, Target, TensorSpec
from hwmodel.graph.order import order
from hwmodel.ops.build import Builder
from hwmodel.recipes.copies import Delivery
from hwmodel.recipes.lowering import Lowering
from hwmodel.workload.workload import HandGraph, OpLine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hwmodel.recipes.recipe import Recipe, StepKind

LINEAR = "linear"
BACKWARD = ".backward"
"""End of the name under which the backward of a linear layer is ordered."""
_FIELDS = ("inputs", "outputs", "params")


def lower_hand(workload: HandGraph, recipe: Recipe, target: Target, step: StepKind) -> Graph:
    """The graph of one step.

    A linear layer reads x (T, K) and w (N, K) and gives y (T, N). With its backward it also reads ``<y>.grad``, which
    is an input of the graph if nothing writes it, and gives ``<x>.grad`` and, in fp32, ``<w>.grad``.

    Raises:
        GraphError: ops that wait for each other, a tensor that is read and nowhere made, or one that is made twice.
        ParameterError: an op refuses its params or inputs; the field is the place in ``workload``, such as
            ``ops.2.inputs``.
        RefusedError: the recipe cannot be applied to a tensor of this shape.
    """
    low = Lowering(Builder(workload.name), recipe, target, step=step)
    hand = _Hand(workload, low)
    for turn in _in_order(workload):
        hand.add(turn)
    low.update_state("backward" if hand.in_backward else "forward")
    return low.graph()


def line_name(line: OpLine, index: int) -> str:
    """What the node of an op is called: its name, else its first output."""
    return line.name or (line.outputs[0] if line.outputs else f"{line.op}.{index}")


@dataclass(frozen=True, slots=True)
class Turn:
    """One op whose turn it is, or the backward of a linear layer."""

    line: OpLine
    index: int
    backward: bool = False


def turns_of(workload: HandGraph) -> list[Turn]:
    """The ops as written, then the backward of linear layers in reverse."""
    forward = [Turn(line, index) for index, line in enumerate(workload.ops)]
    behind = [Turn(turn.line, turn.index, backward=True) for turn in forward if _has_backward(turn.line)]
    return [*forward, *reversed(behind)]


def outline(workload: HandGraph, turns: list[Turn], also_given: frozenset[str] = frozenset()) -> Graph:
    """What each turn reads and writes, as far as order goes; ``also_given`` exists beside the listed tensors."""
    nodes = [_node(turn) for turn in turns]
    written = {name for node in nodes for name in node.outputs}
    given = {line.name for line in workload.tensors} | also_given
    given |= {turn.line.outputs[0] + ".grad" for turn in turns if turn.backward}
    names = written | given | {name for node in nodes for name in node.inputs}
    specs = {name: TensorSpec(name, (1,), "bf16") for name in sorted(names)}
    return Graph(workload.name, specs, tuple(nodes), tuple(sorted(given - written)))


def _in_order(workload: HandGraph) -> list[Turn]:
    """Every turn such that each comes behind all it needs."""
    for index, line in enumerate(workload.ops):
        if line.op == LINEAR and not is_layer(line):
            message = (
                f"op 'linear' reads x and w and gives y, got {len(line.inputs)} inputs and {len(line.outputs)} outputs"
            )
            raise ParameterError(f"ops.{index}.inputs", message)
    turns = turns_of(workload)
    made = outline(workload, turns)
    by_name = {node.name: turn for node, turn in zip(made.nodes, turns, strict=True)}
    return [by_name[node.name] for node in order(made)]


def is_layer(line: OpLine) -> bool:
    """A linear layer that reads x and w and gives y."""
    return line.op == LINEAR and (len(line.inputs), len(line.outputs)) == (2, 1)


def layer_uses(ops: Iterable[OpLine], tensor: str, role: str) -> tuple[str, ...]:
    """The GEMMs of linear layers among ``ops`` that read a tensor in a role."""
    if role == "g":
        return ("dgrad", "wgrad")
    which = 0 if role == "x" else 1
    readers = [line for line in ops if is_layer(line) and line.inputs[which] == tensor]
    second = "wgrad" if role == "x" else "dgrad"
    return ("fprop", second) if any(line.backward for line in readers) else ("fprop",)


def _has_backward(line: OpLine) -> bool:
    return is_layer(line) and line.backward


def _node(turn: Turn) -> Node:
    """What an op reads and writes, as far as order goes."""
    line, name = turn.line, line_name(turn.line, turn.index)
    if not turn.backward:
        return Node(name, line.op, None, line.inputs, line.outputs)
    (x, w), (y,) = line.inputs, line.outputs
    return Node(name + BACKWARD, LINEAR, None, (f"{y}.grad", x, w), (f"{x}.grad", f"{w}.grad"), after=(name,))


@dataclass(slots=True)
class _Hand:
    """The graph so far, and the casts that several layers share."""

    workload: HandGraph
    low: Lowering
    in_backward: bool = False
    deliveries: dict[tuple[str, str], Delivery] = field(default_factory=dict)

    def add(self, turn: Turn) -> None:
        """The nodes of one op."""
        line, name = turn.line, line_name(turn.line, turn.index)
        for tensor in line.inputs:
            self.given(tensor)
        try:
            if turn.backward:
                self.backward(line, name)
            elif line.op == LINEAR:
                self.forward(line, name)
            else:
                self.low.builder.add(line.op, line.params, line.inputs, line.outputs, name=name, role=name)
        except ParameterError as error:
            raise ParameterError(place(turn.index, error.field), error.message) from error
        for tensor in line.outputs:
            self.check_declared(tensor)

    def forward(self, line: OpLine, name: str) -> None:
        """Fprop."""
        (x, w), (y,), low = line.inputs, line.outputs, self.low
        a, b = self.delivered(x, "x", name), self.delivered(w, "w", name)
        low.gemm(low.fetch(a, "fprop"), low.fetch(b, "fprop"), use="fprop", out=y, label=f"{name}.fprop")

    def backward(self, line: OpLine, name: str) -> None:
        """Dgrad and wgrad; the amaxes of the forward pass are spent before the first of them."""
        (x, w), (y,), low = line.inputs, line.outputs, self.low
        if not self.in_backward:
            low.update_state("forward")
            self.in_backward = True
        gradient = f"{y}.grad"
        if not self.given(gradient):
            low.state(gradient, low.builder.spec(y).shape, "bf16")
        g, a, b = self.delivered(gradient, "g", name), self.delivered(x, "x", name), self.delivered(w, "w", name)
        low.gemm(low.fetch(g, "dgrad"), low.fetch(b, "dgrad"), use="dgrad", out=f"{x}.grad", label=f"{name}.dgrad")
        low.gemm(low.fetch(g, "wgrad"), low.fetch(a, "wgrad"), use="wgrad", out=f"{w}.grad", label=f"{name}.wgrad")
        for tensor in (f"{x}.grad", f"{w}.grad"):
            self.check_declared(tensor)

    def delivered(self, tensor: str, role: str, label: str) -> Delivery:
        """A tensor in the forms that all layers that read it in this role need, cast once."""
        if (tensor, role) not in self.deliveries:
            shown = f"{label}.grad" if role == "g" else label
            uses = layer_uses(self.workload.ops, tensor, role)
            self.deliveries[tensor, role] = self.low.deliver(tensor, role=role, uses=uses, label=shown)
        return self.deliveries[tensor, role]

    def given(self, tensor: str) -> bool:
        """Whether the tensor exists, after making it an input of the graph where the workload lists it."""
        if self.low.builder.has(tensor):
            return True
        for line in self.workload.tensors:
            if line.name == tensor:
                self.low.state(tensor, line.shape, line.format)
                return True
        return False

    def check_declared(self, tensor: str) -> None:
        """A tensor that is listed and made has the listed shape and format."""
        made = self.low.builder.spec(tensor)
        for line in self.workload.tensors:
            if line.name == tensor and (line.shape, line.format) != (made.shape, made.format):
                message = f"an op gives it as {made.shape} {made.format}, got {line.shape} {line.format}"
                raise ParameterError(f"tensors.{tensor}", message)


def place(index: int, refused: str) -> str:
    """Where in the workload a field stands that a node refused as ``node.field``."""
    key = refused.rpartition(".")[2]
    if key == "params":
        return f"ops.{index}"
    return f"ops.{index}.{key}" if key in _FIELDS else f"ops.{index}.params.{key}"
