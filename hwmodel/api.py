"""The wiring: names and paths in, results out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hwmodel.config.device import read_device
from hwmodel.config.placed import Written
from hwmodel.config.software import read_software
from hwmodel.config.workload import LoadedWorkload, load_workload, presets
from hwmodel.errors import ConfigError, ParameterError, RegistryError, several
from hwmodel.recipes.recipe import Recipe
from hwmodel.simulation import Machine, Simulation
from hwmodel.simulation import simulate as run
from hwmodel.simulation.result import Result, Totals

if TYPE_CHECKING:
    from hwmodel.config.document import Document
    from hwmodel.device import Device
    from hwmodel.workload import Workload

Progress = Callable[[str], None]
__all__ = ["DEFAULT_RECIPES", "Comparison", "Result", "Session", "compare", "recipes", "simulate"]

DEFAULT_RECIPES = ("bf16", "delayed", "current", "mxfp8")
BASELINE = Recipe()
RECIPE_PATHS = ("recipe", "recipe.preset")
"""Paths of edits that name a recipe."""
OWN = "own"
"""In a comparison: the recipe as the workload's file says it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Results of one workload on one device under several recipes, in the order asked for.

    All are seen from one pipeline rank, the slowest under the first recipe, so that what differs is the recipe's.
    """

    rows: tuple[Result, ...]
    left_out: tuple[str, ...] = ()
    """Recipes of the default list whose formats the device does not multiply."""

    def __iter__(self) -> Iterator[Result]:
        """The results in order."""
        return iter(self.rows)

    def __getitem__(self, recipe: str | int) -> Result:
        """The result of a recipe by its name, or by its place.

        Raises:
            RegistryError: no such recipe.
        """
        if isinstance(recipe, int):
            return self.rows[recipe]
        names = [row.recipe.preset for row in self.rows]
        if recipe not in names:
            raise RegistryError("recipe of this comparison", recipe, tuple(names))
        return self.rows[names.index(recipe)]

    def __len__(self) -> int:
        """Number of results."""
        return len(self.rows)

    def table(self) -> dict[str, list[Any]]:
        """Columns: recipe, step_seconds, speedup, and the seconds of each key of the breakdown."""
        columns: dict[str, list[Any]] = {
            "recipe": [row.recipe.preset for row in self.rows],
            "step_seconds": [row.step_seconds for row in self.rows],
            "speedup": [row.speedup for row in self.rows],
        }
        for key in self.rows[0].data["breakdown_seconds"] if self.rows else ():
            columns[key] = [row.data["breakdown_seconds"][key] for row in self.rows]
        return columns


class Session:
    """One workload file on one device: loads once, simulates each distinct recipe once."""

    def __init__(
        self, workload: str, device: str | Device, *, sets: Sequence[str] = (), recipe: str | None = None
    ) -> None:
        """``sets`` are ``path=value`` edits; those under ``device.`` and ``software.`` go to their own files.

        Raises:
            ConfigError: a mistake in a file or an edit, all of them at once; or the device lacks what they ask for.
        """
        _check_one_recipe(sets, recipe)
        self.edits = tuple(sets)
        own, to_device = _sorted_edits(sets)
        mistakes: list[ConfigError] = []
        made: Device | None = None if isinstance(device, str) else device
        written: Document | None = None
        try:
            loaded = load_workload(workload, own, recipe=recipe)
            software = read_software(loaded.workload.software, loaded.software_edits)
        except ConfigError as error:
            mistakes.append(error)
        if isinstance(device, str):
            try:
                read = read_device(device, to_device)
                made, written = read.device, read.document
            except ConfigError as error:
                mistakes.append(error)
        if mistakes or made is None:
            raise several(mistakes)
        self.workload: Workload = loaded.workload
        self.defaults = _lines(loaded.defaults)
        self._written = Written(loaded.document, written, software.document)
        with self._written.placing():
            self.machine = Machine(made, software.software)
        self._done: dict[Recipe, Simulation] = {}
        self._baselines: dict[int, Totals] = {}

    def result(self, recipe: Recipe | None = None, *, source: LoadedWorkload | None = None) -> Result:
        """Simulate under ``recipe`` (the workload's own if none) and BF16 beside it.

        ``source`` is what ``recipe`` was read from; None for the session's own workload.

        Raises:
            ConfigError: the device lacks what the workload and the recipe need, or its facts do not do for a kernel.
        """
        written = self._written if source is None else replace(self._written, workload=source.document)
        with written.placing():
            simulation, baseline = self._simulation(recipe or self.workload.recipe), self._simulation(BASELINE)
        return Result(
            self.workload,
            self.machine,
            simulation,
            baseline,
            defaults=self.defaults if source is None else _lines(source.defaults),
            edits=self.edits,
            baselines=self._baselines,
        )

    def _simulation(self, recipe: Recipe) -> Simulation:
        key = recipe.canonical()
        if key not in self._done:
            self._done[key] = run(self.workload, recipe, self.machine)
        return replace(self._done[key], recipe=recipe)


def simulate(workload: str, device: str | Device, *, recipe: str | None = None, sets: Sequence[str] = ()) -> Result:
    """Simulate a workload (name or path) on a device (name, path or object); ``sets`` are ``path=value`` edits."""
    return Session(workload, device, sets=sets, recipe=recipe).result()


def compare(
    workload: str,
    device: str | Device,
    recipes: str | Iterable[str] | None = None,
    *,
    sets: Sequence[str] = (),
    progress: Progress | None = None,
) -> Comparison:
    """The same workload under several presets; the file's and the edits' overrides apply to each.

    ``recipes`` are presets (a list, or a text with commas); 'own' is the workload's own recipe. Without them, those of
    `DEFAULT_RECIPES` that the device has the formats for. A preset replaces the file's recipe but for fusion and
    exceptions.

    Raises:
        ConfigError: a mistake in a file or an edit, or a recipe that was asked for needs a format the device lacks.
    """
    rows = []
    left_out = []
    session: Session | None = None
    names = [name.strip() for name in recipes.split(",")] if isinstance(recipes, str) else recipes
    names = None if names is None else list(names)
    known = (OWN, *presets())
    unknown = [RegistryError("preset", name, known) for name in names or () if name not in known]
    if unknown:
        raise several(unknown)
    for name in DEFAULT_RECIPES if names is None else names:
        if progress:
            progress(name)
        preset = None if name == OWN else name
        _check_one_recipe(sets, preset)
        loaded = load_workload(workload, _sorted_edits(sets)[0], recipe=preset)
        if session is None:
            session = Session(workload, device, sets=sets, recipe=preset)
        formats = loaded.workload.recipe.formats
        if names is None and not {formats.x, formats.w, formats.g} <= session.machine.device.matrix_formats:
            left_out.append(name)
            continue
        chosen = loaded.workload.recipe if preset else replace(loaded.workload.recipe, preset=OWN)
        rows.append(session.result(chosen, source=loaded))
    return Comparison(tuple(row.on(rows[0].simulation.stage) for row in rows), tuple(left_out))


def recipes() -> dict[str, Recipe]:
    """The presets by name."""
    return dict(presets())


def _check_one_recipe(sets: Sequence[str], recipe: str | None) -> None:
    """Refuse an edit that names a recipe beside one that is asked for already."""
    for text in sets:
        if recipe is not None and text.partition("=")[0].strip() in RECIPE_PATHS:
            raise ParameterError("--set", f"the recipe is given already, {recipe!r}, got {text!r}")


def _lines(defaults: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{path}: {value}" for path, value in defaults)


def _sorted_edits(sets: Sequence[str]) -> tuple[list[str], list[str]]:
    own = [text for text in sets if not text.startswith("device.")]
    return own, [text.removeprefix("device.") for text in sets if text.startswith("device.")]
