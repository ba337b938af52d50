"""Variants: a file that says ``extends: NAME`` is its base with its own keys on top."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.config.document import Document
from hwmodel.config.fields import seen
from hwmodel.config.loader import load, merge, shown
from hwmodel.config.locate import Kind, locate
from hwmodel.errors import ConfigError, Problem, RegistryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "extends"
SAYS = "name or path of a file to start from; mappings merge key by key, anything else is replaced"
"""What files' documentation says about the key."""


def load_extended(kind: Kind, path: Path, *, source: str | None = None) -> Document:
    """The document in ``path`` merged onto those it extends; ``extends`` itself is gone from the result.

    A base is given by name, or by a path that starts from the folder of the file that names it. Each value keeps the
    line and file it was written in.

    Raises:
        ConfigError: a file is at fault, a base is missing, or files extend each other in a circle.
    """
    return _loaded(kind, path, shown(path) if source is None else source, {})


def bases(kind: Kind, path: Path) -> Iterator[Path]:
    """The files that ``path`` extends, nearest first.

    Raises:
        ConfigError: a file is at fault, or a base is missing.
    """
    met: set[Path] = set()
    while path.resolve() not in met:
        met.add(path.resolve())
        document = load(path)
        if KEY not in document.data:
            return
        path = _base(kind, document, path)
        yield path


def _loaded(kind: Kind, path: Path, source: str, seen: dict[Path, str]) -> Document:
    """``path`` on its bases; ``seen`` holds the files that led here, in order."""
    document = load(path, source=source)
    if KEY not in document.data:
        return document
    seen = {**seen, path.resolve(): source}
    base = _base(kind, document, path)
    resolved = base.resolve()
    if resolved in seen:
        names = [*seen.values()]
        circle = " -> ".join([*names[[*seen].index(resolved) :], seen[resolved]])
        raise _error(document, f"files extend each other in a circle: {circle}")
    below = _loaded(kind, base, _label(document, base), seen)
    merged = merge(below, document)
    return Document(
        merged.source,
        {key: value for key, value in merged.data.items() if key != KEY},
        {at: line for at, line in merged.lines.items() if at != (KEY,)},
        {at: name for at, name in merged.sources.items() if at != (KEY,)},
    )


def _base(kind: Kind, document: Document, path: Path) -> Path:
    """The file that ``extends`` of ``document`` names."""
    name = document.data[KEY]
    if not isinstance(name, str) or not name:
        raise _error(document, f"must be a name or a path, got {seen(name)}")
    try:
        return locate(kind, name, relative_to=path.parent)
    except RegistryError as error:
        raise _error(document, str(error)) from None
    except ConfigError as error:
        raise _error(document, f"{name}: {error.problems[0].message}") from None


def _label(document: Document, base: Path) -> str:
    """How messages show a base: as its variant wrote it, with the ending a name lacks."""
    name = str(document.data[KEY])
    return name if name.endswith((".yaml", ".yml")) and not name.startswith("/") else base.name


def _error(document: Document, message: str) -> ConfigError:
    """A problem with ``extends``."""
    return ConfigError(document.source, (Problem(KEY, document.where((KEY,))[1], message),))
