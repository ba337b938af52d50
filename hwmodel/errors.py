"""Every exception the package raises on purpose.

An exception's ``args`` are exactly its constructor's arguments and the text is made in ``__str__``: SimPy rebuilds
exceptions from ``args`` and sweeps pickle them. Nothing is imported from the package here.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_KNOWN_SHOWN = 60


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, or None if none is close; case does not count."""
    by_folded: dict[str, str] = {}
    for candidate in sorted(known):
        by_folded.setdefault(candidate.casefold(), candidate)
    close = difflib.get_close_matches(name.casefold(), list(by_folded), n=1)
    return by_folded[close[0]] if close else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """The tail of a message about an unknown name: ``; did you mean 'x'? known: x, y``."""
    names = sorted(known)
    if not names:
        return "; none are known"
    close = nearest(name, names)
    hint = f"; did you mean {close!r}? known: " if close is not None else "; known: "
    more = f", ... ({len(names)} in all)" if len(names) > _KNOWN_SHOWN else ""
    return hint + ", ".join(names[:_KNOWN_SHOWN]) + more


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in something a user wrote."""

    path: str
    """Dotted path of the value, empty for the whole file."""
    line: int | None
    """Line counted from 1, or None where there is none."""
    message: str
    """The rule, what came, and what would be right."""
    source: str | None = None
    """Where the value was written, if not in the error's own source: a base file or ``--set``."""

    def text(self, source: str) -> str:
        """``source:line: path: message``, leaving out what is not known."""
        place = self.source if self.source is not None else source
        if self.line is not None:
            place = f"{place}:{self.line}"
        return ": ".join(part for part in (place, self.path, self.message) if part)


class HwModelError(Exception):
    """Base of every error a user can cause; never raised itself."""


class ConfigError(HwModelError, ValueError):
    """What a user wrote is wrong: every mistake found, one a line."""

    def __init__(self, source: str, problems: tuple[Problem, ...]) -> None:
        super().__init__(source, problems)
        self.source = source
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(problem.text(self.source) for problem in self.problems)


class ParameterError(HwModelError, ValueError):
    """A domain object refuses one of its fields; ``config`` adds file and line."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)
        self.field = field
        self.message = message

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class RegistryError(HwModelError, LookupError):
    """A name its family does not know, or registers a second time."""

    def __init__(self, family: str, name: str, known: tuple[str, ...]) -> None:
        super().__init__(family, name, known)
        self.family = family
        self.name = name
        self.known = known

    def __str__(self) -> str:
        if self.name in self.known:
            return f"{self.family} {self.name!r} is registered twice"
        return f"unknown {self.family} {self.name!r}{suggestion(self.name, self.known)}"


def _few(names: list[str], most: int = 3) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more nodes" if more > 0 else "")


class UnsupportedError(HwModelError):
    """The device lacks what the program needs: every (node, unit, format) at once."""

    def __init__(self, misses: tuple[tuple[str, str, str], ...], paths: tuple[str, ...] = ()) -> None:
        """``paths`` says for each miss which value asks for it.

        That is a path of a file, or one under the node, such as ``inputs.0``; '' where nobody knows.
        """
        super().__init__(misses, paths)
        self.misses = misses
        self.paths = paths

    def __str__(self) -> str:
        return "\n".join(text for _, _, text in self.grouped())

    def grouped(self) -> tuple[tuple[str, str, str], ...]:
        """(path, node, sentence) of every (unit, format) that is missing: path and node of its first miss."""
        nodes: dict[tuple[str, str], list[str]] = {}
        paths: dict[tuple[str, str], str] = {}
        known = self.paths or ("",) * len(self.misses)
        for (node, unit, number_format), path in zip(self.misses, known, strict=True):
            nodes.setdefault((unit, number_format), []).append(node)
            paths.setdefault((unit, number_format), path)
        return tuple(
            (paths[key], names[0], f"{key[0]} does not support {key[1]!r}, which {_few(names)} would need")
            for key, names in nodes.items()
        )


class SimulationError(HwModelError, RuntimeError):
    """The engine cannot go on, for instance because the tasks named wait for each other."""

    def __init__(self, message: str, time_picoseconds: int, names: tuple[str, ...]) -> None:
        super().__init__(message, time_picoseconds, names)
        self.message = message
        self.time_picoseconds = time_picoseconds
        self.names = names

    def __str__(self) -> str:
        named = f": {', '.join(self.names)}" if self.names else ""
        return f"at {self.time_picoseconds} ps: {self.message}{named}"


class GraphError(HwModelError, ValueError):
    """A graph that cannot be executed: cyclic, dangling, or with a tensor written twice; every reason on a line."""

    def __init__(self, graph: str, message: str) -> None:
        super().__init__(graph, message)
        self.graph = graph
        self.message = message

    def __str__(self) -> str:
        return "\n".join(f"graph {self.graph!r}: {line}" for line in self.message.splitlines())


class RefusedError(HwModelError, ValueError):
    """A combination that cannot exist, with the reason."""

    def __init__(self, path: str, message: str, more: tuple[tuple[str, str], ...] = ()) -> None:
        """``more`` are further (path, message) of the same thing."""
        super().__init__(path, message, more)
        self.path = path
        self.message = message
        self.more = more

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """Every (path, message)."""
        return ((self.path, self.message), *self.more)

    def __str__(self) -> str:
        return "\n".join(f"{path}: {message}" for path, message in self.reasons)


class CombinedError(HwModelError):
    """What several errors say, of different things at once."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        super().__init__(texts)
        self.texts = texts

    def __str__(self) -> str:
        return "\n".join(self.texts)


def several(errors: Iterable[HwModelError]) -> HwModelError:
    """One error for all: equal texts once, and a single one as it is."""
    distinct = {str(error): error for error in errors}
    return next(iter(distinct.values())) if len(distinct) == 1 else CombinedError(tuple(distinct))
