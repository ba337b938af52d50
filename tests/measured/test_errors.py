"""Errors of predictions, against numpy."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.errors import ParameterError
from hwmodel.measured.errors import quantile, signed_percent, summary

ERRORS = st.lists(st.floats(-99, 1000), min_size=1, max_size=40)


@given(ERRORS)
def test_a_summary_is_what_numpy_says(errors: list[float]) -> None:
    found, absolute = summary(errors), np.abs(errors)
    assert found.rows == len(errors)
    assert found.mean == pytest.approx(absolute.mean())
    assert found.median == pytest.approx(np.median(absolute))
    assert found.p90 == pytest.approx(np.quantile(absolute, 0.9))
    assert found.bias == pytest.approx(statistics.median(errors))


def test_errors_are_percent_of_what_was_measured() -> None:
    assert signed_percent(3.0, 2.0) == pytest.approx(50)
    assert signed_percent(1.0, 2.0) == pytest.approx(-50)
    assert quantile([1.0], 0.9) == 1


def test_nothing_has_no_summary() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        summary([])
