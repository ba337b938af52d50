"""Why tasks cannot start: who waits for what, and the circle they wait in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.errors import SimulationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hwmodel.schedules.plan import Plan

_SHOWN = 20


def stuck_error(plan: Plan, finished: Sequence[bool], time_picoseconds: int) -> SimulationError:
    """The error for a plan that cannot go on: a line for each unfinished task, and a circle if they wait in one.

    Tasks at the front of their streams come first, then those behind them. At most 20 tasks have a line and a place
    in the error's ``names``; the number of the others is said.
    """
    front = _in_front(plan)
    stuck = [index for index, done in enumerate(finished) if not done]
    stuck.sort(key=lambda index: (_waits_behind(front[index], finished), index))
    lines = [f"{len(stuck)} of {len(plan.tasks)} tasks of plan '{plan.name}' can never start"]
    lines += [_line(plan, finished, front, index) for index in stuck[:_SHOWN]]
    if len(stuck) > _SHOWN:
        lines.append(f"... and {len(stuck) - _SHOWN} more")
    circle = _circle(plan, finished, front)
    if circle:
        named = [f"'{plan.tasks[index].name}'" for index in circle]
        lines.append(f"they wait in a circle: {' -> '.join([*named, named[0]])}")
    names = tuple(plan.tasks[index].name for index in stuck[:_SHOWN])
    return SimulationError("\n".join(lines) + "\nwaiting", time_picoseconds, names)


def _in_front(plan: Plan) -> list[int | None]:
    """For each task the one before it on its stream."""
    last: dict[str, int] = {}
    front = []
    for index, task in enumerate(plan.tasks):
        front.append(last.get(task.stream))
        last[task.stream] = index
    return front


def _waits_behind(front: int | None, finished: Sequence[bool]) -> bool:
    return front is not None and not finished[front]


def _line(plan: Plan, finished: Sequence[bool], front: Sequence[int | None], index: int) -> str:
    """What one task waits for, and which of it is done."""
    task = plan.tasks[index]
    waits, done = [], []
    before = front[index]
    if before is not None and not finished[before]:
        waits.append(f"'{plan.tasks[before].name}' in front of it")
    for other in dict.fromkeys(task.after):
        if not 0 <= other < len(plan.tasks):
            waits.append(f"task {other}, which is not in the plan")
        elif other == index:
            waits.append("itself")
        elif finished[other]:
            done.append(f"'{plan.tasks[other].name}'")
        elif other != before:
            waits.append(f"'{plan.tasks[other].name}' on stream '{plan.tasks[other].stream}'")
    tail = f" (done: {', '.join(done)})" if done else ""
    return f"'{task.name}' on stream '{task.stream}' waits for {', '.join(waits)}{tail}"


def _circle(plan: Plan, finished: Sequence[bool], front: Sequence[int | None]) -> list[int]:
    """Unfinished tasks of which each waits for the next and the last for the first; empty if there is no circle."""

    def waits(index: int) -> Iterator[int]:
        before = front[index]
        yield from (other for other in plan.tasks[index].after if 0 <= other < len(plan.tasks) and not finished[other])
        if before is not None and not finished[before]:
            yield before

    seen = list(finished)
    for start in range(len(seen)):
        if seen[start]:
            continue
        seen[start] = True
        path, place, steps = [start], {start: 0}, [waits(start)]
        while path:
            other = next(steps[-1], None)
            if other is None:
                steps.pop()
                del place[path.pop()]
            elif other in place:
                return path[place[other] :]
            elif not seen[other]:
                seen[other] = True
                place[other] = len(path)
                path.append(other)
                steps.append(waits(other))
    return []
