"""Random plans, and short ways to write small ones."""

from __future__ import annotations

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


def fractions() -> st.SearchStrategy[int]:
    return st.one_of(st.just(FULL), st.integers(1, FULL), st.integers(FULL // 2, FULL))


def some_demands(most: int = len(RESOURCES)) -> st.SearchStrategy[Demands]:
    chosen = st.dictionaries(st.sampled_from(RESOURCES), fractions(), max_size=most)
    return chosen.map(lambda uses: tuple(sorted(uses.items())))


def times(least: int = 0) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(least, 10), st.integers(least, 3_000_000))


@st.composite
def plans(draw: st.DrawFn, *, most_tasks: int = 12, with_variants: bool = False, with_parts: bool = False) -> Plan:
    """A plan whose tasks wait only for earlier ones, so that it always ends."""
    tasks = []
    for index in range(draw(st.integers(0, most_tasks))):
        after = draw(st.lists(st.integers(0, index - 1), max_size=2)) if index else []
        variants: tuple[Variant, ...] = ()
        held = 0
        if with_variants:
            held = draw(st.sampled_from((0, 0, 2, 3)))
            if draw(st.booleans()):
                variants = tuple(Variant(cores, draw(times()), draw(some_demands())) for cores in (6, 5, 3))
        kinds = st.tuples(st.sampled_from(KINDS), st.integers(0, 1000))
        parts = tuple(draw(st.lists(kinds, max_size=3))) if with_parts else ()
        tasks.append(
            Task(
                f"task{index}",
                draw(st.sampled_from(STREAMS)),
                draw(st.sampled_from(KINDS)),
                draw(times()),
                draw(some_demands()),
                tuple(after),
                held,
                variants,
                TaskInfo(parts=parts),
            )
        )
    policies = draw(st.dictionaries(st.sampled_from(RESOURCES), st.sampled_from(("fair", "proportional"))))
    return Plan("random", tuple(tasks), tuple(sorted(policies.items())), cores=8)
