"""A plan: streams of tasks in a written order. What the engine runs; it knows no op, recipe or format."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.device.sharing import FULL

MAIN_STREAM = "main"

__all__ = ["FULL", "MAIN_STREAM", "Demands", "Plan", "PlanSequence", "Task", "TaskInfo", "Variant"]

Demands = tuple[tuple[str, int], ...]
"""(resource name, fraction of it used while alone as an integer 1..FULL), sorted by name."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The same task on fewer cores."""

    cores: int
    """Cores this variant needs free to start."""
    alone_picoseconds: int
    demands: Demands


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """What reports show of a task; the engine never reads it."""

    op: str = ""
    role: str = ""
    layer: int | None = None
    bytes: int = 0
    flops: int = 0
    bound: str = ""
    """The stage or resource that sets its time alone."""
    shape: str = ""
    """Its size in words, such as '4096x4608x16384 fp8_e4m3fn'."""
    parts: tuple[tuple[str, int], ...] = ()
    """(kind, time alone in picoseconds) of a fused kernel's parts."""
    launches: int = 1
    """Kernels it launches (0 for a wait)."""


@dataclass(frozen=True, slots=True)
class Task:
    """A planned piece of a node: its time alone, its share of each resource, its stream and what it waits for."""

    name: str
    stream: str
    kind: str
    alone_picoseconds: int
    demands: Demands
    after: tuple[int, ...] = ()
    """Indices, in the plan, of tasks that must end first (the one before it on its stream always does)."""
    cores_held: int = 0
    """Cores taken from others while it runs (a collective kernel on a GPU)."""
    variants: tuple[Variant, ...] = ()
    """By cores, most first; the engine takes the first that fits the cores free at its start and keeps it. Empty for
    a task that does not care."""
    info: TaskInfo = TaskInfo()


@dataclass(frozen=True, slots=True)
class Plan:
    """Tasks in plan order (ties break by it), and how each resource is shared.

    A task's stream runs its tasks in this order, one at a time.
    """

    name: str
    tasks: tuple[Task, ...]
    policies: tuple[tuple[str, str], ...] = ()
    """(resource, 'fair' or 'proportional'); a resource not named is fair."""
    cores: int = 0
    """Cores of the device, for variants."""

    @property
    def streams(self) -> tuple[str, ...]:
        """Streams in order of first use."""
        return tuple(dict.fromkeys(task.stream for task in self.tasks))


@dataclass(frozen=True, slots=True)
class PlanSequence:
    """Plans that run one after the other, each ``count`` times, joined at the edges."""

    name: str
    items: tuple[tuple[Plan, int], ...]
