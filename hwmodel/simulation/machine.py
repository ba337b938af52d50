"""A device with a software set, and the times of kernels on it (each shape is timed once)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.device.kernel import KernelTimer
from hwmodel.device.support import check_supported
from hwmodel.device.target import target
from hwmodel.engine import timing
from hwmodel.graph import Graph, Program
from hwmodel.schedules import write_plan
from hwmodel.schedules.plan import Plan, PlanSequence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hwmodel.device import Device
    from hwmodel.device.software import Software
    from hwmodel.engine.trace import SequenceTrace


class Machine:
    """What graphs run on. Two machines of equal device and software give equal traces."""

    def __init__(self, device: Device, software: Software) -> None:
        self.device = device
        self.software = software
        self.target = target(device, software)
        self.timer = KernelTimer(device)

    def run(self, program: Program, schedule: str) -> SequenceTrace:
        """The traces of a program's graphs under a schedule; a repeat's body is simulated once and counted.

        Raises:
            UnsupportedError: the device lacks what a node asks of its matrix units.
        """
        check_supported((graph for graph, _ in program.graphs()), self.device)
        return timing.run_sequence(PlanSequence(program.name, tuple(self._plans(program, schedule))))

    def _plans(self, program: Program, schedule: str) -> Iterator[tuple[Plan, int]]:
        for item in program.items:
            if isinstance(item, Graph):
                if item.nodes:
                    yield write_plan(item, self.device, self.timer, schedule), 1
            else:
                for inner, count in self._plans(item.body, schedule):
                    yield inner, count * item.count
