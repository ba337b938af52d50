"""Runs a sweep: checks the whole grid, simulates each distinct point once, and gives a row for every point."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from hwmodel.api import OWN
from hwmodel.config.device import load_device, load_software
from hwmodel.config.workload import LoadedWorkload, load_workload, presets
from hwmodel.errors import (
    ConfigError,
    HwModelError,
    ParameterError,
    RefusedError,
    RegistryError,
    UnsupportedError,
    several,
)
from hwmodel.recipes.recipe import Recipe
from hwmodel.simulation import Machine, Simulation, simulate
from hwmodel.sweeps.points import Axis, Grid, Listed, Point, make_grid
from hwmodel.units import PICOSECONDS_PER_SECOND, parse_number
from hwmodel.workload import Training, Workload

if TYPE_CHECKING:
    from hwmodel.device import Device
    from hwmodel.device.software import Software

DONE = "done"
REFUSED = "refused"
FIXED_PATHS = (
    "batch.sequence",
    "batch.micro",
    "batch.global",
    "parallel.tp",
    "parallel.sp",
    "parallel.pp",
    "parallel.vp",
    "parallel.cp",
    "parallel.dp",
    "recipe.granularity",
    "recipe.timing",
    "recipe.interval_steps",
    "recipe.history_steps",
    "recipe.margin_bits",
    "recipe.amax.kernel",
    "recipe.amax.sampling",
    "recipe.fusion",
    "schedule.streams",
    "software",
    "steps",
)
"""Paths that every row has."""
_BASELINE = Recipe()
_IMPOSSIBLE = (RefusedError, ParameterError, UnsupportedError)
"""What a simulation raises where a combination cannot exist on a device."""
_NEUTRAL = "bf16"
"""Preset that no axis of a recipe contradicts."""
SPELT: Final = {"schedule": "schedule.streams", "software.set": "software"}
"""Other spellings of fixed paths."""

T = TypeVar("T")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One point and what came of it."""

    device: str
    recipe: str
    values: Mapping[str, object]
    """Every fixed path and every swept path; None where the workload has no such thing."""
    step_seconds: float | None = None
    speedup: float | None = None
    status: str = DONE
    reason: str = ""
    same_as: int | None = None
    """Index of the row that was computed, where this point is identical to it."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A point that can be simulated."""

    workload: Workload
    machine: Machine
    key: Hashable
    """Equal for points that are identical but for the recipe."""


@dataclass(frozen=True, slots=True)
class _Checked:
    """A point after the check of the grid: ready, or refused for a reason."""

    point: Point
    values: Mapping[str, object]
    recipe: str
    ready: _Ready | None
    reason: str = ""


class _Numbers(Generic[T]):
    """Numbers distinct things; for things that compare and do not hash."""

    def __init__(self) -> None:
        self._items: list[T] = []

    def number(self, item: T) -> int:
        """The number of the first equal item."""
        for place, known in enumerate(self._items):
            if known == item:
                return place
        self._items.append(item)
        return len(self._items) - 1


class _Loader:
    """Loads each distinct file with its edits once."""

    def __init__(self, workload: str) -> None:
        self._name = workload
        self._kept: dict[Hashable, object] = {}
        self._devices: _Numbers[Device] = _Numbers()
        self._software: _Numbers[Software] = _Numbers()
        self._workloads: _Numbers[Workload] = _Numbers()
        self._machines: dict[tuple[int, int], Machine] = {}

    def workload(self, edits: tuple[tuple[str, str], ...], recipe: str | None) -> LoadedWorkload:
        return self._once(("workload", edits, recipe), lambda: load_workload(self._name, edits, recipe))

    def device(self, name: str, edits: tuple[tuple[str, str], ...]) -> Device:
        return self._once(("device", name, edits), lambda: load_device(name, edits))

    def software(self, loaded: LoadedWorkload) -> Software:
        name, edits = loaded.workload.software, loaded.software_edits
        return self._once(("software", name, repr(edits)), lambda: load_software(name, edits))

    def point(self, point: Point) -> _Ready:
        """The point ready to run.

        Raises:
            HwModelError: it cannot be.
        """
        device = self.device(point.device, point.device_edits)
        loaded = self.workload(point.edits, point.preset)
        workload, software = loaded.workload, self.software(loaded)
        # A value set to what it was already is the same value, whoever said it.
        numbers = (
            self._devices.number(replace(device, sources=())),
            self._software.number(replace(software, since=())),
        )
        if numbers not in self._machines:
            self._machines[numbers] = Machine(device, software)
        bare = replace(workload, recipe=_BASELINE)
        return _Ready(workload, self._machines[numbers], (*numbers, self._workloads.number(bare)))

    def _once(self, key: Hashable, load: Callable[[], T]) -> T:
        if key not in self._kept:
            try:
                self._kept[key] = load()
            except HwModelError as error:
                self._kept[key] = error
        found: Any = self._kept[key]
        if isinstance(found, HwModelError):
            raise found
        result: T = found
        return result


