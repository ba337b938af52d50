"""The same plan without one kind of work, or on one stream: what parts of a step cost, measured by taking them away."""

from __future__ import annotations

from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from hwmodel.engine.stuck import stuck_error
from hwmodel.schedules.plan import MAIN_STREAM, Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hwmodel.schedules.plan import Task, Variant


def shares(picoseconds: int, kind: str, parts: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """``picoseconds`` of a task charged to kinds: to its parts in proportion to their time alone, else to ``kind``.

    All but the last part are rounded down and the last takes the remainder, so the sum is exact; parts that all take no
    time leave everything to the last. A kind may come twice.
    """
    if not parts:
        return ((kind, picoseconds),)
    total = sum(alone for _, alone in parts) or 1
    charged = [(part, picoseconds * alone // total) for part, alone in parts[:-1]]
    return (*charged, (parts[-1][0], picoseconds - sum(share for _, share in charged)))


def without_kind(plan: Plan, kind: str) -> Plan:
    """``plan`` with no time for tasks of ``kind``; fused tasks lose that part's share.

    Every task keeps its place, its stream, what it waits for and what fraction of each resource it uses.
    """
    return replace(plan, tasks=tuple(_without(task, kind) for task in plan.tasks))


def serial(plan: Plan) -> Plan:
    """``plan`` on one stream, in plan order, or where that breaks a wait in the first order by plan that keeps all.

    Raises:
        SimulationError: the tasks wait for each other or for one that is not there, so no order exists.
    """
    order = _order(plan)
    place = {index: number for number, index in enumerate(order)}
    tasks = []
    for index in order:
        task = plan.tasks[index]
        tasks.append(replace(task, stream=MAIN_STREAM, after=tuple(sorted(place[other] for other in task.after))))
    return replace(plan, tasks=tuple(tasks))


def _without(task: Task, kind: str) -> Task:
    """A task without the time it spends on ``kind``."""
    parts = task.info.parts
    if kind not in {task.kind, *(part for part, _ in parts)}:
        return task

    def left(item: Task | Variant) -> int:
        return sum(share for part, share in shares(item.alone_picoseconds, task.kind, parts) if part != kind)

    return replace(
        task,
        alone_picoseconds=left(task),
        variants=tuple(replace(variant, alone_picoseconds=left(variant)) for variant in task.variants),
        info=replace(task.info, parts=tuple((part, alone) for part, alone in parts if part != kind)),
    )


def _order(plan: Plan) -> list[int]:
    """Plan order where it keeps every wait, else always the first task in the plan whose waits are over."""
    last: dict[str, int] = {}
    missing = [len(task.after) for task in plan.tasks]
    awaited_by: dict[int, list[int]] = {}
    for index, task in enumerate(plan.tasks):
        for other in task.after:
            awaited_by.setdefault(other, []).append(index)
        if task.stream in last:
            awaited_by.setdefault(last[task.stream], []).append(index)
            missing[index] += 1
        last[task.stream] = index
    ready = [index for index, count in enumerate(missing) if not count]
    heapify(ready)
    order = []
    while ready:
        index = heappop(ready)
        order.append(index)
        for other in awaited_by.get(index, ()):
            missing[other] -= 1
            if not missing[other]:
                heappush(ready, other)
    if len(order) < len(plan.tasks):
        ordered = set(order)
        raise stuck_error(plan, [index in ordered for index in range(len(plan.tasks))], 0)
    return order
