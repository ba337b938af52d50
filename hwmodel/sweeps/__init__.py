"""Sweeps: every combination of devices, recipes and values of paths, each distinct one simulated once."""

from __future__ import annotations

from hwmodel.sweeps.points import Axis, Grid, make_grid
from hwmodel.sweeps.run import Row, Sweep, prepare, sweep

__all__ = ["Axis", "Grid", "Row", "Sweep", "make_grid", "prepare", "sweep"]
