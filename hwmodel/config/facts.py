"""Values with their provenance: ``{value: 8 TB/s, source: "...", confidence: D}`` stands wherever a value may.

A mapping with any of these keys is such a fact. `unwrap` takes the facts out of a document before validation, so
schemas, paths and error messages speak of plain values, and keeps what was said about each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from hwmodel.config.document import Document, KeyPath, child, dotted, written
from hwmodel.config.edits import SET, edit
from hwmodel.config.fields import is_number, seen
from hwmodel.errors import ConfigError, Problem, nearest, suggestion

VALUE: Final = "value"
NOT_STATED: Final = "source not stated"
ON_COMMAND_LINE: Final = "set on the command line"

Edit = str | tuple[str, object]
"""``path=value`` as on a command line, or (path, text or Python value)."""


@dataclass(slots=True)
class Unwrapped:
    """A document of plain values, what was said about them, and what was wrong with how it was said."""

    document: Document
    notes: dict[KeyPath, dict[str, str]]
    """What was said about a value and all under it, by the path of the value."""
    problems: list[Problem]

    def note(self, path: KeyPath, key: str) -> str | None:
        """What ``key`` of the nearest fact at or above ``path`` says, or None."""
        heads = (path[:length] for length in range(len(path), 0, -1))
        return next((self.notes[head].get(key) for head in heads if head in self.notes), None)

    def is_set(self, path: KeyPath) -> bool:
        """Whether the value came from an edit."""
        return self.document.where(path)[0] == SET

    def problem(self, path: KeyPath, message: str) -> Problem:
        """A mistake in the value at ``path``."""
        return _problem(self.document, path, path, message)

    def text(self, path: KeyPath) -> str:
        """The value as it was written."""
        value = self.document.get(path)
        return written(value) if is_number(value) else str(value)


def unwrap(
    document: Document, keys: tuple[str, ...], *, choices: Mapping[str, tuple[str, ...]] | None = None
) -> Unwrapped:
    """``document`` without its facts' wrappers.

    Args:
        document: as loaded.
        keys: what a fact says beside ``value``.
        choices: the texts allowed under some of ``keys``.
    """
    walk = _Walk(document, keys, choices or {})
    data = walk.plain(document.data, (), ())
    assert isinstance(data, dict)
    plain = Document(document.source, data, walk.lines, walk.sources)
    return Unwrapped(plain, walk.notes, walk.problems)


def edit_facts(document: Document, edits: Iterable[Edit], keys: tuple[str, ...], *, prefix: str) -> Document:
    """``document`` with each edit applied; a new value replaces a fact with all it said.

    Only what is there can be edited: every key but the last must exist, and the last is left to the schema.

    Args:
        document: what to edit.
        edits: dotted paths with new values.
        keys: as in `unwrap`.
        prefix: what the paths started with before they came here, for messages.

    Raises:
        ConfigError: the mistakes of all edits.
    """
    problems: list[Problem] = []
    for path, value in map(split_edit, edits):
        try:
            if value is None:
                raise ConfigError(document.source, (Problem(path, None, "must be path=value, got no value", SET),))
            document = edit(document, _through(document, path, keys), value)
        except ConfigError as error:
            problems.extend(Problem(f"{prefix}.{path}", None, problem.message, SET) for problem in error.problems)
    if problems:
        raise ConfigError(document.source, tuple(problems))
    return document


def split_edit(assignment: Edit) -> tuple[str, object]:
    """(path, value); the value is None where an assignment has no ``=``."""
    if not isinstance(assignment, str):
        return assignment
    path, equals, value = assignment.partition("=")
    return path.strip(), value if equals else None


def with_prefix(problems: tuple[Problem, ...], prefix: str) -> tuple[Problem, ...]:
    """Problems whose value came from an edit get their path back as the user wrote it."""
    return tuple(
        replace(problem, path=f"{prefix}.{problem.path}" if problem.path else prefix)
        if problem.source == SET
        else problem
        for problem in problems
    )


@dataclass(slots=True)
class _Walk:
    """Copies a document's values without the wrappers, noting where each came from."""

    document: Document
    keys: tuple[str, ...]
    choices: Mapping[str, tuple[str, ...]]
    lines: dict[KeyPath, int] = field(default_factory=dict)
    sources: dict[KeyPath, str] = field(default_factory=dict)
    notes: dict[KeyPath, dict[str, str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def plain(self, value: object, at: KeyPath, path: KeyPath) -> object:
        """The plain value of what was written ``at``, which will be at ``path``."""
        if _is_fact(value, self.keys):
            assert isinstance(value, dict)
            self.say(value, at, path)
            if VALUE not in value:
                self.problem(at, (*path, VALUE), "is missing")
            at, value = (*at, VALUE), value.get(VALUE)
            if _is_fact(value, self.keys):
                self.problem(at, path, "a fact inside a fact")
        self.place(at, path)
        if isinstance(value, dict):
            return {key: self.plain(item, (*at, key), (*path, key)) for key, item in value.items()}
        if isinstance(value, tuple):
            return tuple(self.plain(item, (*at, index), (*path, index)) for index, item in enumerate(value))
        return value

    def say(self, fact: dict[str, object], at: KeyPath, path: KeyPath) -> None:
        """Note and check what a fact says about its value."""
        value_from = self.document.where((*at, VALUE))[0]
        said: dict[str, str] = {}
        for key, text in fact.items():
            if key == VALUE:
                continue
            if key not in self.keys:
                self.problem((*at, key), path, f"unknown key {key!r}{suggestion(key, (VALUE, *self.keys))}")
            elif not isinstance(text, str) or not text.strip():
                self.problem((*at, key), (*path, key), f"must be text, got {seen(text)}")
            elif key in self.choices and text not in self.choices[key]:
                known = ", ".join(self.choices[key])
                self.problem((*at, key), (*path, key), f"must be one of {known}, got {seen(text)}")
            elif self.document.where((*at, key))[0] == value_from:
                # A value written over its base's is not what the base's source says.
                said[key] = text
        self.notes[path] = said

    def place(self, at: KeyPath, path: KeyPath) -> None:
        """Note line and source of a path."""
        source, line = self.document.where(at)
        if source != self.document.source:
            self.sources[path] = source
        if line is not None:
            self.lines[path] = line

    def problem(self, at: KeyPath, path: KeyPath, message: str) -> None:
        """Note a mistake."""
        self.problems.append(_problem(self.document, at, path, message))


def _problem(document: Document, at: KeyPath, path: KeyPath, message: str) -> Problem:
    """A mistake in what was written ``at``, shown as ``path``."""
    source, line = document.where(at)
    return Problem(dotted(path), line, message, None if source == document.source else source)


def _is_fact(value: object, keys: tuple[str, ...]) -> bool:
    return isinstance(value, dict) and not value.keys().isdisjoint((VALUE, *keys))


def _through(document: Document, path: str, keys: tuple[str, ...]) -> str:
    """The path of a plain value as it stands in the document: through the ``value`` of facts on the way."""
    steps: list[str] = []
    value: object = document.data
    parts = path.split(".")
    for place, part in enumerate(parts):
        if _is_fact(value, keys) and part not in {VALUE, *keys}:
            steps.append(VALUE)
            value = child(value, VALUE)
        steps.append(part)
        if isinstance(value, dict) and part not in value and place < len(parts) - 1:
            close = nearest(part, value)
            hint = f"; did you mean {close!r}?" if close is not None else ""
            message = f"there is no {'.'.join(parts[: place + 1])!r}{hint}"
            raise ConfigError(document.source, (Problem(path, None, message, SET),))
        value = child(value, int(part) if isinstance(value, tuple) and part.isdigit() else part)
    return ".".join(steps)
