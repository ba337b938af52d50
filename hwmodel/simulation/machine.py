"""A device with a software set, and the times of kernels on it (each shape is timed once)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.device.kernel import KernelTimer
from hwmodel.device.target import target
from hwmodel.engine import timing
from hwmodel.graph import Graph, Program, Repeat
from hwmodel.schedules import plan

if TYPE_CHECKING:
    from hwmodel.device import Device
    from hwmodel.device.software import Software
    from hwmodel.engine.trace import Trace


class Machine:
    """What graphs run on. Two machines of equal device and software give equal traces."""

    def __init__(self, device: Device, software: Software) -> None:
        self.device = device
        self.software = software
        self.target = target(device, software)
        self.timer = KernelTimer(device)

    def run(self, graph: Graph, schedule: str) -> Trace:
        """The graph's trace under a schedule."""
        return timing.run(plan(graph, self.device, self.timer, schedule))

    def run_program(self, program: Program, schedule: str) -> tuple[tuple[Trace, int], ...]:
        """The traces of a program's items with how often each runs; a repeat's body is simulated once."""
        items: list[tuple[Trace, int]] = []
        for item in program.items:
            if isinstance(item, Repeat):
                items += [(trace, count * item.count) for trace, count in self.run_program(item.body, schedule)]
            elif item.nodes:
                items.append((self.run(item, schedule), 1))
        return tuple(items)
