"""Taking work away from a plan, and putting it on one stream."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.engine.ablate import serial, shares, without_kind
from hwmodel.engine.timing import run
from hwmodel.errors import SimulationError
from hwmodel.schedules.plan import Plan, Variant
from tests.engine.plans import KINDS, plan, plans, task


def charged(drawn: Plan) -> Counter[str]:
    """Picoseconds of each kind on one stream."""
    sums: Counter[str] = Counter()
    for item in drawn.tasks:
        for kind, share in shares(item.alone_picoseconds, item.kind, item.info.parts):
            sums[kind] += share
    return sums


def test_a_task_without_parts_is_charged_to_its_kind() -> None:
    assert shares(10, "gemm", ()) == (("gemm", 10),)


def test_a_fused_task_is_charged_to_its_parts_and_the_last_takes_the_remainder() -> None:
    assert shares(100, "fused", (("amax", 1), ("quantise", 1), ("scale", 1))) == (
        ("amax", 33),
        ("quantise", 33),
        ("scale", 34),
    )


def test_parts_of_no_time_leave_it_to_the_last() -> None:
    assert shares(100, "fused", (("scale", 0), ("amax", 0))) == (("scale", 0), ("amax", 100))


@given(plans(with_parts=True))
def test_the_shares_of_a_task_sum_to_its_time(drawn: Plan) -> None:
    assert sum(charged(drawn).values()) == sum(item.alone_picoseconds for item in drawn.tasks)


@given(plans(with_parts=True), st.sampled_from(KINDS))
def test_on_one_stream_a_kind_taken_away_shortens_the_step_by_exactly_its_entry(drawn: Plan, kind: str) -> None:
    step = serial(drawn)
    saved = run(step).makespan_picoseconds - run(without_kind(step, kind)).makespan_picoseconds
    assert saved == charged(step)[kind]


@given(plans(with_parts=True, with_variants=True), st.sampled_from(KINDS))
def test_taking_a_kind_away_keeps_places_streams_waits_and_uses(drawn: Plan, kind: str) -> None:
    for before, after in zip(drawn.tasks, without_kind(drawn, kind).tasks, strict=True):
        assert (before.name, before.stream, before.after) == (after.name, after.stream, after.after)
        assert before.demands == after.demands


def test_a_fused_task_loses_its_part_in_every_variant() -> None:
    fused = task("norm", 100, parts=(("norm", 3), ("amax", 1)), variants=(Variant(4, 200, ()),))
    (left,) = without_kind(plan(fused, cores=8), "amax").tasks
    assert left.alone_picoseconds == 75
    assert left.variants[0].alone_picoseconds == 150
    assert left.info.parts == (("norm", 3),)


def test_a_kind_that_is_not_there_changes_nothing() -> None:
    before = plan(task("a", 5, kind="gemm"))
    assert without_kind(before, "amax") == before


@given(plans())
def test_a_serial_plan_keeps_plan_order_where_it_can(drawn: Plan) -> None:
    step = serial(drawn)
    assert [item.name for item in step.tasks] == [item.name for item in drawn.tasks]
    assert [item.after for item in step.tasks] == [tuple(sorted(item.after)) for item in drawn.tasks]
    assert step.streams == (("main",) if drawn.tasks else ())


def test_a_serial_plan_is_reordered_where_a_task_waits_for_a_later_one() -> None:
    step = serial(plan(task("a", 5, after=(2,)), task("b", 5), task("c", 5, stream="side"), task("d", 5, after=(0,))))
    assert [item.name for item in step.tasks] == ["c", "a", "b", "d"]
    assert [item.after for item in step.tasks] == [(), (0,), (), (1,)]
    assert run(step).makespan_picoseconds == 20


def test_no_order_serves_tasks_that_wait_for_each_other() -> None:
    with pytest.raises(SimulationError) as caught:
        serial(plan(task("a", 5), task("b", 1, after=(2,)), task("c", 1, stream="side", after=(1,))))
    assert str(caught.value) == (
        "at 0 ps: 2 of 3 tasks of plan 'small' can never start\n"
        "'b' on stream 'main' waits for 'c' on stream 'side'\n"
        "'c' on stream 'side' waits for 'b' on stream 'main'\n"
        "they wait in a circle: 'b' -> 'c' -> 'b'\n"
        "waiting: b, c"
    )
