"""What differs between two results read from JSON, key by key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hwmodel.errors import ConfigError, Problem

if TYPE_CHECKING:
    from pathlib import Path

_NAMING_KEYS = ("recipe", "name")
"""Entries of a list that all have a different one of these are matched by it rather than by place."""


class _Missing:
    """The value of a key that a result does not have."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "missing"


MISSING: Final = _Missing()


@dataclass(frozen=True, slots=True)
class Change:
    """One leaf that differs; a side that lacks it holds `MISSING`."""

    path: str
    before: object
    after: object

    @property
    def delta(self) -> float | int | None:
        """After less before, for numbers."""
        before, after = _number(self.before), _number(self.after)
        return None if before is None or after is None else after - before

    @property
    def before_text(self) -> str:
        """The earlier value as text."""
        return _text(self.before)

    @property
    def after_text(self) -> str:
        """The later value as text."""
        return _text(self.after)

    @property
    def delta_text(self) -> str:
        """``+0.25 (+12.50 %)``, or what happened to a value that is no number."""
        if self.before is MISSING:
            return "added"
        if self.after is MISSING:
            return "removed"
        if (delta := self.delta) is None:
            return "changed"
        before = _number(self.before)
        return f"{delta:+.6g} ({100 * delta / abs(before):+.2f} %)" if before else f"{delta:+.6g}"


def compare(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[Change, ...]:
    """Leaves that differ, in the order of ``before`` and then of ``after``; empty if the results are equal.

    Keys that only one side has are changes like others. Lists are matched entry by entry, and by name where all
    entries have one (recipes of a comparison).
    """
    return tuple(_changes("", before, after))


def check_kinds(before_path: Path, before: Mapping[str, object], after_path: Path, after: Mapping[str, object]) -> None:
    """Refuse to compare results of two different commands.

    Raises:
        ConfigError: one is of another command than the other.
    """
    kinds = _kind(before), _kind(after)
    if all(kinds) and kinds[0] != kinds[1]:
        said = (
            f"is a result of {kinds[1]}, but {before_path} is one of {kinds[0]}; give two results of the same command"
        )
        raise ConfigError(str(after_path), (Problem("", None, said),))


def _kind(result: Mapping[str, object]) -> str:
    """Command that wrote a result, empty where that cannot be told."""
    if "crossovers" in result:
        return "sweep"
    if "rows" in result:
        return "compare"
    return "simulate" if "step_seconds" in result else ""


def read_result(path: Path) -> dict[str, object]:
    """A result written with ``--json``.

    Raises:
        ConfigError: no such file, not JSON, or not an object.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            str(path), (Problem("", None, f"cannot be read: {(error.strerror or '').lower()}"),)
        ) from None
    except json.JSONDecodeError as error:
        raise ConfigError(str(path), (Problem("", error.lineno, f"is not JSON: {error.msg}"),)) from None
    except (UnicodeDecodeError, RecursionError, ValueError):
        raise ConfigError(str(path), (Problem("", None, "is not JSON"),)) from None
    if not isinstance(data, dict):
        raise ConfigError(str(path), (Problem("", None, f"must hold an object, got {type(data).__name__}"),))
    return data


def _changes(path: str, before: object, after: object) -> Iterator[Change]:
    left, right = _children(before), _children(after)
    if left is not None and right is not None and isinstance(before, Mapping) == isinstance(after, Mapping):
        if not isinstance(before, Mapping):
            left, right = _named(left, right)
        for key in dict.fromkeys([*left, *right]):
            yield from _changes(_join(path, key), left.get(key, MISSING), right.get(key, MISSING))
    elif left and after is MISSING:
        for key, value in left.items():
            yield from _changes(_join(path, key), value, MISSING)
    elif right and before is MISSING:
        for key, value in right.items():
            yield from _changes(_join(path, key), MISSING, value)
    elif _differs(before, after):
        yield Change(path, before, after)


def _differs(before: object, after: object) -> bool:
    if before is MISSING or after is MISSING:
        return True
    if isinstance(before, bool) != isinstance(after, bool):
        return True
    both_nan = before != before and after != after  # noqa: PLR0124 - only NaN differs from itself
    return before != after and not both_nan


def _children(value: object) -> dict[str, object] | None:
    """Parts of an object or a list by key, None for a leaf."""
    if isinstance(value, Mapping):
        return {str(key): part for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return {f"[{number}]": part for number, part in enumerate(value)}
    return None


def _named(left: dict[str, object], right: dict[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Both lists keyed by name, if every entry of both has one of its own."""
    for key in _NAMING_KEYS:
        found = [_by_name(side, key) for side in (left, right)]
        if found[0] is not None and found[1] is not None:
            return found[0], found[1]
    return left, right


def _by_name(side: dict[str, object], key: str) -> dict[str, object] | None:
    names: dict[str, object] = {}
    for entry in side.values():
        name = entry.get(key) if isinstance(entry, Mapping) else None
        if not isinstance(name, str) or f"[{name}]" in names:
            return None
        names[f"[{name}]"] = entry
    return names


def _join(path: str, key: str) -> str:
    return f"{path}{key}" if key.startswith("[") or not path else f"{path}.{key}"


def _number(value: object) -> float | int | None:
    """The value if it is a number, which a boolean is not."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: object) -> str:
    if value is MISSING:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:.9g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
