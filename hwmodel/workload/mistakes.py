"""Every mistake in a graph written by hand at once, each at its place; one that follows from another is left out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hwmodel.errors import ParameterError, RefusedError, RegistryError, nearest
from hwmodel.graph import REFERENCE, Graph, TensorSpec
from hwmodel.graph.order import faults
from hwmodel.ops import OPS
from hwmodel.ops.base import inferred
from hwmodel.ops.build import Builder
from hwmodel.ops.gemm import GemmParams
from hwmodel.recipes.lowering import Lowering
from hwmodel.recipes.recipe import StepKind
from hwmodel.workload.hand import LINEAR, Turn, is_layer, layer_uses, line_name, outline, place, turns_of
from hwmodel.workload.workload import HandGraph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hwmodel.graph.order import Fault
    from hwmodel.recipes.recipe import Recipe
    from hwmodel.workload.workload import OpLine

GRADIENT = ".grad"


@dataclass(frozen=True, slots=True)
class Doubts:
    """What cannot be said of a graph because a part of its file is malformed."""

    ops: frozenset[int] = frozenset()
    """Ops of which only what they read and write is known."""
    tensors: frozenset[str] = frozenset()
    """Tensors of unknown shape or format that exist before the first op."""
    more_tensors: bool = False
    """There are tensors whose names are not known."""


def hand_mistakes(
    workload: HandGraph, recipe: Recipe | None, doubts: Doubts = Doubts()
) -> list[ParameterError | RefusedError]:
    """What is wrong with a graph, in no order; the field of each is the place in ``workload``, as ``ops.2.inputs.0``.

    Args:
        workload: the graph, with malformed ops as far as they can be read.
        recipe: what linear layers are cast by; None if that is not known.
        doubts: what is malformed.
    """
    if not workload.ops:
        return [ParameterError("ops", "has no ops")]
    look = _Look(workload, doubts)
    look.structure()
    look.shapes()
    return [*look.found, *(() if recipe is None else look.refusals(recipe))]


@dataclass(slots=True)
class _Look:
    """One graph with what was found so far."""

    workload: HandGraph
    doubts: Doubts
    found: list[ParameterError | RefusedError] = field(default_factory=list)
    specs: dict[str, TensorSpec | None] = field(default_factory=dict)
    """Tensors that exist by now; None for one whose shape or format cannot be told."""
    hints: int = 20
    """Names that are still compared with all known ones."""
    turns: list[Turn] = field(init=False)
    graph: Graph = field(init=False)

    def __post_init__(self) -> None:
        ops = self.workload.ops
        # What a malformed op is may be a linear layer with gradients of what it reads.
        maybe = {name + GRADIENT for index in self.doubts.ops for name in ops[index].inputs}
        self.turns = [turn for turn in turns_of(self.workload) if not (turn.backward and turn.index in self.doubts.ops)]
        self.graph = outline(self.workload, self.turns, self.doubts.tensors | maybe)

    # Names and order

    def structure(self) -> None:
        """Names that do not fit together, and ops that wait for each other."""
        blamed: dict[int, set[str]] = defaultdict(set)
        loops: list[set[int]] = []
        for fault in faults(self.graph):
            turns = [self.turns[node] for node in fault.nodes]
            if fault.kind == "name":
                self._name(fault, turns, blamed)
            elif fault.kind == "written":
                self._written(fault, turns, blamed)
            elif fault.kind == "read" and not self.doubts.more_tensors:
                self._read(fault, turns[0])
            elif fault.kind == "cycle":
                ops = {turn.index for turn in turns}
                if not any(ops <= loop for loop in loops):
                    loops.append(ops)
                    self.note(f"ops.{min(ops)}", fault.message)

    def _name(self, fault: Fault, turns: list[Turn], blamed: dict[int, set[str]]) -> None:
        """Two nodes of one name; where both are called after what they write, that is what is wrong."""
        first, second = turns
        if not first.line.name and not second.line.name:
            return
        if second.backward and fault.kind in blamed[second.index]:
            return
        blamed[second.index].add(fault.kind)
        key = "name" if second.line.name else "outputs.0"
        self.note(f"ops.{second.index}.{key}", f"{fault.message}, the other is ops.{first.index}")

    def _written(self, fault: Fault, turns: list[Turn], blamed: dict[int, set[str]]) -> None:
        """A tensor of two writers: the one that stands later in the file is to blame."""
        turn = max(turns, key=lambda turn: (turn.index, turn.backward))
        if any(other.backward and fault.kind in blamed[other.index] for other in turns):
            return  # two layers that give one output give the gradients of what they read twice as well
        blamed[turn.index].add(fault.kind)
        outputs = turn.line.outputs
        where = f"ops.{turn.index}"
        if not turn.backward:
            last = len(outputs) - 1 - outputs[::-1].index(fault.tensor)
            where = f"{where}.outputs.{last}"
        self.note(where, fault.message)

    def _read(self, fault: Fault, turn: Turn) -> None:
        """A read of what nobody writes."""
        if turn.backward and fault.tensor in turn.line.inputs:
            return  # its forward reads it too
        close = None
        if self.hints:  # each costs a look at every name
            self.hints -= 1
            known = {*self.graph.inputs, *(name for node in self.graph.nodes for name in node.outputs)}
            close = nearest(fault.tensor, known)
        hint = f"; did you mean {close!r}?" if close is not None else ""
        where = f"ops.{turn.index}.inputs.{turn.line.inputs.index(fault.tensor)}"
        self.note(where, fault.message + hint)

    # Shapes

    def shapes(self) -> None:
        """What ops refuse of their inputs, as far as these are known."""
        self.specs = dict.fromkeys(self.graph.inputs)
        for line in self.workload.tensors:
            if line.name in self.specs and line.name not in self.doubts.tensors:
                self.specs[line.name] = TensorSpec(line.name, line.shape, line.format)
        refused: set[int] = set()
        for turn in self._ready():
            try:
                made = self._made(turn) if turn.index not in {*self.doubts.ops, *refused} else {}
            except ParameterError as error:
                self.note(place(turn.index, error.field), error.message)
                refused.add(turn.index)
                made = {}
            outputs = self._outputs(turn)
            self.specs |= {name: made.get(name, self._listed(name)) for name in outputs if name not in self.specs}
            self._declared(made)

    def _ready(self) -> Iterator[Turn]:
        """The turns such that each comes behind all it needs, without those that wait for each other or for nothing."""
        writers: dict[str, int] = {}
        for at, node in enumerate(self.graph.nodes):
            for name in node.outputs:
                writers.setdefault(name, at)
        given = set(self.graph.inputs)
        places = {node.name: at for at, node in reversed(list(enumerate(self.graph.nodes)))}
        waits: dict[int, int] = {}
        followers: dict[int, list[int]] = defaultdict(list)
        for at, node in enumerate(self.graph.nodes):
            missing = [name for name in node.inputs if name not in given and name not in writers]
            before = {writers[name] for name in node.inputs if name not in given and name in writers}
            before |= {places[name] for name in node.after}
            waits[at] = len(before) + len(missing)
            for other in before:
                followers[other].append(at)
        ready = [at for at, count in waits.items() if not count]
        for at in ready:  # grows while it is walked
            yield self.turns[at]
            for other in followers[at]:
                waits[other] -= 1
                if not waits[other]:
                    ready.append(other)

    def _made(self, turn: Turn) -> dict[str, TensorSpec]:
        """What a turn gives, empty where its inputs are not known.

        Raises:
            ParameterError: the op refuses its inputs.
        """
        line, name = turn.line, line_name(turn.line, turn.index)
        if line.op == LINEAR:
            return self._layer(turn, name) if is_layer(line) else {}
        inputs = self._known(line.inputs)
        if inputs is None:
            return {}
        try:
            op = OPS.get(line.op)
        except RegistryError:
            return {}
        return {spec.name: spec for spec in inferred(op, line.params, inputs, line.outputs, name)}

    def _layer(self, turn: Turn, name: str) -> dict[str, TensorSpec]:
        """The results of a linear layer's GEMMs."""
        (x, w), (y,) = turn.line.inputs, turn.line.outputs
        if not turn.backward:
            return self._gemm(GemmParams(transpose_b=True), (x, w), y, name)
        gradient, output = y + GRADIENT, self.specs.get(y)
        if self.specs.get(gradient) is None and gradient in self.graph.inputs and output is not None:
            self.specs[gradient] = TensorSpec(gradient, output.shape, "bf16")
        weights = GemmParams(transpose_a=True, out_format="fp32")
        return self._gemm(GemmParams(), (gradient, w), x + GRADIENT, name) | self._gemm(
            weights, (gradient, x), w + GRADIENT, name
        )

    def _gemm(self, params: GemmParams, names: tuple[str, str], out: str, node: str) -> dict[str, TensorSpec]:
        inputs = self._known(names)
        return {} if inputs is None else {out: inferred(OPS.get("gemm"), params, inputs, (out,), node)[0]}

    def _known(self, names: tuple[str, ...]) -> tuple[TensorSpec, ...] | None:
        """The specs of tensors, or None where one is not known."""
        specs = [self.specs.get(name) for name in names]
        known = tuple(spec for spec in specs if spec is not None)
        return known if len(known) == len(specs) else None

    def _listed(self, name: str) -> TensorSpec | None:
        """A tensor as the file lists it: what an op that is wrong should give."""
        for line in self.workload.tensors:
            if line.name == name and name not in self.doubts.tensors:
                return TensorSpec(name, line.shape, line.format)
        return None

    def _declared(self, made: dict[str, TensorSpec]) -> None:
        """A tensor that is listed and made has the listed shape and format."""
        for name, spec in made.items():
            listed = self._listed(name)
            if listed is not None and (listed.shape, listed.format) != (spec.shape, spec.format):
                message = f"an op gives it as {spec.shape} {spec.format}, got {listed.shape} {listed.format}"
                self.note(f"tensors.{name}", message)

    def _outputs(self, turn: Turn) -> tuple[str, ...]:
        x_w = turn.line.inputs
        return tuple(name + GRADIENT for name in x_w) if turn.backward else turn.line.outputs

    # What the recipe refuses

    def refusals(self, recipe: Recipe) -> Iterator[RefusedError]:
        """Tensors of linear layers that the recipe cannot be applied to, each once."""
        said: set[tuple[tuple[str, str], ...]] = set()
        sound = tuple(line for at, line in enumerate(self.workload.ops) if at not in self.doubts.ops and is_layer(line))
        for tensor, role in dict.fromkeys(pair for line in sound for pair in _cast(line)):
            spec = self.specs.get(tensor)
            if spec is None:
                continue
            low = Lowering(Builder(self.workload.name), recipe, REFERENCE, step=StepKind())
            low.state(tensor, spec.shape, spec.format)
            try:
                low.deliver(tensor, role=role, uses=layer_uses(sound, tensor, role), label="")
            except RefusedError as error:
                if error.reasons not in said:
                    said.add(error.reasons)
                    yield error

    def note(self, where: str, message: str) -> None:
        """A mistake."""
        self.found.append(ParameterError(where, message))


def _cast(line: OpLine) -> tuple[tuple[str, str], ...]:
    """(tensor, role) of what a linear layer has cast."""
    x, w = line.inputs
    pairs = ((x, "x"), (w, "w"))
    return (*pairs, (line.outputs[0] + GRADIENT, "g")) if line.backward else pairs
