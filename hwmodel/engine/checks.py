"""What the engine asks of a plan before it runs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.device.sharing import FULL
from hwmodel.errors import ParameterError

if TYPE_CHECKING:
    from hwmodel.schedules.plan import Demands, Plan, Task

_POLICIES = ("fair", "proportional")


def check_plan(plan: Plan) -> None:
    """Refuses times, fractions, policies and variants that mean nothing.

    Raises:
        ParameterError: with the task and the field.
    """
    _check_whole("cores", plan.cores)
    seen = set()
    for resource, policy in plan.policies:
        if policy not in _POLICIES:
            raise ParameterError(f"policies.{resource}", f"must be one of {', '.join(_POLICIES)}, got '{policy}'")
        if resource in seen:
            raise ParameterError(f"policies.{resource}", "must be given once")
        seen.add(resource)
    passed: set[Demands] = set()
    for index, task in enumerate(plan.tasks):
        where = f"tasks[{index}]"
        _check_use(where, task.name, task.alone_picoseconds, task.demands, passed)
        if task.cores_held:
            _check_whole(f"{where}.cores_held", task.cores_held, task.name)
        if task.variants:
            _check_variants(where, task, plan.cores, passed)


def _check_variants(where: str, task: Task, cores: int, passed: set[Demands]) -> None:
    if not cores:
        raise ParameterError("cores", f"must be > 0 where a task has variants, got 0 (task '{task.name}')")
    for number, variant in enumerate(task.variants):
        here = f"{where}.variants[{number}]"
        _check_whole(f"{here}.cores", variant.cores, task.name)
        _check_use(here, task.name, variant.alone_picoseconds, variant.demands, passed)
    counts = [variant.cores for variant in task.variants]
    if counts != sorted(set(counts), reverse=True):
        raise ParameterError(f"{where}.variants", f"must have fewer cores each, got {counts} (task '{task.name}')")


def _check_use(where: str, name: str, alone_picoseconds: int, demands: Demands, passed: set[Demands]) -> None:
    _check_whole(f"{where}.alone_picoseconds", alone_picoseconds, name)
    if demands not in passed:
        _check_demands(f"{where}.demands", demands, name)
        passed.add(demands)


def _check_demands(field: str, demands: Demands, name: str) -> None:
    seen = set()
    for resource, fraction in demands:
        if type(fraction) is not int or not 1 <= fraction <= FULL:
            raise ParameterError(
                f"{field}.{resource}", f"must be a whole number 1..{FULL}, got {fraction!r} (task '{name}')"
            )
        if resource in seen:
            raise ParameterError(f"{field}.{resource}", f"must be named once (task '{name}')")
        seen.add(resource)


def _check_whole(field: str, value: int, name: str = "") -> None:
    if type(value) is not int or value < 0:
        whose = f" (task '{name}')" if name else ""
        raise ParameterError(field, f"must be a whole number >= 0, got {value!r}{whose}")
