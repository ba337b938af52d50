"""Tasks per second of the engine with three streams in contention, beside a plain SimPy program with as many tasks.

Run it as ``python benchmarks/engine.py --tasks 30000``. The two take turns in one process, so that a busy machine slows
both alike; the ratio of the medians is the figure to compare.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import simpy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hwmodel.engine.timing import run
from hwmodel.schedules.plan import FULL, Plan, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

KINDS = (
    ("main", "gemm", "cube", 5),
    ("side", "amax", "vector", 1),
    ("tensor", "collective", "link", 3),
)
"""Stream, kind, the resource it fills, and the part of HBM it uses as 1/n."""
SHAPES = 24
"""Distinct kernels on each stream, about those of one transformer block forwards and backwards."""


def contended_plan(count: int) -> Plan:
    """Three streams whose tasks all use HBM; each task also waits for one of the stream before it."""
    tasks = []
    for index in range(count):
        stream, kind, unit, part = KINDS[index % 3]
        shape = index // 3 % SHAPES
        demands = tuple(sorted({unit: FULL - shape * 1000, "hbm": FULL // part - shape * 100}.items()))
        after = (index - 4,) if index % 9 == 7 else ()
        tasks.append(Task(f"{kind}{index}", stream, kind, 1_000_000 + 7919 * (index % 101), demands, after))
    return Plan("contended", tuple(tasks))


def simpy_program(plan: Plan) -> None:
    """What one would write by hand: three processes that queue for HBM, a request, a wait and a release a task."""
    environment = simpy.Environment()
    memory = simpy.Resource(environment, capacity=2)

    def stream(waits: list[int]) -> Generator[simpy.Event, object, None]:
        for wait in waits:
            with memory.request() as request:
                yield request
                yield environment.timeout(wait)

    for name in plan.streams:
        environment.process(stream([task.alone_picoseconds for task in plan.tasks if task.stream == name]))
    environment.run()


def main() -> None:
    """Prints both rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tasks", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    plan = contended_plan(arguments.tasks)
    programs: tuple[Callable[[Plan], object], ...] = (run, simpy_program)
    rates: tuple[list[float], list[float]] = ([], [])
    for _ in range(arguments.rounds):
        for program, measured in zip(programs, rates, strict=True):
            start = time.perf_counter()
            program(plan)
            measured.append(arguments.tasks / (time.perf_counter() - start))
    engine, plain = map(statistics.median, rates)
    sys.stdout.write(f"tasks                  {arguments.tasks}\n")
    sys.stdout.write(f"engine                 {engine:.0f} tasks/s\n")
    sys.stdout.write(f"plain simpy.Resource   {plain:.0f} tasks/s\n")
    sys.stdout.write(f"ratio                  {engine / plain:.2f}\n")


if __name__ == "__main__":
    main()
