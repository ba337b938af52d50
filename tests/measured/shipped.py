"""The shipped rows beside what is predicted for them, computed once for all tests."""

from __future__ import annotations

from functools import cache

from hwmodel.config.measured import load_sources
from hwmodel.measured.errors import Summary, summary
from hwmodel.measured.machines import Bench
from hwmodel.measured.rows import TABLES, read_rows, shipped
from hwmodel.measured.validate import SUITES, Validation, validate


@cache
def validation(suite: str) -> Validation:
    table = TABLES[suite]
    return validate(SUITES[suite], read_rows(shipped(table), table), Bench(), load_sources())


def errors(suite: str, source: str, machine: str, *formats: str, shortest_seconds: float = 0.0) -> Summary:
    """Of rows that no fit has seen."""
    return summary(
        [
            each.signed
            for each in validation(suite).compared
            if each.row.source == source
            and each.row.device == machine
            and each.row.split == "validate"
            and (not formats or each.case.format in formats)
            and each.measured_seconds >= shortest_seconds
        ]
    )
