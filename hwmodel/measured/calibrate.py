"""Fits constants of a device to measured times: robust least squares of the logarithm of time, from several starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import qmc

from hwmodel.config.measured import Treatment
from hwmodel.device import Device
from hwmodel.errors import ParameterError
from hwmodel.graph.demand import Demand
from hwmodel.measured import constants
from hwmodel.measured.constants import Constant
from hwmodel.measured.errors import Summary, signed_percent, summary
from hwmodel.measured.machines import Bench

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


ROWS_PER_CONSTANT: Final = 3
"""Fewer rows than this for each constant fit noise."""
STARTS: Final = 4
"""The device as it is, and the best of many points spread over the bounds."""
_TRIALS: Final = 64
_SEED: Final = 1
_KNEE: Final = 0.05
"""Errors above 5 % pull less than their square: libraries jump."""
_STEP: Final = 0.004
"""Of a difference quotient, as a share of the distance between bounds: smaller ones would see steps between tiles."""
_NOISE: Final = 0.01
"""Kernels of one shape differ by 1 to 5 % from one timing to the next (Vidur's tables): no fit knows more than that."""
_MEDIAN_TO_DEVIATION: Final = 1.4826
"""Standard deviation of a normal distribution over the median of its absolute values."""
_UNITS: Final = 100.0
"""No calibration mends a factor like this in most rows; times in other units have a thousand."""
_FLAT: Final = 1e-9
"""Slopes below this are rounding."""
MOST_KERNELS: Final = 1000
"""More would take hours and tell the search nothing new."""
_INSIDE: Final = (1.15, 1.85)
"""Where the first start is moved to from bounds, at which nothing would seem to matter."""
_VAGUE: Final = 0.35
"""A standard error above this share of the value means that the data do not determine it."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A kernel and how long it took."""

    demand: Demand
    seconds: float
    treatment: Treatment = field(default_factory=Treatment)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A constant after the fit."""

    constant: Constant
    before: float
    after: float
    relative_error: float
    """Standard error as a share of the value, from how steeply the errors rise around it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A constant that the rows do not determine: it keeps the value it had."""

    constant: Constant
    value: float
    reason: str


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a fit found."""

    device: Device
    fitted: tuple[Fitted, ...]
    kept: tuple[Kept, ...]
    before: Summary
    """Errors of the fitted rows with the device as it was."""
    after: Summary
    rows: int

    @property
    def clock(self) -> Mapping[str, float]:
        """What was fitted of whoever timed, by name."""
        return {each.constant.path: each.after for each in self.fitted if not each.constant.of_device}


def calibrate(device: Device, rows: Sequence[Timed], free: Sequence[Constant], *, starts: int = STARTS) -> Calibration:
    """Fit ``free`` to ``rows``; constants that turn out to be undetermined keep their values.

    Args:
        device: where the fit starts; all else of it stays.
        rows: kernels with measured times, in seconds.
        free: what may change.
        starts: how many points to start from.

    Raises:
        ParameterError: fewer different kernels than `ROWS_PER_CONSTANT` for each constant, times in other units, rows
            that determine none of the constants, or a kernel that the device cannot run.
    """
    if not free:
        raise ParameterError("--constants", "must name at least one constant")
    needed, given = ROWS_PER_CONSTANT * len(free), different(rows)
    if given < needed:
        raise ParameterError(
            "rows",
            f"must be of at least {needed} different kernels, {ROWS_PER_CONSTANT} to a constant, got {given}",
        )
    factor = exp(abs(float(np.median(_logarithms(device, rows, {})))))
    if factor > _UNITS:
        raise ParameterError(
            "rows", f"must be times of kernels that the device could run, got a factor of {factor:.3g}: check the units"
        )
    before = errors(device, rows)
    searched = _kernels(rows)
    left, kept = list(free), list[Kept]()
    while left:
        best = _Fit(device, searched, left).best(starts)
        worst = best.vaguest()
        if worst is None:
            fitted = tuple(
                Fitted(each, _before(each, device, rows), _rounded(after, whole=each.whole), error)
                for each, after, error in zip(left, best.values, best.errors, strict=True)
            )
            found = {each.constant.path: each.after for each in fitted}
            done = _device_with(device, found)
            clock = {name: number for name, number in found.items() if name in constants.CLOCK}
            return Calibration(done, fitted, tuple(kept), before, errors(done, rows, clock), len(rows))
        index, reason = worst
        gone = left.pop(index)
        kept.append(Kept(gone, _before(gone, device, rows), reason))
    reasons = ", ".join(f"{each.constant.path} {each.reason}" for each in kept)
    raise ParameterError("rows", f"must determine at least one of the constants, got none: {reasons}")


def _kernels(rows: Iterable[Timed]) -> list[Timed]:
    """Every kernel once, with the median of its times; of very many, `MOST_KERNELS` from short to long."""
    times: dict[tuple[Demand, Treatment], list[float]] = {}
    for row in rows:
        times.setdefault((row.demand, row.treatment), []).append(row.seconds)
    kernels = [Timed(demand, median(found), treatment) for (demand, treatment), found in times.items()]
    if len(kernels) <= MOST_KERNELS:
        return kernels
    kernels.sort(key=lambda kernel: kernel.seconds)
    return [kernels[index * len(kernels) // MOST_KERNELS] for index in range(MOST_KERNELS)]


def different(rows: Iterable[Timed]) -> int:
    """How many kernels differ: one timed twice says nothing more of a device."""
    return len({row.demand for row in rows})


def errors(device: Device, rows: Sequence[Timed], clock: Mapping[str, float] | None = None) -> Summary:
    """Errors of what ``device`` predicts for ``rows``, with the clock's constants in place of the rows' own."""
    predicted = _predict(device, rows, clock or {})
    return summary([signed_percent(time, row.seconds) for time, row in zip(predicted, rows, strict=True)])


def _predict(device: Device, rows: Iterable[Timed], clock: Mapping[str, float]) -> list[float]:
    bench = Bench({device.name: device})
    return [bench.seconds(row.demand, device.name, _treated(row.treatment, clock)) for row in rows]


def _logarithms(device: Device, rows: Sequence[Timed], clock: Mapping[str, float]) -> np.ndarray:
    """Logarithm of predicted over measured time, row by row."""
    predicted = _predict(device, rows, clock)
    return np.array([log(time / row.seconds) for time, row in zip(predicted, rows, strict=True)])


def _before(constant: Constant, device: Device, rows: Sequence[Timed]) -> float:
    """What a constant is before the fit: the device's, or for the clock's what most rows are treated with."""
    if constant.of_device:
        return constants.value(constant, device)
    return float(Counter(getattr(row.treatment, constant.path) for row in rows).most_common(1)[0][0])


def _treated(treatment: Treatment, clock: Mapping[str, float]) -> Treatment:
    """``treatment`` with the clock's constants in place of its own."""
    return replace(
        treatment,
        overhead_seconds=clock.get(constants.OVERHEAD, treatment.overhead_seconds),
        rate_fraction=clock.get(constants.RATE, treatment.rate_fraction),
    )


def _rounded(number: float, *, whole: bool) -> float:
    """As many digits as a file gets, so that errors are those of the file."""
    return round(number) if whole else float(f"{number:.4g}")


def _device_with(device: Device, values: Mapping[str, float]) -> Device:
    return constants.with_values(device, {path: x for path, x in values.items() if path not in constants.CLOCK})


@dataclass(frozen=True, slots=True)
class _Best:
    """Where one fit ended."""

    cost: float
    values: tuple[float, ...]
    errors: tuple[float, ...]
    """Relative standard errors."""
    at_bound: tuple[bool, ...]

    def vaguest(self) -> tuple[int, str] | None:
        """The constant that the rows determine least, and why, if there is one that they do not."""
        largest = max(self.errors)
        # Of constants that only act together the one named last goes.
        index = max(index for index, error in enumerate(self.errors) if error >= 0.9 * largest)
        error = self.errors[index]
        if error == float("inf"):
            return index, "no row depends on it"
        if error > 1:
            return index, "the rows do not tell it apart from the others"
        if error > _VAGUE:
            return index, f"uncertain by {100 * error:.0f} %"
        if any(self.at_bound):
            index = self.at_bound.index(True)
            return index, f"runs into its bound {self.values[index]:.3g}; are the device's facts those of the machine?"
        return None


@dataclass(frozen=True, slots=True)
class _Fit:
    """A fit of a fixed set of constants. Each is a logarithm, scaled so that its bounds are 1 and 2."""

    device: Device
    rows: Sequence[Timed]
    free: Sequence[Constant]

    def best(self, starts: int) -> _Best:
        """The lowest of the ends of several starts."""
        here = [self._scaled(each, _before(each, self.device, self.rows)) for each in self.free]
        spread = qmc.LatinHypercube(len(self.free), rng=np.random.default_rng(_SEED)).random(_TRIALS)
        low, high = _INSIDE
        trials = sorted(low + (high - low) * spread, key=self._cost)
        points = [np.clip(np.array(here), low, high), *trials[: starts - 1]]
        return min((self._from(point) for point in points), key=lambda end: end.cost)

    def _cost(self, point: np.ndarray) -> float:
        return float(np.abs(self._residuals(point)).mean())

    def _from(self, point: np.ndarray) -> _Best:
        end = least_squares(
            self._residuals,
            point,
            bounds=(1, 2),
            loss="soft_l1",
            f_scale=_KNEE,
            diff_step=[_STEP] * len(point),
            xtol=1e-5,
            ftol=1e-6,
        )
        widths = [log(each.high / each.low) for each in self.free]
        residuals = self._residuals(end.x)
        scale = max(_NOISE, float(np.median(np.abs(residuals))) * _MEDIAN_TO_DEVIATION)
        slopes = self._slopes(end.x, residuals) / np.array(widths)
        return _Best(
            cost=float(end.cost),
            values=self._values(end.x),
            errors=_standard_errors(slopes, scale),
            at_bound=tuple(bool(x < 1.0005 or x > 1.9995) for x in end.x),
        )

    def _slopes(self, point: np.ndarray, residuals: np.ndarray) -> np.ndarray:
        """Difference quotients over a wider step than the search takes."""
        columns = []
        for index in range(len(point)):
            moved = point.copy()
            moved[index] += 4 * _STEP if moved[index] < 1.5 else -4 * _STEP
            columns.append((self._residuals(moved) - residuals) / (moved[index] - point[index]))
        return np.column_stack(columns)

    def _residuals(self, point: np.ndarray) -> np.ndarray:
        """Logarithm of predicted over measured time, row by row."""
        found = {each.path: x for each, x in zip(self.free, self._values(point), strict=True)}
        clock = {name: number for name, number in found.items() if name in constants.CLOCK}
        return _logarithms(_device_with(self.device, found), self.rows, clock)

    def _values(self, point: np.ndarray) -> tuple[float, ...]:
        return tuple(
            float(min(each.high, max(each.low, each.low * exp((x - 1) * log(each.high / each.low)))))
            for each, x in zip(self.free, point, strict=True)
        )

    @staticmethod
    def _scaled(each: Constant, number: float) -> float:
        inside = min(each.high, max(each.low, number))
        return 1 + log(inside / each.low) / log(each.high / each.low)


def _standard_errors(slopes: np.ndarray, scale: float) -> tuple[float, ...]:
    """Standard errors of logarithms; infinite where the rows say nothing."""
    steep = np.abs(slopes).max(axis=0) > 1e-6
    found = np.full(slopes.shape[1], np.inf)
    if steep.any():
        _, sizes, directions = np.linalg.svd(slopes[:, steep], full_matrices=False)
        # A direction in which nothing changes must count as endless, not as nothing: no pseudo-inverse.
        found[steep] = scale * np.sqrt(((directions / np.maximum(sizes, _FLAT)[:, None]) ** 2).sum(axis=0))
    return tuple(float(x) for x in found)