@dataclass(slots=True)
class Sweep:
    """A checked grid; `rows` simulates it."""

    grid: Grid
    checked: tuple[_Checked, ...]
    name: str
    """Name of the workload."""
    _done: dict[Hashable, float | str] = field(default_factory=dict)

    def rows(self, say: Say = lambda text: None) -> Iterator[Row]:
        """A row for every point in order, as each is finished."""
        first: dict[Hashable, int] = {}
        for place, item in enumerate(self.checked):
            row = Row(item.point.device, item.recipe, item.values, status=REFUSED, reason=item.reason)
            ready = item.ready
            if ready is None:
                yield row
                continue
            say(f"{place + 1} of {len(self.checked)}: {item.recipe} on {item.point.device}")
            key = (ready.key, ready.workload.recipe.canonical())
            step, baseline = self._step(ready, ready.workload.recipe), self._step(ready, _BASELINE)
            same_as = first.setdefault(key, place)
            row = replace(row, same_as=None if same_as == place else same_as)
            if isinstance(step, str) or isinstance(baseline, str):
                yield replace(row, reason=step if isinstance(step, str) else str(baseline))
            else:
                yield replace(row, status=DONE, step_seconds=step, speedup=baseline / step if step else 1.0)

    def _step(self, ready: _Ready, recipe: Recipe) -> float | str:
        """Seconds of the mean step, or why there cannot be one."""
        key = (ready.key, recipe.canonical())
        if key not in self._done:
            try:
                self._done[key] = _step_seconds(simulate(ready.workload, recipe, ready.machine))
            except _IMPOSSIBLE as error:
                self._done[key] = _one_line(error)
        return self._done[key]


def prepare(grid: Grid) -> Sweep:
    """Check every point of a grid before anything is simulated.

    A point whose parts are all well-formed and that cannot exist becomes a row with the reason. Anything else is a
    mistake: an unknown name or path, a value that cannot be read, or a refusal of every point there is.

    Raises:
        HwModelError: a mistake.
    """
    loader = _Loader(grid.workload)
    known = presets()
    for name in grid.recipes:
        if name not in (OWN, *known):
            raise RegistryError("preset", name, (OWN, *known))
    for name in grid.devices:
        loader.device(name, ())
    ready: dict[Point, _Ready] = {}
    failed: dict[Point, HwModelError] = {}
    for point in grid:
        try:
            ready[point] = loader.point(point)
        except HwModelError as error:
            failed[point] = error
    if not ready:
        raise several(failed.values())
    usable = {pair for point in ready for pair in point.values}
    for point, refusal in failed.items():
        for axis, (path, value) in zip(grid.axes, point.values, strict=True):
            if (path, value) not in usable and not _is_well_formed(loader, grid, axis, value):
                raise refusal
    checked = tuple(_check(loader, grid, point, ready.get(point), failed.get(point)) for point in grid)
    return Sweep(grid, checked, next(iter(ready.values())).workload.name)


def sweep(
    workload: str,
    devices: Listed,
    *,
    recipes: Listed | None = None,
    granularity: Listed | None = None,
    interval: Listed | None = None,
    sets: Sequence[str] = (),
) -> list[Row]:
    """Every combination, simulated; lists, or text parted by commas as on the command line."""
    grid = make_grid(workload, devices, recipes=recipes, granularity=granularity, interval=interval, sets=sets)
    return list(prepare(grid).rows())


