"""Who runs when: schedules write plans of streams and tasks from graphs. Each import line registers one."""

from __future__ import annotations

from hwmodel.schedules import streams as _streams
from hwmodel.schedules.registry import SCHEDULES, Schedule, write_plan

__all__ = ["SCHEDULES", "Schedule", "write_plan"]

del _streams
