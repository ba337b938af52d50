"""Where a pydantic error is, in the user's terms: a path in the data, without the tags of unions."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Discriminator, Tag
from pydantic.fields import FieldInfo

from hwmodel.config.document import KeyPath, child

Kinds = tuple[Any, ...]
"""The annotations a value may match: the members of its union, or one."""


def locate_error(location: KeyPath, data: object, model: type[BaseModel], *, missing: bool) -> tuple[KeyPath, Kinds]:
    """The path of an error and the kinds of what holds it.

    Args:
        location: pydantic's ``loc``.
        data: what was validated.
        model: what it was validated with.
        missing: whether the last entry names a key that is not there.
    """
    path: KeyPath = ()
    value, kinds, holders = data, flatten(model), flatten(model)
    for place, entry in enumerate(location):
        tagged = any(discriminator is not None for _, discriminator in kinds)
        absent = missing and place == len(location) - 1
        if not absent and (tagged or not _is_step(value, entry)):
            kinds = _narrowed(kinds, entry)
            continue
        path, holders = (*path, entry), kinds
        kinds = tuple(pair for kind, _ in kinds for pair in _under(kind, entry))
        value = child(value, entry)
    return path, tuple(kind for kind, _ in (holders if path else kinds))


def keys(kinds: Kinds) -> tuple[str, ...]:
    """The keys that mappings of these kinds may have, sorted."""
    models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return tuple(sorted({info.alias or name for model in models for name, info in model.model_fields.items()}))


def flatten(annotation: Any, discriminator: object = None, tag: object = None) -> tuple[tuple[Any, object], ...]:
    """The members of an annotation, each with the discriminator and tag that choose it, or None if nothing does."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        return flatten(inner, _discriminator(metadata) or discriminator, _tag(metadata) or tag)
    if origin is Union or isinstance(annotation, types.UnionType):
        return tuple(pair for member in get_args(annotation) for pair in flatten(member, discriminator))
    if hasattr(annotation, "__value__"):
        return flatten(annotation.__value__, discriminator, tag)
    return ((annotation, None if discriminator is None else (discriminator, tag)),)


def _is_step(value: object, entry: str | int) -> bool:
    """Whether ``entry`` is a key or index of ``value``."""
    if isinstance(value, dict):
        return entry in value
    return isinstance(value, tuple | list) and isinstance(entry, int) and 0 <= entry < len(value)


def _narrowed(kinds: tuple[tuple[Any, object], ...], entry: str | int) -> tuple[tuple[Any, object], ...]:
    """The kinds that a tag or a type name in a location stands for; all if it cannot be told."""
    chosen = tuple((kind, None) for kind, choice in kinds if _is_chosen(kind, choice, entry))
    return chosen or tuple((kind, None) for kind, _ in kinds)


def _is_chosen(kind: Any, choice: object, entry: str | int) -> bool:
    """Whether this member of a union is the one called ``entry``."""
    if not isinstance(choice, tuple):
        return getattr(kind, "__name__", None) == entry
    discriminator, tag = choice
    if tag is not None:
        return bool(tag == entry)
    field = getattr(kind, "model_fields", {}).get(discriminator)
    return field is not None and get_origin(field.annotation) is Literal and entry in get_args(field.annotation)


def _under(kind: Any, entry: str | int) -> tuple[tuple[Any, object], ...]:
    """The kinds of what lies under ``entry`` in a ``kind``."""
    origin, args = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        infos = [info for name, info in kind.model_fields.items() if entry in {name, info.alias}]
        return tuple(pair for info in infos for pair in flatten(info.annotation, info.discriminator))
    if origin is tuple and isinstance(entry, int):
        return flatten(args[0] if args[-1] is Ellipsis else args[min(entry, len(args) - 1)])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return flatten(args[1])
    return ()


def _discriminator(metadata: list[object]) -> object:
    """The discriminator that the metadata of an annotation names."""
    named = [item.discriminator for item in metadata if isinstance(item, FieldInfo | Discriminator)]
    return next((item for item in named if item is not None), None)


def _tag(metadata: list[object]) -> object:
    """The tag that the metadata of an annotation names."""
    return next((item.tag for item in metadata if isinstance(item, Tag)), None)
