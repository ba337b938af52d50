"""From pydantic's sentences and locations, and from refusals of domain objects, to our problems."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from hwmodel.config.document import Document, KeyPath, dotted
from hwmodel.config.fields import SAID, seen
from hwmodel.config.walk import keys, locate_error
from hwmodel.errors import ConfigError, HwModelError, ParameterError, Problem, RefusedError, nearest, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)

_RULES = {
    "missing": "is missing",
    "greater_than": "must be > {gt}",
    "greater_than_equal": "must be >= {ge}",
    "less_than": "must be < {lt}",
    "less_than_equal": "must be <= {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be text",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "bool_type": "must be true or false",
    "none_required": "must be null",
    "dict_type": "must be a mapping",
    "mapping_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "tuple_type": "must be a sequence",
    "list_type": "must be a sequence",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "union_tag_invalid": "must be one of {expected_tags}",
    "union_tag_not_found": "is missing",
}
_GOT = ", got "
_WITHOUT_VALUE = frozenset({"missing", "union_tag_not_found"})


def validate(model: type[M], document: Document, *, root: KeyPath = ()) -> M:
    """The part of ``document`` under ``root`` as a ``model``.

    Raises:
        ConfigError: every mistake, by line.
    """
    try:
        return model.model_validate(document.get(root))
    except ValidationError as error:
        raise ConfigError(document.source, problems_of(error, document, model, root=root)) from None


def problems_of(
    error: ValidationError, document: Document, model: type[BaseModel], *, root: KeyPath = ()
) -> tuple[Problem, ...]:
    """All problems of a validation of what lies under ``root``, sorted by line.

    A missing key has the line of its parent. What the members of a union say about one value is joined by "or"; what
    they say about a mapping being no scalar is dropped if another member found a mistake inside it.
    """
    found: dict[tuple[KeyPath, KeyPath], list[str]] = {}
    data = document.get(root)
    for detail in error.errors(include_url=False):
        path, at, message = _said(detail, data, model)
        found.setdefault((path, at), []).append(message)
    inner = [at for _, at in found]
    problems = [
        _problem(document, root + path, root + at, message)
        for (path, at), messages in found.items()
        for message in _joined(_kept(messages, path, inner))
    ]
    return in_order(problems, document)


def from_refusal(error: HwModelError, document: Document, path: KeyPath) -> ConfigError:
    """What a domain object refused, as mistakes in what ``document`` says at ``path``.

    A ``ParameterError`` is about the field it names, under ``path``; a ``RefusedError`` names its whole paths itself.
    """
    if isinstance(error, ConfigError):
        return error
    if isinstance(error, RefusedError):
        reasons = [(field_path((), inner), message) for inner, message in error.reasons]
    elif isinstance(error, ParameterError):
        reasons = [(field_path(path, error.field), error.message)]
    else:
        reasons = [(path, str(error))]
    return ConfigError(document.source, tuple(problem_at(document, inner, message) for inner, message in reasons))


def problem_at(document: Document, path: KeyPath, message: str) -> Problem:
    """A mistake in the value at ``path``, or in what says it: the preset of a recipe that leaves it to its preset."""
    preset: KeyPath = ("recipe", "preset")
    of_preset = path[:1] == preset[:1] and document.get(path) is None and document.get(preset) is not None
    return _problem(document, path, preset if of_preset else path, message)


def mentions(error: ParameterError, fields: Iterable[str]) -> bool:
    """Whether a refusal speaks of one of ``fields``, so that it may only follow from what is wrong with that."""
    return any(re.search(rf"\b{re.escape(name)}\b", error.message) for name in fields)


def in_order(problems: Iterable[Problem], document: Document) -> tuple[Problem, ...]:
    """Problems without repeats, those of the document itself first, by line."""

    def order(problem: Problem) -> tuple[bool, str, int]:
        elsewhere = problem.source not in {None, document.source}
        return elsewhere, str(problem.source) if elsewhere else "", problem.line or 0

    return tuple(sorted(dict.fromkeys(problems), key=order))


def _said(detail: ErrorDetails, data: object, model: type[BaseModel]) -> tuple[KeyPath, KeyPath, str]:
    """The path of one error as shown, the path whose line it has, and what is wrong."""
    kind, context = detail["type"], detail.get("ctx", {})
    path, holders = locate_error(detail["loc"], data, model, missing=kind == "missing")
    if kind == "extra_forbidden":
        key = str(path[-1])
        return path[:-1], path, f"unknown key {key!r}{suggestion(key, keys(holders))}"
    if kind == SAID:
        return path, path, str(context["message"])
    cause = context.get("error")
    if isinstance(cause, ParameterError):
        full = field_path(path, cause.field)
        return full, full, cause.message
    if cause is not None:
        return path, path, str(cause)
    if kind in {"union_tag_invalid", "union_tag_not_found"}:
        path = (*path, *_quoted(str(context["discriminator"])))
    return path, path, _rule(detail, context)


def _rule(detail: ErrorDetails, context: dict[str, Any]) -> str:
    """The rule that was broken and what came."""
    rule = _RULES.get(detail["type"])
    if rule is None:
        rule = detail["msg"].replace("Input should be", "must be")
    limits = {name: int(limit) if _is_whole(limit) else limit for name, limit in context.items()}
    rule = rule.format_map(limits) if detail["type"] in _RULES else rule
    if detail["type"] in _WITHOUT_VALUE:
        return rule
    if detail["type"] == "too_short" and context["min_length"] == 1:
        return "must have at least 1 entry, got none"
    came = context.get("tag", detail["input"])
    close = nearest(came, _quoted(rule)) if isinstance(came, str) else None
    return f"{rule}{_GOT}{seen(came)}" + (f"; did you mean {close!r}?" if close is not None else "")


def _joined(messages: list[str]) -> list[str]:
    """Messages about one value: those that only differ in the rule become one."""
    unique = list(dict.fromkeys(messages))
    if len(unique) < 2 or not all(_GOT in message for message in unique):
        return unique
    rules = [message.partition(_GOT)[0] for message in unique]
    rest = max((message.partition(_GOT)[2] for message in unique), key=len)
    return [" or ".join([rules[0], *(rule.removeprefix("must be ") for rule in rules[1:])]) + _GOT + rest]


def _kept(messages: list[str], path: KeyPath, others: Iterable[KeyPath]) -> list[str]:
    """Messages without those that wanted no mapping or sequence where another union member looked inside it."""
    inside = any(len(other) > len(path) and other[: len(path)] == path for other in others)
    return [message for message in messages if not (inside and message.endswith((" a mapping", " a sequence")))]


def _problem(document: Document, path: KeyPath, at: KeyPath, message: str) -> Problem:
    """A problem with line and source of ``at``."""
    source, line = document.where(at)
    return Problem(dotted(path), line, message, None if source == document.source else source)


def field_path(path: KeyPath, field: str) -> KeyPath:
    """The path of a field that a domain object named, which may itself be dotted."""
    return (*path, *(int(step) if step.isdigit() else step for step in field.split(".") if step))


def _quoted(text: str) -> tuple[str, ...]:
    """The words in single quotes."""
    return tuple(re.findall(r"'([^']*)'", text))


def _is_whole(limit: object) -> bool:
    """Whether a limit is a float that is better shown as an int."""
    return isinstance(limit, float) and limit.is_integer()
