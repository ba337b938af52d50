"""Edits by path, before validation: what ``--set``, sweeps and Python overrides all go through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hwmodel.config.compose import DEPTH_LIMIT, compose, resolve_scalar
from hwmodel.config.document import Document, KeyPath, dotted
from hwmodel.errors import ConfigError, Problem

SET = "--set"
"""The source of every edited value, where a file would have a name and a line."""
_INDEX_DIGITS = 10
_SURROGATES = frozenset(map(chr, range(0xD800, 0xE000)))


def edit(document: Document, path: str, value: object, *, shorthands: Mapping[str, str] | None = None) -> Document:
    """``document`` with ``value`` at the dotted ``path``; the original stays as it is.

    Missing mappings on the way, and ones left empty, are made. A number in the path is an index where a sequence
    stands. Text is read as a YAML 1.2 scalar or as a flow sequence ``[a,b]``; other values, and sequences of them, are
    taken as they are.

    Args:
        document: what to edit.
        path: such as ``recipe.interval_steps`` or ``layers.0.gain``.
        value: text from the command line, or a Python value.
        shorthands: mappings that may be written as a text alone, with the key that text belongs to. With
            ``{"recipe": "preset"}``, an edit of ``recipe.margin_bits`` turns ``recipe: delayed`` into
            ``recipe: {preset: delayed}`` first.

    Raises:
        ConfigError: a path that is malformed, passes through a scalar or leaves a sequence; a value that is not YAML.
    """
    steps = tuple(path.split("."))
    if any(not step or step != step.strip() for step in steps) or len(steps) > DEPTH_LIMIT:
        raise _error(document, path, "a path must be keys joined by dots" + (", got no key" if not path else ""))
    put = _Put(document, path, _read(document, path, value), shorthands or {})
    data = put.into(document.data, (), steps)
    assert isinstance(data, dict)
    whole: KeyPath = put.real
    lines = {at: line for at, line in {**document.lines, **put.moved}.items() if at[: len(whole)] != whole}
    sources = {at: source for at, source in document.sources.items() if at[: len(whole)] != whole}
    made = (whole[:length] for length in range(1, len(whole)))
    sources |= {at: SET for at in made if at not in lines and at not in sources}
    return Document(document.source, data, lines, sources | {whole: SET})


def edit_all(
    document: Document, assignments: Iterable[str], *, shorthands: Mapping[str, str] | None = None
) -> Document:
    """``document`` with each ``path=value`` applied in turn, a later one on top.

    Raises:
        ConfigError: as ``edit``, with the mistakes of all assignments.
    """
    problems: list[Problem] = []
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        try:
            if not equals:
                raise _error(document, "", f"must be path=value, got {assignment!r}")
            document = edit(document, path.strip(), value, shorthands=shorthands)
        except ConfigError as error:
            problems.extend(error.problems)
    if problems:
        raise ConfigError(document.source, tuple(problems))
    return document


@dataclass(slots=True)
class _Put:
    """One value on its way to its place."""

    document: Document
    path: str
    value: object
    shorthands: Mapping[str, str]
    real: KeyPath = ()
    moved: dict[KeyPath, int] = field(default_factory=dict)

    def into(self, there: object, done: KeyPath, steps: tuple[str, ...]) -> object:
        """A copy of what is ``there``, at ``done``, with the value ``steps`` further down."""
        if not steps:
            self.real = done
            return self.value
        if isinstance(there, tuple):
            index = self.index(there, done, steps[0])
            inner = self.into(there[index], (*done, index), steps[1:])
            return (*there[:index], inner, *there[index + 1 :])
        mapping = self.mapping(there, done)
        return {**mapping, steps[0]: self.into(mapping.get(steps[0]), (*done, steps[0]), steps[1:])}

    def mapping(self, there: object, done: KeyPath) -> dict[str, object]:
        """What is ``there`` as a mapping: nothing is an empty one, a shorthand is written out."""
        if isinstance(there, dict):
            return there
        if there is None:
            return {}
        key = self.shorthands.get(dotted(done))
        if key is None or not isinstance(there, str):
            raise _error(self.document, self.path, f"{dotted(done)!r} is {there!r} and has no keys under it")
        source, line = self.document.where(done)
        if line is not None and source != SET:
            self.moved[*done, key] = line
        return {key: there}

    def index(self, there: tuple[object, ...], done: KeyPath, step: str) -> int:
        """The place in a sequence that ``step`` names."""
        if not (step.isascii() and step.isdigit() and len(step) < _INDEX_DIGITS and int(step) < len(there)):
            allowed = f"an index must be 0 to {len(there) - 1}" if there else "no index is allowed"
            message = f"{dotted(done)!r} is a sequence of {len(there)}, {allowed}, got {step!r}"
            raise _error(self.document, self.path, message)
        return int(step)


def _read(document: Document, path: str, value: object) -> object:
    """The value to put: text as YAML, sequences as tuples."""
    if not isinstance(value, str):
        return _frozen(document, path, value)
    text = value.strip()
    if any(ord(character) < ord(" ") or character in _SURROGATES for character in text):
        raise _error(document, path, f"the value must be printable text, got {value!r}")
    if text[:1] not in {"[", "{", "'", '"'}:
        return resolve_scalar(text)
    try:
        read, _ = compose(SET, text)
    except ConfigError as error:
        raise _error(document, path, f"{error.problems[0].message}, got {value!r}") from None
    return _frozen(document, path, read)


def _frozen(document: Document, path: str, value: object) -> object:
    """Scalars as they are, sequences as tuples; nothing else."""
    if isinstance(value, list | tuple):
        return tuple(_frozen(document, path, item) for item in value)
    if value is None or isinstance(value, str | int | float):
        return value
    raise _error(document, path, f"the value must be a scalar or a sequence such as [a,b], got {value!r}")


def _error(document: Document, path: str, message: str) -> ConfigError:
    """One mistake in an edit."""
    return ConfigError(document.source, (Problem(path, None, message, source=SET),))
