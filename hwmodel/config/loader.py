"""The way in: a YAML file, with edits by path, becomes a ``Document`` that knows its lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hwmodel.config.compose import compose
from hwmodel.config.document import Document, KeyPath
from hwmodel.errors import ConfigError, Problem

if TYPE_CHECKING:
    from pathlib import Path

SIZE_LIMIT_BYTES = 4 * 2**20
"""Largest file read."""


def load(path: Path, *, source: str | None = None) -> Document:
    """The document in a file.

    Args:
        path: the file.
        source: its name in messages; without one, ``path`` as given, or only its last part if it is absolute.

    Raises:
        ConfigError: it cannot be read, or is not one YAML mapping with text keys; all mistakes found, with lines.
    """
    name = shown(path) if source is None else source
    try:
        with path.open("rb") as stream:
            content = stream.read(SIZE_LIMIT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(name, (Problem("", None, f"cannot be read: {reason}"),)) from error
    return parse(content, source=name)


def parse(content: bytes | str, *, source: str) -> Document:
    """The document in ``content``; ``source`` is its name in messages.

    Raises:
        ConfigError: as ``load``.
    """
    data, lines = compose(source, _decoded(content, source))
    if not isinstance(data, dict):
        kind = "a sequence" if isinstance(data, tuple) else f"the single value {data!r:.60}"
        message = "is empty, must be a mapping" if data is None else f"must be a mapping, got {kind}"
        raise ConfigError(source, (Problem("", 1 if data is None else lines[()], message),))
    return Document(source, data, lines)


def merge(base: Document, over: Document) -> Document:
    """``base`` with everything ``over`` says on top; mappings merge key by key, anything else is replaced whole.

    The result is named after ``over``; paths that come from ``base`` keep their line and their source. Keys of ``base``
    come first.
    """
    merging = _Merge(base, over)
    data = merging.merged((), base.data, over.data)
    return Document(over.source, data, merging.lines, merging.sources)


def shown(path: Path) -> str:
    """A path as outputs and messages may show it: as given, but never absolute."""
    return path.name if path.is_absolute() else path.as_posix()


def _decoded(content: bytes | str, source: str) -> str:
    """Text that the YAML parser may see."""
    encoded = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    if len(encoded) > SIZE_LIMIT_BYTES:
        raise ConfigError(source, (Problem("", None, f"is larger than {SIZE_LIMIT_BYTES} bytes"),))
    nul = encoded.find(b"\0")
    if nul >= 0:
        message = "holds a NUL byte, so it is not UTF-8 text"
        raise ConfigError(source, (Problem("", encoded.count(b"\n", 0, nul) + 1, message),))
    try:
        return encoded.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = encoded.count(b"\n", 0, error.start) + 1
        message = f"is not UTF-8 text: byte 0x{encoded[error.start]:02x}"
        raise ConfigError(source, (Problem("", line, message),)) from None


@dataclass(slots=True)
class _Merge:
    """Lines and sources of a merged document, noted while its values are copied together."""

    base: Document
    over: Document
    lines: dict[KeyPath, int] = field(default_factory=dict)
    sources: dict[KeyPath, str] = field(default_factory=dict)

    def merged(self, path: KeyPath, below: dict[str, object], above: dict[str, object]) -> dict[str, object]:
        """Two mappings as one."""
        self.note(self.over, path)
        result: dict[str, object] = {}
        for key in [*below, *(key for key in above if key not in below)]:
            inner = (*path, key)
            low, high = below.get(key), above.get(key)
            if isinstance(low, dict) and isinstance(high, dict):
                result[key] = self.merged(inner, low, high)
            elif key in above:
                result[key] = self.copied(self.over, inner, high)
            else:
                result[key] = self.copied(self.base, inner, low)
        return result

    def copied(self, document: Document, path: KeyPath, value: object) -> object:
        """A copy of ``value`` out of ``document``."""
        self.note(document, path)
        if isinstance(value, dict):
            return {key: self.copied(document, (*path, key), item) for key, item in value.items()}
        if isinstance(value, tuple):
            return tuple(self.copied(document, (*path, index), item) for index, item in enumerate(value))
        return value

    def note(self, document: Document, path: KeyPath) -> None:
        """Remember where ``path`` was written."""
        source, line = document.where(path)
        if source != self.over.source:
            self.sources[path] = source
        if line is not None:
            self.lines[path] = line