def _is_well_formed(loader: _Loader, grid: Grid, axis: Axis, value: str) -> bool:
    """Whether a value could be used in another combination: it loads where nothing contradicts it, or is a number.

    A number that is refused (7 ranks for 128 heads) depends on other numbers.
    """
    single = tuple((other.path, other.values[0]) for other in grid.axes if len(other.values) == 1)
    values = tuple(pair for pair in single if pair[0] != axis.path)
    alone = Point(grid.devices[0], _NEUTRAL, (*values, (axis.path, value)))
    try:
        loader.point(alone)
    except HwModelError:
        return is_whole(value)
    return True


def is_whole(text: str) -> bool:
    """Whether this is a whole number, or a list of them."""
    items = text[1:-1].split(",") if text.startswith("[") and text.endswith("]") else [text]
    numbers = [parse_number(item.strip()) for item in items]
    return all(number is not None and number.denominator == 1 for number in numbers)


def _check(loader: _Loader, grid: Grid, point: Point, ready: _Ready | None, error: HwModelError | None) -> _Checked:
    swept = {SPELT.get(path, path): _shown(value) for path, value in point.values}
    if ready is not None:
        values = {**swept, **axis_values(ready.workload)}
        return _Checked(point, _ordered(values, grid), _name(point, ready.workload), ready)
    assert error is not None
    single = tuple((axis.path, axis.values[0]) for axis in grid.axes if len(axis.values) == 1)
    base: Mapping[str, object] = {}
    recipe = point.recipe
    try:
        edits = Point(point.device, point.recipe, single).edits
        loaded = loader.workload(edits, point.preset).workload
        base, recipe = axis_values(loaded), _name(point, loaded)
    except HwModelError:  # then only what was asked for is known
        pass
    return _Checked(point, _ordered({**base, **swept}, grid), recipe or "", None, _one_line(error))


def _name(point: Point, workload: Workload) -> str:
    """What a row calls the recipe: as it was asked for, or by its preset where none was."""
    return point.recipe or workload.recipe.preset


def axis_values(workload: Workload) -> dict[str, object]:
    """Every fixed path of a workload with its value; those it does not have are left out."""
    recipe = workload.recipe
    values: dict[str, object] = {
        "recipe.granularity": recipe.granularity,
        "recipe.timing": recipe.timing,
        "recipe.interval_steps": "none" if recipe.interval_steps is None else recipe.interval_steps,
        "recipe.history_steps": recipe.history_steps,
        "recipe.margin_bits": recipe.margin_bits,
        "recipe.amax.kernel": recipe.amax.kernel,
        "recipe.amax.sampling": recipe.amax.sampling,
        "recipe.fusion": recipe.fusion,
        "schedule.streams": workload.schedule,
        "software": workload.software,
        "steps": workload.steps,
    }
    if isinstance(workload, Training):
        batch, layout = workload.batch, workload.layout
        values |= {
            "batch.sequence": batch.sequence,
            "batch.micro": batch.micro_sequences,
            "batch.global": batch.global_sequences,
        }
        values |= {f"parallel.{name}": getattr(layout, name) for name in ("tp", "sp", "pp", "vp", "cp", "dp")}
    return values


def _ordered(values: Mapping[str, object], grid: Grid) -> dict[str, object]:
    """Fixed paths first, then swept ones in the order they were given."""
    paths = [*FIXED_PATHS, *(SPELT.get(axis.path, axis.path) for axis in grid.axes)]
    return {path: values.get(path) for path in dict.fromkeys(paths)}


def _shown(text: str) -> object:
    """A swept value: an int where it is written as one, else its text."""
    number = parse_number(text)
    return int(number) if number is not None and number.denominator == 1 else text


def _step_seconds(simulation: Simulation) -> float:
    return simulation.period_picoseconds / simulation.period_steps / PICOSECONDS_PER_SECOND


def _one_line(error: HwModelError) -> str:
    """What is wrong, in one line and without the file."""
    if isinstance(error, ConfigError):
        return "; ".join(f"{problem.path}: {problem.message}" for problem in error.problems)
    return "; ".join(str(error).splitlines())
