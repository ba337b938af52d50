"""Predictions beside what was measured, row by row, and their errors by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from hwmodel.config.measured import Sources, Suite
from hwmodel.errors import ParameterError
from hwmodel.measured import gemm
from hwmodel.measured.case import Case, Skip
from hwmodel.measured.errors import Summary, signed_percent, summary
from hwmodel.measured.machines import Bench
from hwmodel.measured.rows import MICROSECOND, Row

if TYPE_CHECKING:
    from hwmodel.device import Device

SHORTEST_SECONDS: Final = 10 * MICROSECOND
"""Below this, resolution and launches are what was measured; errors are stated for longer rows."""
SIZES: Final = (
    (100 * MICROSECOND, "under 100 us"),
    (1000 * MICROSECOND, "100 us to 1 ms"),
    (float("inf"), "over 1 ms"),
)
"""Groups by measured time: (below, name)."""
_WORST: Final = 10
_NOT_VALIDATED: Final = ("derived", "vendor_simulated")
"""Kinds of row that are no measurement of a kernel's time."""

MakeCase = Callable[["Row", "Device", "Sources"], "Case | Skip"]


@dataclass(frozen=True, slots=True)
class SuiteKind:
    """One family of kernels: how its rows become demands, and where their time stands."""

    name: Suite
    case: MakeCase
    time: str


SUITES: Final[Mapping[str, SuiteKind]] = {"gemm": SuiteKind("gemm", gemm.case, gemm.TIME)}


@dataclass(frozen=True, slots=True)
class Compared:
    """A row with its prediction."""

    row: Row
    case: Case
    device: str
    """Name of the device that was simulated."""
    role: str
    predicted_seconds: float
    measured_seconds: float

    @property
    def signed(self) -> float:
        """Percent by which the prediction is above what was measured."""
        return signed_percent(self.predicted_seconds, self.measured_seconds)

    @property
    def size(self) -> str:
        """The group by measured time."""
        return next(name for below, name in SIZES if self.measured_seconds < below)

    @property
    def group(self) -> tuple[str, str, str, str, str]:
        """(role, source, device as the source calls it, format, split)."""
        return self.role, self.row.source, self.row.device, self.case.format, self.row.split


@dataclass(frozen=True, slots=True)
class Validation:
    """All rows of a suite that could be compared, and why others were not."""

    suite: str
    compared: tuple[Compared, ...]
    skipped: Mapping[str, int]
    """Reason -> rows."""

    def by(self, key: Callable[[Compared], tuple[str, ...]]) -> dict[tuple[str, ...], Summary]:
        """Errors of the groups that ``key`` makes, sorted by it."""
        groups: dict[tuple[str, ...], list[float]] = {}
        for each in self.compared:
            groups.setdefault(key(each), []).append(each.signed)
        return {name: summary(groups[name]) for name in sorted(groups)}

    def worst(self, count: int = _WORST) -> tuple[Compared, ...]:
        """The rows that may be judged whose predictions are furthest off, in either direction."""
        judged = [each for each in self.compared if each.role != "headline"]
        return tuple(sorted(judged, key=lambda each: (-_factor(each), each.row.line))[:count])

    def data(self) -> dict[str, Any]:
        """As plain values."""
        names = ("role", "source", "device", "format", "split")
        return {
            "schema": 1,
            "suite": self.suite,
            "groups": [
                dict(zip(names, group, strict=True)) | asdict(each)
                for group, each in self.by(lambda each: each.group).items()
            ],
            "sizes": [
                dict(zip((*names, "size"), group, strict=True)) | asdict(each)
                for group, each in self.by(lambda each: (*each.group, each.size)).items()
            ],
            "rows": [
                {
                    "line": each.row.line,
                    **dict(zip(names, each.group, strict=True)),
                    "simulated": each.device,
                    "shape": each.case.shape,
                    "measured_seconds": each.measured_seconds,
                    "predicted_seconds": each.predicted_seconds,
                    "error_percent": each.signed,
                }
                for each in self.compared
            ],
            "skipped": dict(self.skipped),
        }


def validate(
    kind: SuiteKind,
    rows: Sequence[Row],
    bench: Bench,
    sources: Sources,
    *,
    device: str | None = None,
    shortest_seconds: float = SHORTEST_SECONDS,
    treated: bool = True,
) -> Validation:
    """Predict every row that can be predicted.

    Args:
        kind: the suite.
        rows: its rows.
        bench: devices to predict with.
        sources: who measured, and how.
        device: the device to predict all rows with, None for each row's own.
        shortest_seconds: rows that took less are counted and left out.
        treated: whether predictions get what a source's clock counts beside the kernel.
    """
    run = _Run(kind, bench, sources, device, shortest_seconds, treated)
    compared: list[Compared] = []
    skipped: Counter[str] = Counter()
    for row in rows:
        found = run.compare(row)
        if isinstance(found, Skip):
            skipped[found.reason] += 1
        else:
            compared.append(found)
    return Validation(kind.name, tuple(compared), dict(sorted(skipped.items())))


@dataclass(frozen=True, slots=True)
class _Run:
    kind: SuiteKind
    bench: Bench
    sources: Sources
    device: str | None
    shortest_seconds: float
    treated: bool

    def compare(self, row: Row) -> Compared | Skip:
        """One row with its prediction."""
        measured = measured_seconds(row, self.kind, self.sources, self.shortest_seconds)
        if isinstance(measured, Skip):
            return measured
        name = self.device or self.sources.machine(row.source, row.device)
        machine = self.bench.device(name)
        if machine is None:
            return Skip(f"no device file for '{row.device}'")
        case = self.kind.case(row, machine, self.sources)
        if isinstance(case, Skip):
            return case
        treatment = self.sources.treatment(row.source, self.kind.name, row.device) if self.treated else None
        try:
            predicted = self.bench.seconds(case.demand, name, treatment)
        except ParameterError as error:
            return Skip(error.message)
        return Compared(row, case, machine.name, self.sources.role(row.source), predicted, measured)


def measured_seconds(row: Row, kind: SuiteKind, sources: Sources, shortest_seconds: float) -> float | Skip:
    """Seconds of a row that a comparison or a fit may use."""
    if reason := sources.excluded(row.text):
        return Skip(reason)
    if row.text.get("kind", "") in _NOT_VALIDATED:
        return Skip(f"{row.text['kind']}, not measured")
    measured = row.seconds.get(kind.time)
    if measured is None:
        return Skip("no time is given")
    if measured < shortest_seconds:
        return Skip(f"took less than {shortest_seconds / MICROSECOND:g} us")
    return measured


def _factor(each: Compared) -> float:
    """By what factor a prediction is off."""
    return max(each.predicted_seconds / each.measured_seconds, each.measured_seconds / each.predicted_seconds)
