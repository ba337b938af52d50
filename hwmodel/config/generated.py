"""Schemas generated from the frozen dataclasses of open families, so that name, type and default have one home."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import Field, create_model, model_validator
from pydantic_core import core_schema

from hwmodel.config.described import field_docs, summary
from hwmodel.config.document import written
from hwmodel.config.fields import Integer, Schema, Text, is_number, said, seen
from hwmodel.errors import ParameterError, nearest, suggestion
from hwmodel.formats import FORMATS, ScaleLayout
from hwmodel.units import parse_number

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

    D = TypeVar("D", bound=DataclassInstance)

ALL = "all"
"""How a file writes a block that reaches over a whole axis."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """``Annotated[str, OneOf(names, "timing")]``: a name of a family, or one of a few words where it has no family."""

    names: Callable[[], tuple[str, ...]]
    """Asked when a value is read, so that a name registered later is known too."""
    family: str = ""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"enum": list(self.names())}

    def read(self, value: object) -> str:
        """The name, if there is such a one."""
        text = written(value) if is_number(value) else value
        known = self.names()
        if isinstance(text, str) and text in known:
            return text
        if self.family and isinstance(text, str):
            raise said(f"unknown {self.family} {text!r}{suggestion(text, known)}")
        close = nearest(text, known) if isinstance(text, str) else None
        hint = f"; did you mean {close!r}?" if close is not None else ""
        raise said(f"must be one of {', '.join(known)}, got {seen(value)}{hint}")


def words(names: tuple[str, ...], family: str = "") -> Any:
    """The type of a field that holds one of a few words, or of many that have a name together."""
    return Annotated[str, OneOf(lambda: names, family)]


def many(kind: Any) -> Any:
    """The type of a field that holds a sequence of ``kind``."""
    return types.GenericAlias(tuple, (kind, ...))


Format = Annotated[str, OneOf(FORMATS.names, "format")]
"""Name of a number format."""


@dataclass(frozen=True, slots=True)
class _Extent:
    """A whole number of elements, or ``all``."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        inner = core_schema.nullable_schema(handler.generate_schema(Integer))
        return core_schema.no_info_before_validator_function(self.read, inner)

    def read(self, value: object) -> object:
        """None for all of an axis, else what was written."""
        if value == ALL:
            return None
        if value is None or (isinstance(value, str) and parse_number(value) is None):
            raise said(f"must be a whole number or {ALL}, got {seen(value)}")
        if is_number(value) and value < 1:
            raise said(f"must be >= 1 or {ALL}, got {seen(value)}")
        return value

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": "integer", "minimum": 1}, {"const": ALL}]}


Extent = Annotated[int, _Extent()]


class ScaleLayoutSchema(Schema):
    """Which elements share one scale."""

    rows: Extent = Field(description="rows of a block: a whole number, or 'all'")
    columns: Extent = Field(description="columns of a block, along the contraction axis: a whole number, or 'all'")
    scale_format: Format = Field(default="fp32", description="number format of a scale")
    powers_of_two: bool = Field(default=False, description="scales are powers of two")

    @model_validator(mode="after")
    def _sound(self) -> ScaleLayoutSchema:
        self.to_inside()
        return self

    def to_inside(self) -> ScaleLayout:
        """The record these keys describe."""
        return ScaleLayout(self.rows, self.columns, self.scale_format, self.powers_of_two)


_PLAIN: Mapping[Any, Any] = {int: Integer, str: Text, bool: bool, ScaleLayout: ScaleLayoutSchema}


def schema_of(
    cls: type,
    name: str,
    *,
    kinds: Mapping[str, Any] | None = None,
    says: Mapping[str, str] | None = None,
    integer: Any = Integer,
    partial: bool = False,
) -> type[Schema]:
    """A pydantic model with the fields of a dataclass.

    Args:
        cls: the dataclass; a field that is a dataclass itself becomes a model too.
        name: of the model.
        kinds: types of fields that need more than their annotation says, by dotted path.
        says: descriptions of fields, by dotted path; without one the text under the field, or what the class says.
        integer: the type of its whole numbers.
        partial: no field has to be written; what was is told by `given`.
    """
    kinds, says = kinds or {}, says or {}
    docs, hints = field_docs(cls), get_type_hints(cls)
    made: dict[str, Any] = {}
    for field in fields(cls):
        kind = kinds.get(field.name) or _kind(hints[field.name], f"{name}{field.name.title()}", field.name, kinds, says)
        if kind is Integer:
            kind = integer
        default = field.default if field.default is not MISSING else None
        if isinstance(kind, type) and issubclass(kind, Schema) and default is not None:
            default = kind()
        required = field.default is MISSING and field.default_factory is MISSING and not partial
        hint = hints[field.name]
        text = (
            says.get(field.name)
            or docs.get(field.name)
            or summary(hint if isinstance(hint, type) and is_dataclass(hint) else cls)
        )
        made[field.name] = (kind, Field(description=text) if required else Field(default=default, description=text))
    return create_model(name, __base__=Schema, __doc__=summary(cls), **made)


def _kind(hint: Any, name: str, field: str, kinds: Mapping[str, Any], says: Mapping[str, str]) -> Any:
    """The type of a field in a model."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and is_dataclass(hint):
        return schema_of(hint, name, kinds=_under(kinds, field), says=_under(says, field))
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple and args[-1] is Ellipsis:
        return many(_kind(args[0], name, field, kinds, says))
    if origin is Union or isinstance(hint, types.UnionType):
        members = [member for member in args if member is not types.NoneType]
        if len(members) == 1:
            return _kind(members[0], name, field, kinds, says) | None
    raise TypeError(f"no schema for {field}: {hint}")


def _under(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The entries below ``key``."""
    return {path.removeprefix(f"{key}."): item for path, item in mapping.items() if path.startswith(f"{key}.")}


def given(model: Schema) -> dict[str, Any]:
    """Field -> value of what was written, as inside objects, and mappings where a section was."""
    return {name: _inside(getattr(model, name)) for name in type(model).model_fields if name in model.model_fields_set}


def _inside(value: object) -> object:
    if isinstance(value, ScaleLayoutSchema):
        return value.to_inside()
    return given(value) if isinstance(value, Schema) else value


def replaced(base: D, changes: Mapping[str, Any]) -> tuple[D, list[ParameterError]]:
    """``base`` with ``changes``, and what it refused: each refused change is left out to find the next.

    Raises:
        RefusedError: changes that are well each and cannot be together.
    """
    refused: list[ParameterError] = []
    kept: dict[str, Any] = {}
    for name, change in changes.items():
        if isinstance(change, dict):
            kept[name], more = replaced(getattr(base, name), change)
            refused += more
        else:
            kept[name] = change
    while True:
        try:
            return replace(base, **kept), refused
        except ParameterError as error:
            refused.append(error)
            if kept.pop(error.field.rpartition(".")[2], MISSING) is MISSING:
                return base, refused


def defaults_used(model: Schema, prefix: str) -> list[tuple[str, str]]:
    """(path, value) of every field that was not written and whose default says something."""
    found: list[tuple[str, str]] = []
    for name, info in type(model).model_fields.items():
        value, path = getattr(model, name), f"{prefix}{info.alias or name}"
        if isinstance(value, Schema):
            found += defaults_used(value, f"{path}.")
        elif name not in model.model_fields_set and value is not None and value not in ("", ()):
            found.append((path, shown(value)))
    return found


def shown(value: object) -> str:
    """A value as a file would write it."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
