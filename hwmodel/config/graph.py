"""Hand-written graphs in files: tensors, and ops whose params follow the dataclass of the registered op."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, ValidationError

from hwmodel.config.document import Document, KeyPath, dotted, written
from hwmodel.config.fields import PositiveInteger, Schema, Text, is_number
from hwmodel.config.generated import Format, OneOf, given, schema_of
from hwmodel.config.problems import from_refusal, mentions, problems_of
from hwmodel.device.software import OVERLAPS
from hwmodel.errors import ParameterError, Problem, suggestion
from hwmodel.ops import OPS
from hwmodel.workload.hand import LINEAR
from hwmodel.workload.mistakes import Doubts
from hwmodel.workload.workload import OpLine, TensorLine

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_OVERLAP: Final = "overlap_name"
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
    unclear: set[int] = field(default_factory=set)
    """Ops that are malformed."""
    hidden: bool = False
    """There are tensors whose names cannot be read."""

    def tensors(self) -> tuple[TensorLine, ...]:
        """The well-formed tensors as listed."""
        found = []
        for name, item in self._listed().items():
            try:
                tensor = TensorSchema.model_validate(item)
            except ValidationError:
                continue
            if not tensor.shape:
                self.problem(("tensors", name, "shape"), "must have at least 1 entry, got none")
            found.append(TensorLine(name, tensor.shape, tensor.format))
        return tuple(found)

    def ops(self) -> tuple[OpLine, ...]:
        """Every op, of a malformed one what can be read."""
        ops = self.document.get(("ops",))
        return tuple(self._op(index, item) for index, item in enumerate(ops if isinstance(ops, tuple) else ()))

    def doubts(self, tensors: tuple[TensorLine, ...]) -> Doubts:
        """What cannot be said because of mistakes, once all has been read."""
        known = {line.name for line in tensors if line.shape}
        listed = self.document.get(("tensors",))
        unknown = frozenset(name for name in self._listed() if name not in known)
        return Doubts(frozenset(self.unclear), unknown, self.hidden or not isinstance(listed, dict))

    def _listed(self) -> dict[str, object]:
        listed = self.document.get(("tensors",))
        return listed if isinstance(listed, dict) else {}

    def _op(self, index: int, item: object) -> OpLine:
        """One op."""
        root: KeyPath = ("ops", index)
        try:
            model = OpSchema.model_validate(item)
        except ValidationError:
            self.unclear.add(index)
            return self._outline(item, root)
        before = len(self.problems)
        params = self._checked(model, root)
        if len(self.problems) > before:
            self.unclear.add(index)
        backward = model.op == LINEAR and model.backward
        return OpLine(model.op, model.inputs, model.outputs, model.name, params, backward=backward)

    def _checked(self, model: OpSchema, root: KeyPath) -> object:
        """The params of a well-formed op, or None after a mistake."""
        if model.op != LINEAR:
            if "backward" in model.model_fields_set:
                self.problem((*root, "backward"), f"only op 'linear' has it, got op {model.op!r}; see params.backward")
            return self._params(model, root)
        if model.params:
            self._no_params(root)
        for key, count, what in (("inputs", 2, "x and w"), ("outputs", 1, "y")):
            names = getattr(model, key)
            if len(names) != count:
                self.problem((*root, key), f"op 'linear' has {count} ({what}), got {len(names)}")
        return None

    def _outline(self, item: object, root: KeyPath) -> OpLine:
        """What a malformed op reads and writes; its params are read for their own mistakes."""
        if not isinstance(item, dict):
            self.hidden = True
            return OpLine("", (), ())
        self._stray_params(item, root)
        outputs = _texts(item.get("outputs", ()))
        if outputs is None:
            self.hidden = True
        (name,) = _texts((item.get("name"),)) or ("",)
        return OpLine("", _texts(item.get("inputs", ())) or (), outputs or (), name, backward=False)

    def _stray_params(self, item: dict[str, object], root: KeyPath) -> None:
        """Note what is wrong with the params of an op that has another mistake."""
        try:
            model = OpSchema.model_validate({key: item[key] for key in ("op", "params") if key in item})
        except ValidationError:
            return
        if model.op != LINEAR:
            self._params(model, root)
        elif model.params:
            self._no_params(root)

    def _no_params(self, root: KeyPath) -> None:
        """Note params where the recipe decides."""
        self.problem((*root, "params"), "op 'linear' has none: the recipe decides")

    def _params(self, model: OpSchema, root: KeyPath) -> object:
        """The params record of a registered op, or None after a mistake."""
        schema, at = params_schema(model.op), (*root, "params")
        try:
            read = schema.model_validate(model.params)
        except ValidationError as error:
            data = {**self.document.data}
            self.problems += problems_of(error, _with_params(self.document, data, root), schema, root=at)
            return None
        values = given(read)
        overlap = values.get(_OVERLAP)
        if overlap and overlap not in OVERLAPS:
            self.problem((*at, _OVERLAP), f"unknown name {overlap!r}{suggestion(str(overlap), OVERLAPS)}")
        record, refused = _record(OPS.get(model.op).params_type, values)
        for refusal in refused:
            self.problems += from_refusal(refusal, self.document, at).problems
        return record

    def problem(self, path: KeyPath, message: str) -> None:
        """Note a mistake."""
        source, line = self.document.where(path)
        self.problems.append(Problem(dotted(path), line, message, None if source == self.document.source else source))


def _record(
    params_type: type[DataclassInstance], values: dict[str, object]
) -> tuple[DataclassInstance | None, list[ParameterError]]:
    """The params of an op, or all it refuses: what is refused is replaced by what is surely well, to find the next."""
    defaults = {item.name: item.default for item in fields(params_type) if item.default is not MISSING}
    refused: list[ParameterError] = []
    while True:
        try:
            record = params_type(**values)
        except ParameterError as error:
            key = error.field.partition(".")[0]
            known = {earlier.field for earlier in refused}
            if error.field not in known and not mentions(error, known):
                refused.append(error)
            well = defaults.get(key, 1 if isinstance(values.get(key), int) else None)
            if error.field in known or well is None:
                return None, refused
            values = {**values, key: well}
        else:
            return (None if refused else record), refused


def _texts(value: object) -> tuple[str, ...] | None:
    """A sequence of names as far as it is one, or None if it is something else."""
    if not isinstance(value, tuple):
        return None
    named = (written(item) if is_number(item) else item for item in value)
    return tuple(item for item in named if isinstance(item, str))


def _with_params(document: Document, data: dict[str, object], root: KeyPath) -> Document:
    """The same document; a missing ``params`` reads as an empty mapping."""
    ops = data["ops"]
    assert isinstance(ops, tuple)
    index = root[1]
    assert isinstance(index, int)
    line = {"params": {}, **ops[index]}
    data["ops"] = (*ops[:index], line, *ops[index + 1 :])
    return Document(document.source, data, document.lines, document.sources)
