"""The points of a sweep: the product of devices, recipes and axes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from hwmodel.api import OWN, RECIPE_PATHS
from hwmodel.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Listed: TypeAlias = "str | Sequence[str | int | None]"
"""Values parted by commas, or a list of them."""
_CLOSING = {"[": "]", "{": "}"}
_QUOTES = ("'", '"')
GRANULARITY = "recipe.granularity"
INTERVAL = "recipe.interval_steps"
LARGEST_GRID = 100_000
"""Points of one sweep: more are a mistake in an axis rather than a wish."""
_NAMING_SECTIONS = ("model", "software")


@dataclass(frozen=True, slots=True)
class Axis:
    """Values of one path, as text."""

    path: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One combination."""

    device: str
    recipe: str | None
    """Preset, or `OWN`; None where none was asked for, which is the workload's own too."""
    values: tuple[tuple[str, str], ...]
    """(path, value) of every axis."""

    @property
    def preset(self) -> str | None:
        """Preset; None for the workload's own recipe."""
        return None if self.recipe == OWN else self.recipe

    @property
    def edits(self) -> tuple[tuple[str, str], ...]:
        """Edits of the workload."""
        return tuple((path, value) for path, value in self.values if not path.startswith("device."))

    @property
    def device_edits(self) -> tuple[tuple[str, str], ...]:
        """Edits of the device."""
        prefix = "device."
        return tuple((path.removeprefix(prefix), value) for path, value in self.values if path.startswith(prefix))


@dataclass(frozen=True, slots=True)
class Grid:
    """What is swept."""

    workload: str
    devices: tuple[str, ...]
    recipes: tuple[str, ...]
    """Presets, and `OWN`; empty for the workload's own recipe alone."""
    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if not self.devices:
            raise ParameterError("--device", "must name at least one device")
        seen: set[str] = set()
        for axis in self.axes:
            if axis.path in seen:
                raise ParameterError(axis.path, "is given twice; write its values in one list, parted by commas")
            seen.add(axis.path)
            if self.recipes and axis.path in RECIPE_PATHS:
                raise ParameterError(axis.path, "recipes are given by --recipes already")
        if len(self) > LARGEST_GRID:
            raise ParameterError("sweep", f"must have at most {LARGEST_GRID:,} points, got {len(self):,}")

    def __len__(self) -> int:
        count = len(self.devices) * max(1, len(self.recipes))
        for axis in self.axes:
            count *= len(axis.values)
        return count

    def __iter__(self) -> Iterator[Point]:
        recipes: Sequence[str | None] = self.recipes or (None,)
        paths = [axis.path for axis in self.axes]
        for device, recipe, *values in itertools.product(self.devices, recipes, *(axis.values for axis in self.axes)):
            assert device is not None
            yield Point(device, recipe, tuple(zip(paths, (str(value) for value in values), strict=True)))

    def naming_edits(self) -> Iterator[tuple[tuple[str, str], ...]]:
        """Edits of every combination of the values that may name another file: a model or a software set."""
        axes = [axis for axis in self.axes if axis.path.partition(".")[0] in _NAMING_SECTIONS]
        for values in itertools.product(*(axis.values for axis in axes)):
            yield tuple(zip((axis.path for axis in axes), values, strict=True))


def make_grid(
    workload: str,
    devices: Listed,
    *,
    recipes: Listed | None = None,
    granularity: Listed | None = None,
    interval: Listed | None = None,
    sets: Sequence[str] = (),
) -> Grid:
    """A grid from what a command line says; a list may be text parted by commas (see `split_values`).

    Raises:
        ParameterError: a list that cannot be read, or a path given twice.
    """
    axes = []
    for path, option, text in ((GRANULARITY, "--granularity", granularity), (INTERVAL, "--interval", interval)):
        if text is not None:
            axes.append(Axis(path, split_values(_text(text), option)))
    axes += [read_axis(text) for text in sets]
    return Grid(
        workload,
        split_values(_text(devices), "--device"),
        () if recipes is None else split_values(_text(recipes), "--recipes"),
        tuple(axes),
    )


def _text(values: Listed) -> str:
    return values if isinstance(values, str) else ",".join("none" if value is None else str(value) for value in values)


def read_axis(text: str) -> Axis:
    """An axis from ``path=v1,v2``.

    Raises:
        ParameterError: no path, or a list that cannot be read.
    """
    path, equals, values = text.partition("=")
    path = path.strip()
    if not equals or not path:
        raise ParameterError("--set", f"must be path=v1,v2,..., got {text!r}")
    return Axis(path, split_values(values, path))


def split_values(text: str, field: str) -> tuple[str, ...]:
    """Values parted by commas, but not by those inside ``[a,b]``, ``{...}`` or quotes.

    Raises:
        ParameterError: an empty value, or a bracket or quote that does not close.
    """
    values: list[str] = []
    open_brackets: list[str] = []
    quote = ""
    start = 0
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES and not text[start:place].strip(" [{,"):
            quote = character
        elif character in _CLOSING:
            open_brackets.append(_CLOSING[character])
        elif open_brackets and character == open_brackets[-1]:
            open_brackets.pop()
        elif character == "," and not open_brackets:
            values.append(text[start:place].strip())
            start = place + 1
    values.append(text[start:].strip())
    if quote or open_brackets:
        raise ParameterError(field, f"{quote or open_brackets[-1]} is missing, got {text!r}")
    if not all(values):
        raise ParameterError(field, f"must be values parted by commas, none of them empty, got {text!r}")
    return tuple(values)
