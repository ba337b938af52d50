"""Names a device file uses against names it defines, checked on any shape of file so that all mistakes come at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hwmodel.config.document import KeyPath, child
from hwmodel.errors import Problem, suggestion
from hwmodel.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hwmodel.config.facts import Unwrapped

_EACH: Final = "*"
"""In a pattern: every key or index."""
_KEY: Final = "<key>"
"""At the end of a pattern: every key is itself the name."""

_USES: Final = (
    ("resource with a rate", ("memory", "resource")),
    ("resource with a rate", ("paths", _EACH, "resources", _EACH)),
    ("resource with a rate", ("levels", _EACH, "resource")),
    ("resource with a rate", ("calibration", "achieved_fraction", _KEY)),
    ("resource with units", ("stages", _EACH, _EACH, "unit")),
    ("resource with units", ("holds", _EACH, _EACH)),
    ("resource with units", ("promotion", "units", _EACH)),
    ("path", ("stages", _EACH, _EACH, "path")),
    ("path", ("promotion", "path")),
    ("format", ("matrix", "macs_per_cycle", _KEY)),
    ("format", ("matrix", "formats", _EACH)),
    ("format", ("matrix", "native_scaling", _EACH, "scale_format")),
    ("format with a rate", ("calibration", "sustained_fraction", _KEY)),
    ("format with a rate", ("calibration", "power_fraction", _KEY)),
    ("level", ("calibration", "levels", _KEY)),
)
"""Kind of name and where a device file uses it."""


def undefined_names(facts: Unwrapped) -> Iterator[Problem]:
    """Every name that is used and not defined; the schema complains about shapes."""
    data: object = facts.document.data
    defined = _defined(data)
    for kind, pattern in _USES:
        for path, name in _matches(data, pattern, ()):
            if isinstance(name, str) and name not in defined[kind]:
                yield facts.problem(path, f"unknown {kind} {name!r}{suggestion(name, defined[kind])}")
    yield from _without_rate(facts, defined["format with a rate"])
    calibrated = child(child(data, "calibration"), "levels")
    for name in defined["level"]:
        if child(calibrated, name) is None:
            yield facts.problem(("calibration", "levels", name), "is missing")


def _defined(data: object) -> Mapping[str, tuple[str, ...]]:
    """Names by kind, as far as the file can be read."""
    resources = tuple(_matches(data, ("resources", _EACH), ()))
    rated = (path for path, item in resources if child(item, "units") is None or child(item, "bytes_per_second"))
    return {
        "resource with a rate": tuple(str(path[-1]) for path in rated),
        "resource with units": tuple(str(path[-1]) for path, item in resources if child(item, "units") is not None),
        "path": _keys(data, "paths"),
        "format": FORMATS.names(),
        "format with a rate": _keys(data, "matrix", "macs_per_cycle"),
        "level": _keys(data, "levels"),
    }


def _without_rate(facts: Unwrapped, rates: tuple[str, ...]) -> Iterator[Problem]:
    """Formats the matrix unit is said to multiply, at no rate."""
    for path, name in _matches(facts.document.data, ("matrix", "formats", _EACH), ()):
        if (
            isinstance(name, str)
            and name in FORMATS
            and not {name, rate := FORMATS.get(name).rate_as or name} & {*rates}
        ):
            yield facts.problem(path, f"{name!r} has no rate: matrix.macs_per_cycle needs {rate!r}")


def _keys(data: object, *path: str) -> tuple[str, ...]:
    """The keys of the mapping at ``path``."""
    return tuple(str(name) for _, name in _matches(data, (*path, _KEY), ()))


def _matches(value: object, pattern: tuple[str, ...], path: KeyPath) -> Iterator[tuple[KeyPath, object]]:
    """Where ``pattern`` leads from ``value``, with what lies there; nowhere, if the file has another shape."""
    if not pattern:
        yield path, value
        return
    step, rest = pattern[0], pattern[1:]
    if step in {_EACH, _KEY}:
        for key, item in _items(value):
            yield from ((((*path, key), key),) if step == _KEY else _matches(item, rest, (*path, key)))
    elif (inner := child(value, step)) is not None:
        yield from _matches(inner, rest, (*path, step))


def _items(value: object) -> tuple[tuple[str | int, object], ...]:
    """Keys or indices with what lies under them."""
    if isinstance(value, dict):
        return tuple(value.items())
    return tuple(enumerate(value)) if isinstance(value, tuple) else ()
