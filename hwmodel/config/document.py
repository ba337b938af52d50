"""Parsed data that remembers where each value was written; no YAML and no pydantic in here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KeyPath = tuple[str | int, ...]
"""Keys and indices from the top of a document to a value."""


class WrittenFloat(float):
    """A float that remembers how it was written, so that a text field can have ``695e0214`` back."""

    text: str
    __slots__ = ("text",)

    def __new__(cls, value: float, text: str) -> WrittenFloat:
        """A float equal to ``value``, written as ``text``."""
        number = super().__new__(cls, value)
        number.text = text
        return number

    def __getnewargs__(self) -> tuple[float, str]:  # type: ignore[override]  # pickle passes it to our __new__
        return float(self), self.text


class WrittenInt(int):
    """An int that remembers how it was written, such as ``0x10`` or ``+5``."""

    text: str

    def __new__(cls, value: int, text: str) -> WrittenInt:
        """An int equal to ``value``, written as ``text``."""
        number = super().__new__(cls, value)
        number.text = text
        return number

    def __getnewargs__(self) -> tuple[int, str]:  # type: ignore[override]  # pickle passes it to our __new__
        return int(self), self.text


def written(number: float) -> str:
    """How a number stood in the file; for one that was never in a file, how Python writes it."""
    return number.text if isinstance(number, WrittenFloat | WrittenInt) else repr(number)


@dataclass(frozen=True, slots=True)
class Document:
    """What a user wrote, before any schema: mappings are dicts, sequences tuples, scalars plain values."""

    source: str
    """Name of the file as messages show it."""
    data: dict[str, object]
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    """Line of each path: of its key, or of its place in a sequence; under an alias, where its anchor stands."""
    sources: Mapping[KeyPath, str] = field(default_factory=dict)
    """Where a path and what lies under it came from, if not from ``source``: a base file or ``--set``."""

    def where(self, path: KeyPath) -> tuple[str, int | None]:
        """Source and line of ``path``, or of its nearest parent that was written."""
        for length in range(len(path), -1, -1):
            head = path[:length]
            if head in self.lines or head in self.sources:
                return self.sources.get(head, self._source_above(head)), self.lines.get(head)
        return self.source, None

    def get(self, path: KeyPath) -> object:
        """The value at ``path``, or None if there is none."""
        value: object = self.data
        for step in path:
            value = child(value, step)
        return value

    def _source_above(self, path: KeyPath) -> str:
        """The source that the nearest parent names."""
        heads = (path[:length] for length in range(len(path) - 1, -1, -1))
        return next((self.sources[head] for head in heads if head in self.sources), self.source)


def child(value: object, step: str | int) -> object:
    """What lies under ``step`` in a mapping or sequence, or None if nothing does."""
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, tuple) and isinstance(step, int) and 0 <= step < len(value):
        return value[step]
    return None


def dotted(path: KeyPath) -> str:
    """A path as messages and ``--set`` write it: ``layers.0.gain``."""
    return ".".join(str(step) for step in path)
