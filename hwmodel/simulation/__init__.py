"""Runs a workload on a device in time: graphs to plans to traces, for every kind of step and every distinct stage."""

from __future__ import annotations

from hwmodel.simulation.machine import Machine
from hwmodel.simulation.memory import Memory
from hwmodel.simulation.run import Simulation, StepRun, simulate

__all__ = ["Machine", "Memory", "Simulation", "StepRun", "simulate"]
