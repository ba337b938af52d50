"""A measured row as the model sees it."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.graph.demand import Demand


@dataclass(frozen=True, slots=True)
class Case:
    """What a row asks of a device."""

    demand: Demand
    format: str
    """What results are grouped by: the operands' format, or the op."""
    shape: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Why a row is not compared."""

    reason: str
