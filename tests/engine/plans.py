"""Random plans, and short ways to write small ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hwmodel.schedules.plan import FULL, Demands, Plan, Task, TaskInfo, Variant

RESOURCES = ("cube", "hbm", "link", "vector")
KINDS = ("gemm", "amax", "quantise", "collective")
STREAMS = ("main", "side", "tensor", "host")


def task(
    name: str,
    alone: int,
    uses: dict[str, float] | None = None,
    *,
    stream: str = "main",
    kind: str = "gemm",
    after: tuple[int, ...] = (),
    cores_held: int = 0,
    variants: tuple[Variant, ...] = (),
    parts: tuple[tuple[str, int], ...] = (),
) -> Task:
    """A task whose uses are written as fractions of 1."""
    return Task(name, stream, kind, alone, demands(uses or {}), after, cores_held, variants, TaskInfo(parts=parts))


def demands(uses: dict[str, float]) -> Demands:
    return tuple((name, round(fraction * FULL)) for name, fraction in sorted(uses.items()))


def plan(*tasks: Task, cores: int = 0, **policies: str) -> Plan:
    return Plan("small", tasks, tuple(sorted(policies.items())), cores)


FRACTIONS = st.one_of(st.just(FULL), st.integers(1, FULL), st.integers(FULL // 2, FULL))
DEMANDS = st.dictionaries(st.sampled_from(RESOURCES), FRACTIONS).map(lambda uses: tuple(sorted(uses.items())))
TIMES = st.one_of(st.integers(0, 10), st.integers(0, 3_000_000))
BACK = st.lists(st.integers(1, 6), max_size=2)
"""How many places before a task those are that it waits for."""
PARTS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 1000)), max_size=3).map(tuple)
VARIANTS = st.one_of(
    st.just(()), st.tuples(*(st.builds(Variant, st.just(cores), TIMES, DEMANDS) for cores in (6, 5, 3)))
)
HELD = st.sampled_from((0, 0, 2, 3))
POLICIES = st.dictionaries(st.sampled_from(RESOURCES), st.sampled_from(("fair", "proportional")))
PLAIN = (st.sampled_from(STREAMS), st.sampled_from(KINDS), TIMES, DEMANDS, BACK)
NOTHING = st.just(())


def plans(*, with_variants: bool = False, with_parts: bool = False) -> st.SearchStrategy[Plan]:
    """Plans of up to 10 tasks that wait only for earlier ones, so that they always end."""
    held, variants = (HELD, VARIANTS) if with_variants else (st.just(0), NOTHING)
    tasks = st.lists(st.tuples(*PLAIN, held, variants, PARTS if with_parts else NOTHING), max_size=10)
    return st.builds(_plan, tasks, POLICIES)


def _plan(drawn: list[tuple[Any, ...]], policies: dict[str, str]) -> Plan:
    tasks = []
    for index, (stream, kind, alone, uses, back, held, variants, parts) in enumerate(drawn):
        after = tuple(index - step for step in back if step <= index)
        tasks.append(Task(f"task{index}", stream, kind, alone, uses, after, held, variants, TaskInfo(parts=parts)))
    return Plan("random", tuple(tasks), tuple(sorted(policies.items())), cores=8)
