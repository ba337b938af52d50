"""Hand-written graphs in files: tensors, and ops whose params follow the dataclass of the registered op."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, ValidationError

from hwmodel.config.document import Document, KeyPath, dotted
from hwmodel.config.fields import PositiveInteger, Schema, Text
from hwmodel.config.generated import Format, OneOf, given, schema_of
from hwmodel.config.problems import from_refusal, problems_of
from hwmodel.errors import GraphError, ParameterError, Problem
from hwmodel.ops import OPS
from hwmodel.workload.hand import BACKWARD, LINEAR, line_name
from hwmodel.workload.workload import OpLine, TensorLine

if TYPE_CHECKING:
    from hwmodel.workload.workload import HandGraph

_NOT_BY_HAND: Final = frozenset(("fused",))
"""Ops that only lowering writes."""


def op_names() -> tuple[str, ...]:
    """Ops that a graph may name."""
    return tuple(sorted({LINEAR, *OPS.names()} - _NOT_BY_HAND))


class TensorSchema(Schema):
    """A tensor that exists before the first op, or a check of one that an op makes."""

    shape: tuple[PositiveInteger, ...] = Field(description="extents; the last is the contiguous one")
    format: Format = Field(description="number format")


class OpSchema(Schema):
    """One op, in any place of the list: what it needs comes first by itself."""

    op: Annotated[str, OneOf(op_names, "op")] = Field(
        description="what is done: a registered op, or 'linear', y = x w^T, which the recipe brings into its form"
    )
    name: Text = Field(default="", description="name on the timeline; without one that of the first output")
    inputs: tuple[Text, ...] = Field(default=(), description="tensors it reads, in the op's order; linear: x and w")
    outputs: tuple[Text, ...] = Field(default=(), description="tensors it makes, in the op's order; linear: y")
    params: dict[str, object] = Field(default_factory=dict, description="the op's own parameters; linear has none")
    backward: bool = Field(
        default=True,
        description="linear only: also its backward, which reads y.grad and makes x.grad and w.grad",
    )


class GraphSchema(Schema):
    """The keys of a graph beside those that every workload has."""

    tensors: dict[str, TensorSchema] = Field(description="tensors by name")
    ops: tuple[OpSchema, ...] = Field(description="ops, in any order")


@cache
def params_schema(op: str) -> type[Schema]:
    """The schema of one op's params, from its dataclass."""
    kinds = {"format": Format, "out_format": Format, "format_out": Format}
    params_type = OPS.get(op).params_type
    return schema_of(params_type, f"{op}_params", kinds=kinds)


@dataclass(slots=True)
class Lines:
    """The tensors and ops of a file as inside objects, with every mistake found on the way."""

    document: Document
    problems: list[Problem] = field(default_factory=list)

    def tensors(self, tensors: dict[str, TensorSchema]) -> tuple[TensorLine, ...]:
        """The tensors as listed."""
        for name, tensor in tensors.items():
            if not tensor.shape:
                self.problem(("tensors", name, "shape"), "must have at least 1 entry, got none")
        return tuple(TensorLine(name, tensor.shape, tensor.format) for name, tensor in tensors.items())

    def op(self, index: int, model: OpSchema) -> OpLine:
        """One op."""
        root: KeyPath = ("ops", index)
        if model.op != LINEAR:
            if "backward" in model.model_fields_set:
                self.problem((*root, "backward"), f"only op 'linear' has it, got op {model.op!r}; see params.backward")
            params = self.params(model, root)
            return OpLine(model.op, model.inputs, model.outputs, model.name, params, backward=False)
        if model.params:
            self.no_params(root)
        for key, count, what in (("inputs", 2, "x and w"), ("outputs", 1, "y")):
            names = getattr(model, key)
            if len(names) != count:
                self.problem((*root, key), f"op 'linear' has {count} ({what}), got {len(names)}")
        return OpLine(LINEAR, model.inputs, model.outputs, model.name, None, backward=model.backward)

    def stray_params(self, item: dict[str, object], root: KeyPath) -> None:
        """Note what is wrong with the params of an op that has another mistake."""
        try:
            model = OpSchema.model_validate({key: item[key] for key in ("op", "params") if key in item})
        except ValidationError:
            return
        if model.op != LINEAR:
            self.params(model, root)
        elif model.params:
            self.no_params(root)

    def no_params(self, root: KeyPath) -> None:
        """Note params where the recipe decides."""
        self.problem((*root, "params"), "op 'linear' has none: the recipe decides")

    def params(self, model: OpSchema, root: KeyPath) -> object:
        """The params record of a registered op, or None after a mistake."""
        schema, at = params_schema(model.op), (*root, "params")
        try:
            read = schema.model_validate(model.params)
        except ValidationError as error:
            data = {**self.document.data}
            self.problems += problems_of(error, _with_params(self.document, data, root), schema, root=at)
            return None
        try:
            return OPS.get(model.op).params_type(**given(read))
        except ParameterError as error:
            self.problems += from_refusal(error, self.document, at).problems
            return None

    def problem(self, path: KeyPath, message: str) -> None:
        """Note a mistake."""
        source, line = self.document.where(path)
        self.problems.append(Problem(dotted(path), line, message, None if source == self.document.source else source))

    def graph_problem(self, error: GraphError, workload: HandGraph) -> Problem:
        """What is wrong with the graph as a whole, at the line of the first op the message names."""
        named: dict[str, int] = {}
        for index, line in enumerate(workload.ops):
            name = line_name(line, index)
            named |= {f"{name!r}": index, f"{name + BACKWARD!r}": index}
        at = [(error.message.find(name), index) for name, index in named.items() if name in error.message]
        path: KeyPath = ("ops", min(at)[1]) if at else ("ops",)
        return Problem(dotted(path), self.document.where(path)[1], error.message)


def _with_params(document: Document, data: dict[str, object], root: KeyPath) -> Document:
    """The same document; a missing ``params`` reads as an empty mapping."""
    ops = data["ops"]
    assert isinstance(ops, tuple)
    index = root[1]
    assert isinstance(index, int)
    line = {"params": {}, **ops[index]}
    data["ops"] = (*ops[:index], line, *ops[index + 1 :])
    return Document(document.source, data, document.lines, document.sources)
