"""When tasks start and end if none slows another: a loop over arrays, no events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hwmodel.schedules.plan import Plan


def list_schedule(plan: Plan) -> tuple[list[int], list[int]]:
    """(starts, ends) of a plan whose tasks wait only for earlier ones, every task at the rate it has alone."""
    starts = np.zeros(len(plan.tasks), dtype=np.int64)
    ends = np.zeros(len(plan.tasks), dtype=np.int64)
    stream_free = dict.fromkeys((task.stream for task in plan.tasks), np.int64(0))
    for index, task in enumerate(plan.tasks):
        waits = ends[list(task.after)]
        starts[index] = max(stream_free[task.stream], waits.max(initial=0))
        ends[index] = stream_free[task.stream] = starts[index] + task.alone_picoseconds
    return starts.tolist(), ends.tolist()
