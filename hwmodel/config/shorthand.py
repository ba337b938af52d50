"""Sections written as a text alone, and edits that reach into them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hwmodel.config.document import Document, KeyPath
from hwmodel.config.edits import SET, edit
from hwmodel.config.facts import split_edit
from hwmodel.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hwmodel.config.facts import Edit

SHORTHANDS: Final = {"model": "base", "recipe": "preset", "schedule": "streams", "software": "set"}
"""Sections that may be written as a text alone, with the key that text belongs to."""
KEPT: Final = ("fusion", "exceptions")
"""Axes of a file's recipe that do not belong to its preset: they stay when another preset replaces it."""
RECIPE_OPTION: Final = "--recipe"
"""The source of a preset that replaces the file's."""


def edited(document: Document, edits: Iterable[Edit], recipe: str | None) -> Document:
    """What the file says with every edit on top; with ``recipe``, of the file's own recipe only `KEPT` stays."""
    problems: list[Problem] = []
    if recipe is not None:
        document = _without_axes(document)
    for assignment in edits:
        path, value = split_edit(assignment)
        if value is None and isinstance(assignment, str):
            problems.append(Problem("", None, f"must be path=value, got {assignment!r}", SET))
            continue
        if path in SHORTHANDS and path != "model":
            path = f"{path}.{SHORTHANDS[path]}"
        try:
            document = edit(document, path, value, shorthands=SHORTHANDS)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(document.source, tuple(problems))
    if recipe is None:
        return document
    if not recipe or not recipe.isprintable():
        raise ConfigError(document.source, (Problem("", None, f"must name a preset, got {recipe!r}", RECIPE_OPTION),))
    document = edit(document, "recipe.preset", recipe, shorthands=SHORTHANDS)
    return replace(document, sources={**document.sources, ("recipe", "preset"): RECIPE_OPTION})


def _without_axes(document: Document) -> Document:
    """The recipe section without what belongs to the preset that the file names."""
    section = document.data.get("recipe")
    if not isinstance(section, dict):
        return document
    return replace(document, data={**document.data, "recipe": {key: section[key] for key in KEPT if key in section}})


def expanded(document: Document) -> tuple[Document, frozenset[str]]:
    """Sections written as a text alone as mappings, and which ones these are."""
    data, lines, sources = dict(document.data), dict(document.lines), dict(document.sources)
    shortened = frozenset(key for key in SHORTHANDS if isinstance(data.get(key), str))
    for key in shortened:
        inner: KeyPath = (key, SHORTHANDS[key])
        data[key] = {SHORTHANDS[key]: data[key]}
        source, line = document.where((key,))
        if line is not None:
            lines[inner] = line
        if source != document.source:
            sources[inner] = source
    return Document(document.source, data, lines, sources), shortened
