"""What differs between two results read from JSON, key by key."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from hwmodel.errors import ConfigError, Problem

if TYPE_CHECKING:
    from pathlib import Path

SIZE_LIMIT_BYTES = 256 * 2**20
"""Largest file read."""
DEPTH_LIMIT = 100
"""Most levels of nesting."""
_MOST_PERCENT = 1e9
"""A change of this share and more says nothing as one."""
_SHOWN = 200
"""Most characters of a path or value in texts."""
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
        """After less before, for numbers; None where that is beyond a float."""
        before, after = _number(self.before), _number(self.after)
        if before is None or after is None:
            return None
        delta = after - before
        return delta if _is_finite(delta) else None

    @property
    def path_text(self) -> str:
        """The path as text."""
        return _shortened(self.path)

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
        percent = 100 * (float(delta) / abs(float(before))) if before else math.inf
        return f"{delta:+.6g} ({percent:+.2f} %)" if abs(percent) < _MOST_PERCENT else f"{delta:+.6g}"


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

    JSON is read strictly: no NaN, no infinity, no number beyond a float and no key written twice.

    Raises:
        ConfigError: no such file, not JSON, or not an object.
    """
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _refusal(path, f"cannot be read: {reason.lower()}") from None
    if len(content) > SIZE_LIMIT_BYTES:
        raise _refusal(path, f"is larger than {SIZE_LIMIT_BYTES} bytes")
    try:
        data = _STRICT.decode(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _refusal(path, f"is not UTF-8 text: byte 0x{content[error.start]:02x}", line) from None
    except json.JSONDecodeError as error:
        raise _refusal(path, f"is not JSON: {error.msg}", error.lineno) from None
    except _NotStrictError as error:
        raise _refusal(path, f"holds {error}") from None
    except RecursionError:
        raise _refusal(path, f"is nested deeper than {DEPTH_LIMIT} levels") from None
    if not isinstance(data, dict):
        raise _refusal(path, f"must hold an object, got {'null' if data is None else type(data).__name__}")
    if _is_deep(data):
        raise _refusal(path, f"is nested deeper than {DEPTH_LIMIT} levels")
    return data


class _NotStrictError(ValueError):
    """What Python's reader of JSON would let pass."""


def _refuse_constant(text: str) -> NoReturn:
    raise _NotStrictError(f"{text}, which is no number")


def _read_whole(text: str) -> int:
    _read_real(text)
    return int(text)


def _read_real(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _NotStrictError(f"{_shortened(text)}, which is beyond the largest number")
    return number


def _read_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _NotStrictError(f"the key {_shortened(key)!r} twice in one object")
        found[key] = value
    return found


_STRICT: Final = json.JSONDecoder(
    object_pairs_hook=_read_object,
    parse_float=_read_real,
    parse_int=_read_whole,
    parse_constant=_refuse_constant,
)


def _is_deep(data: object) -> bool:
    """Whether something lies more than `DEPTH_LIMIT` levels down."""
    level = [data]
    for _ in range(DEPTH_LIMIT + 1):
        level = [part for item in level for part in (_children(item) or {}).values()]
        if not level:
            return False
    return True


def _refusal(path: Path, message: str, line: int | None = None) -> ConfigError:
    return ConfigError(str(path), (Problem("", line, message),))


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


def _is_finite(number: float) -> bool:
    """Whether a float can hold the number."""
    try:
        return math.isfinite(number)
    except OverflowError:  # an int, which has no largest
        return False


def _text(value: object) -> str:
    if value is MISSING:
        return "-"
    if isinstance(value, str):
        return _shortened(value)
    return f"{value:.9g}" if isinstance(value, float) else _shortened(json.dumps(value))


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
