"""Errors of predictions: per row in percent of what was measured, and what is said of a group of them."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodel.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

_PERCENT = 100


def signed_percent(predicted: float, measured: float) -> float:
    """How far a prediction is above (+) or below (-) what was measured, in percent of the latter."""
    return _PERCENT * (predicted / measured - 1)


@dataclass(frozen=True, slots=True)
class Summary:
    """What is said of a group of rows; percent of the measured value."""

    rows: int
    mean: float
    """Of absolute errors."""
    median: float
    """Of absolute errors."""
    p90: float
    """90th percentile of absolute errors, between neighbours linearly."""
    bias: float
    """Median of signed errors."""


def summary(signed: Sequence[float]) -> Summary:
    """Mean, median, 90th percentile and bias of signed errors in percent.

    Raises:
        ParameterError: there are none.
    """
    if not signed:
        raise ParameterError("rows", "must be at least one, got none")
    absolute = sorted(abs(error) for error in signed)
    return Summary(
        rows=len(absolute),
        mean=statistics.fmean(absolute),
        median=statistics.median(absolute),
        p90=quantile(absolute, 0.9),
        bias=statistics.median(signed),
    )


def quantile(ordered: Sequence[float], fraction: float) -> float:
    """The value below which ``fraction`` of ``ordered`` (rising) lies, between neighbours linearly."""
    place = fraction * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
