"""Laws of the engine, small plans by hand, and what it says of plans that cannot run."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.device.sharing import rates
from hwmodel.engine.ablate import serial
from hwmodel.engine.timing import run, run_sequence
from hwmodel.errors import ParameterError, SimulationError
from hwmodel.schedules.plan import FULL, Plan, PlanSequence, Task, Variant
from tests.engine.plans import RESOURCES, demands, plan, plans, task
from tests.oracles.list_schedule import list_schedule

if TYPE_CHECKING:
    from hwmodel.engine.trace import Trace


def times(trace: Trace) -> list[tuple[int, int]]:
    return [(span.start_picoseconds, span.end_picoseconds) for span in trace.spans]


def rates_over_time(trace: Trace) -> list[tuple[int, dict[int, int]]]:
    """(picoseconds, rate of each running task) of the stretches between starts and ends, told from the spans alone."""
    policies = dict(trace.plan.policies)
    edges = sorted({edge for span in times(trace) for edge in span})
    stretches = []
    for begin, end in pairwise(edges):
        running = [span.task for span in trace.spans if span.start_picoseconds <= begin and end <= span.end_picoseconds]
        users = [
            [(RESOURCES.index(name), fraction) for name, fraction in trace.plan.tasks[index].demands]
            for index in running
        ]
        granted = rates(users, [policies.get(name, "fair") for name in RESOURCES])
        stretches.append((end - begin, dict(zip(running, granted, strict=True))))
    return stretches


# ------------------------------------------------------------------------------------------------------------ by hand


def test_an_empty_plan_takes_no_time() -> None:
    trace = run(plan())
    assert trace.spans == ()
    assert trace.makespan_picoseconds == 0


def test_a_stream_runs_its_tasks_one_after_the_other() -> None:
    assert times(run(plan(task("a", 5), task("b", 7)))) == [(0, 5), (5, 12)]


def test_a_task_waits_for_other_streams() -> None:
    trace = run(plan(task("a", 5), task("b", 7, stream="side", after=(0,)), task("c", 1, after=(1,))))
    assert times(trace) == [(0, 5), (5, 12), (12, 13)]


def test_a_task_may_wait_for_one_that_the_plan_lists_later() -> None:
    assert times(run(plan(task("a", 5, after=(1,)), task("b", 7, stream="side")))) == [(7, 12), (0, 7)]


def test_waiting_twice_for_the_same_task_is_waiting_once() -> None:
    assert times(run(plan(task("a", 5), task("b", 7, stream="side", after=(0, 0))))) == [(0, 5), (5, 12)]


GEMM = task("gemm", 1_000_000, {"cube": 1.0, "hbm": 0.2})
AMAX = task("amax", 400_000, {"vector": 1.0, "hbm": 1.0}, stream="side", kind="amax")


def test_fair_hides_amax_under_a_gemm_at_four_fifths_of_its_rate() -> None:
    # 0.2 of 2**20 rounds up, so amax needs one picosecond more than 500,000.
    assert times(run(plan(GEMM, AMAX))) == [(0, 1_000_000), (0, 500_000)]


def test_proportional_slows_the_gemm_while_amax_runs() -> None:
    # Both at 1 / 1.2 until amax ends at 480,000, when 600,000 of the GEMM are left.
    assert times(run(plan(GEMM, AMAX, hbm="proportional"))) == [(0, 1_080_001), (0, 480_001)]


def test_rates_change_when_a_task_starts() -> None:
    late = replace(AMAX, after=(1,))
    trace = run(plan(task("gemm", 1000, {"hbm": 1.0}), task("wait", 600, stream="side"), late))
    # Alone until 600; then both at a half: the GEMM's 400 take 800, and amax has 399,600 left alone.
    assert times(trace) == [(0, 1400), (0, 600), (600, 401_000)]


def test_tasks_that_end_together_are_one_instant() -> None:
    trace = run(plan(task("a", 10, {"hbm": 1.0}), task("b", 10, {"hbm": 1.0}, stream="side"), task("c", 1, after=(1,))))
    assert times(trace) == [(0, 20), (0, 20), (20, 21)]


def test_a_task_of_no_time_holds_nobody_up_and_needs_no_share() -> None:
    trace = run(
        plan(
            task("record", 0, {"hbm": 1.0}),
            task("wait", 0, {"hbm": 1.0}, stream="side", after=(0,)),
            task("again", 0, stream="side", after=(1,)),
            task("amax", 10, {"hbm": 1.0}, stream="side", after=(2,)),
            task("gemm", 10, {"hbm": 1.0}, after=(1,)),
        )
    )
    assert times(trace) == [(0, 0), (0, 0), (0, 0), (0, 20), (0, 20)]


def test_time_is_counted_exactly_over_a_very_long_run() -> None:
    day = 86_400 * 10**12
    assert times(run(plan(task("a", day), task("b", 1), task("c", day + 1)))) == [
        (0, day),
        (day, day + 1),
        (day + 1, 2 * day + 2),
    ]


# ------------------------------------------------------------------------------------------------------------- cores

NARROW = tuple(Variant(cores, alone, demands({"cube": 1.0})) for cores, alone in ((132, 100), (108, 150), (64, 300)))
WIDE_GEMM = task("gemm", 100, {"cube": 1.0}, variants=NARROW)


def collective(alone: int, cores: int) -> Task:
    return task("gather", alone, {"link": 1.0}, stream="tensor", kind="collective", cores_held=cores)


def test_a_task_runs_as_itself_while_no_cores_are_held() -> None:
    assert times(run(plan(WIDE_GEMM, cores=132))) == [(0, 100)]
    assert times(run(plan(replace(WIDE_GEMM, variants=NARROW[1:]), cores=132))) == [(0, 100)]


def test_a_task_takes_the_first_variant_that_fits_and_keeps_it() -> None:
    trace = run(plan(collective(10, 24), WIDE_GEMM, WIDE_GEMM, cores=132))
    assert times(trace) == [(0, 10), (0, 150), (150, 250)]
    assert [span.alone_picoseconds for span in trace.spans] == [10, 150, 100]


def test_a_task_that_runs_already_does_not_change_when_cores_are_taken() -> None:
    assert times(run(plan(WIDE_GEMM, collective(10, 24), cores=132))) == [(0, 100), (0, 10)]


def test_cores_that_several_hold_add_up() -> None:
    other = replace(collective(10, 24), stream="data")
    assert times(run(plan(collective(10, 24), other, WIDE_GEMM, cores=132)))[2] == (0, 300)


def test_a_task_that_fits_nowhere_takes_its_last_variant_and_does_not_wait() -> None:
    assert times(run(plan(collective(10, 100), WIDE_GEMM, cores=132))) == [(0, 10), (0, 300)]


def test_cores_freed_at_an_instant_are_free_for_what_starts_at_it() -> None:
    trace = run(plan(collective(10, 24), task("wait", 10), WIDE_GEMM, cores=132))
    assert times(trace) == [(0, 10), (0, 10), (10, 110)]


def test_tasks_that_start_at_the_same_instant_do_so_in_plan_order() -> None:
    gather = replace(collective(10, 24), after=(0,))
    assert times(run(plan(task("a", 10), gather, WIDE_GEMM, cores=132)))[2] == (10, 160)
    assert times(run(plan(task("a", 10), WIDE_GEMM, gather, cores=132)))[1] == (10, 110)


# -------------------------------------------------------------------------------------------------------------- laws


@given(plans())
def test_every_task_gets_its_work_done_and_less_than_a_picosecond_more(drawn: Plan) -> None:
    trace = run(drawn)
    done = dict.fromkeys(range(len(drawn.tasks)), 0)
    last = dict.fromkeys(done, 1)
    for picoseconds, running in rates_over_time(trace):
        for index, rate in running.items():
            done[index] += picoseconds * rate
            last[index] = rate
    for index, work in done.items():
        needed = drawn.tasks[index].alone_picoseconds * FULL
        assert needed <= work < needed + last[index]


@given(plans())
def test_no_resource_gives_more_than_its_whole_at_any_time(drawn: Plan) -> None:
    for _, running in rates_over_time(run(drawn)):
        for name in RESOURCES:
            uses = {index: dict(drawn.tasks[index].demands).get(name, 0) for index in running}
            assert sum(uses[index] * rate for index, rate in running.items()) <= FULL * FULL


@given(plans())
def test_the_makespan_lies_between_the_busiest_resource_and_one_stream(drawn: Plan) -> None:
    """Above it by rounding only: under a picosecond a task, and a unit of rate for each that runs."""
    makespan = run(drawn).makespan_picoseconds
    for name in RESOURCES:
        busy = sum(item.alone_picoseconds * dict(item.demands).get(name, 0) for item in drawn.tasks)
        assert busy <= makespan * FULL
    alone = sum(item.alone_picoseconds for item in drawn.tasks)
    assert makespan * (FULL - len(drawn.streams)) <= (alone + len(drawn.tasks)) * FULL


@given(plans())
def test_on_one_stream_the_makespan_is_the_sum_of_times_alone(drawn: Plan) -> None:
    assert run(serial(drawn)).makespan_picoseconds == sum(item.alone_picoseconds for item in drawn.tasks)


@given(plans())
def test_without_contention_it_is_a_list_schedule(drawn: Plan) -> None:
    free = replace(drawn, tasks=tuple(replace(item, demands=()) for item in drawn.tasks))
    assert times(run(free)) == list(zip(*list_schedule(free), strict=True))


@given(plans())
def test_contention_starts_and_ends_nothing_earlier(drawn: Plan) -> None:
    for (start, end), first_start, first_end in zip(times(run(drawn)), *list_schedule(drawn), strict=True):
        assert start >= first_start
        assert end >= first_end


@given(plans(with_variants=True), st.integers(1, 10**9))
def test_a_run_shifted_in_time_is_the_same_run(drawn: Plan, delay: int) -> None:
    streams = drawn.streams
    waits = [Task(f"wait {stream}", stream, "wait", delay, ()) for stream in streams]
    moved = [replace(item, after=tuple(other + len(streams) for other in item.after)) for item in drawn.tasks]
    shifted = run(replace(drawn, tasks=(*waits, *moved)))
    assert times(shifted)[len(streams) :] == [(start + delay, end + delay) for start, end in times(run(drawn))]


@given(plans(), st.data())
def test_how_streams_are_interleaved_in_the_plan_does_not_matter(drawn: Plan, data: st.DataObject) -> None:
    """True of every plan whose tasks have no variants: the order within a stream is what counts."""
    queues = {s: [index for index, item in enumerate(drawn.tasks) if item.stream == s] for s in drawn.streams}
    order = []
    while any(queues.values()):
        stream = data.draw(st.sampled_from([s for s in queues if queues[s]]))
        order.append(queues[stream].pop(0))
    place = {index: number for number, index in enumerate(order)}
    tasks = [drawn.tasks[index] for index in order]
    tasks = [replace(item, after=tuple(place[other] for other in item.after)) for item in tasks]
    mixed = times(run(replace(drawn, tasks=tuple(tasks))))
    assert [mixed[place[index]] for index in range(len(order))] == times(run(drawn))


@given(plans(with_variants=True))
def test_equal_plans_give_equal_traces(drawn: Plan) -> None:
    copy = replace(drawn, tasks=tuple(replace(item) for item in drawn.tasks))
    assert run(drawn) == run(copy)


@given(plans(with_variants=True))
def test_streams_keep_their_order_and_tasks_wait_for_what_they_must(drawn: Plan) -> None:
    spans = times(run(drawn))
    stream_free: dict[str, int] = {}
    for item, (start, end) in zip(drawn.tasks, spans, strict=True):
        assert type(start) is int
        assert type(end) is int
        assert start >= max([stream_free.get(item.stream, 0), *(spans[other][1] for other in item.after)])
        stream_free[item.stream] = end


DIGEST = """
import hashlib
from hwmodel.engine.timing import run
from hwmodel.schedules.plan import FULL, Plan, Task
streams = ("main", "side", "tensor")
uses = ({"hbm": FULL, "l2": FULL - 99}, {"hbm": FULL - 99, "l2": FULL}, {"hbm": FULL, "l2": FULL, "link": FULL})
tasks = tuple(
    Task(f"t{i}", streams[i % 3], "k", 10**9 + 37 * i % 91, tuple(uses[i % 3].items()), (i - 4,) if i % 5 == 4 else ())
    for i in range(200)
)
trace = run(Plan("digest", tasks))
print(trace.makespan_picoseconds, trace.events, hashlib.sha256(repr(trace.spans).encode()).hexdigest())
"""


@pytest.mark.slow
def test_every_process_gives_the_same_trace() -> None:
    root = Path(__file__).resolve().parents[2]
    printed = set()
    for seed in "012":
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        call = subprocess.run([sys.executable, "-c", DIGEST], env=env, capture_output=True, text=True, check=True)
        printed.add(call.stdout)
    assert len(printed) == 1


# --------------------------------------------------------------------------------------------------------- sequences


def test_a_sequence_runs_equal_plans_once_and_keeps_counts() -> None:
    first, again, last = plan(task("a", 5)), plan(task("a", 5)), plan(task("b", 7))
    trace = run_sequence(PlanSequence("steps", ((first, 3), (last, 2), (again, 1_000_000))))
    assert [count for _, count in trace.items] == [3, 2, 1_000_000]
    assert trace.items[0][0] is trace.items[2][0]
    assert trace.makespan_picoseconds == 3 * 5 + 2 * 7 + 1_000_000 * 5


def test_a_sequence_refuses_a_negative_count() -> None:
    with pytest.raises(ParameterError) as caught:
        run_sequence(PlanSequence("steps", ((plan(), -1),)))
    assert str(caught.value) == "items: counts must be >= 0, got -1 of plan 'small'"


# ------------------------------------------------------------------------------------------------------------- stuck


def stuck(refused: Plan) -> str:
    with pytest.raises(SimulationError) as caught:
        run(refused)
    return str(caught.value)


def test_tasks_that_wait_for_each_other_are_named_with_their_circle() -> None:
    assert stuck(plan(task("a", 5), task("b", 1, after=(2,)), task("c", 1, stream="side", after=(0, 1)))) == (
        "at 5 ps: 2 of 3 tasks of plan 'small' can never start\n"
        "'b' on stream 'main' waits for 'c' on stream 'side'\n"
        "'c' on stream 'side' waits for 'b' on stream 'main' (done: 'a')\n"
        "they wait in a circle: 'b' -> 'c' -> 'b'\n"
        "waiting: b, c"
    )


def test_two_streams_that_enter_collectives_in_crossed_order_are_named() -> None:
    crossed = plan(
        task("gather on rank 0", 5, stream="rank 0", after=(3,)),
        task("reduce on rank 0", 5, stream="rank 0"),
        task("reduce on rank 1", 5, stream="rank 1", after=(1,)),
        task("gather on rank 1", 5, stream="rank 1"),
    )
    assert stuck(crossed) == (
        "at 0 ps: 4 of 4 tasks of plan 'small' can never start\n"
        "'gather on rank 0' on stream 'rank 0' waits for 'gather on rank 1' on stream 'rank 1'\n"
        "'reduce on rank 1' on stream 'rank 1' waits for 'reduce on rank 0' on stream 'rank 0'\n"
        "'reduce on rank 0' on stream 'rank 0' waits for 'gather on rank 0' in front of it\n"
        "'gather on rank 1' on stream 'rank 1' waits for 'reduce on rank 1' in front of it\n"
        "they wait in a circle: 'gather on rank 0' -> 'gather on rank 1' -> 'reduce on rank 1' -> 'reduce on rank 0'"
        " -> 'gather on rank 0'\n"
        "waiting: gather on rank 0, reduce on rank 1, reduce on rank 0, gather on rank 1"
    )


def test_a_receive_without_its_send_is_named_with_what_is_behind_it() -> None:
    assert stuck(plan(task("forward", 9), task("receive", 1, after=(0, 7)), task("backward", 9))) == (
        "at 9 ps: 2 of 3 tasks of plan 'small' can never start\n"
        "'receive' on stream 'main' waits for task 7, which is not in the plan (done: 'forward')\n"
        "'backward' on stream 'main' waits for 'receive' in front of it\n"
        "waiting: receive, backward"
    )


def test_a_task_that_waits_for_itself_is_named() -> None:
    assert stuck(plan(task("a", 5, after=(0,)))) == (
        "at 0 ps: 1 of 1 tasks of plan 'small' can never start\n"
        "'a' on stream 'main' waits for itself\n"
        "they wait in a circle: 'a' -> 'a'\n"
        "waiting: a"
    )


def test_a_negative_index_is_not_the_last_task() -> None:
    assert "'b' on stream 'main' waits for task -1, which is not in the plan" in stuck(
        plan(task("a", 5), task("b", 1, after=(-1,)))
    )


def test_a_long_queue_of_stuck_tasks_is_cut_short() -> None:
    with pytest.raises(SimulationError) as caught:
        run(plan(*(task(f"t{index}", 1, after=(99,) if not index else ()) for index in range(50))))
    assert "... and 30 more" in str(caught.value)
    assert caught.value.names == tuple(f"t{index}" for index in range(20))
    assert caught.value.time_picoseconds == 0


@given(plans(), st.data())
def test_a_stuck_run_never_returns(drawn: Plan, data: st.DataObject) -> None:
    if not drawn.tasks:
        return
    index = data.draw(st.integers(0, len(drawn.tasks) - 1))
    wrong = data.draw(st.sampled_from((index, -1, len(drawn.tasks))))
    tasks = list(drawn.tasks)
    tasks[index] = replace(tasks[index], after=(*tasks[index].after, wrong))
    assert f"'task{index}' on stream" in stuck(replace(drawn, tasks=tuple(tasks)))


# ------------------------------------------------------------------------------------------------------------ checks


def variants(*cores: int) -> tuple[Variant, ...]:
    return tuple(Variant(count, 5, ()) for count in cores)


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        (
            plan(task("a", -1)),
            "tasks[0].alone_picoseconds: must be a whole number >= 0, got -1 (task 'a')",
        ),
        (
            plan(replace(task("a", 1), alone_picoseconds=1.5)),  # type: ignore[arg-type]  # what the check is for
            "tasks[0].alone_picoseconds: must be a whole number >= 0, got 1.5 (task 'a')",
        ),
        (
            plan(task("a", 1), task("b", 1, {"hbm": 0.0})),
            "tasks[1].demands.hbm: must be a whole number 1..1048576, got 0 (task 'b')",
        ),
        (
            plan(task("a", 1, {"hbm": 2.0})),
            "tasks[0].demands.hbm: must be a whole number 1..1048576, got 2097152 (task 'a')",
        ),
        (
            plan(replace(task("a", 1), demands=(("hbm", 1), ("hbm", 2)))),
            "tasks[0].demands.hbm: must be named once (task 'a')",
        ),
        (
            plan(task("a", 1), hbm="greedy"),
            "policies.hbm: must be one of fair, proportional, got 'greedy'",
        ),
        (
            replace(plan(), policies=(("hbm", "fair"), ("hbm", "fair"))),
            "policies.hbm: must be given once",
        ),
        (
            plan(task("a", 1, cores_held=-1)),
            "tasks[0].cores_held: must be a whole number >= 0, got -1 (task 'a')",
        ),
        (
            plan(task("a", 1, variants=variants(4, 2))),
            "cores: must be > 0 where a task has variants, got 0 (task 'a')",
        ),
        (
            plan(task("a", 1, variants=variants(2, 4)), cores=8),
            "tasks[0].variants: must have fewer cores each, got [2, 4] (task 'a')",
        ),
        (
            plan(task("a", 1, variants=(Variant(4, -5, ()),)), cores=8),
            "tasks[0].variants[0].alone_picoseconds: must be a whole number >= 0, got -5 (task 'a')",
        ),
    ],
)
def test_what_means_nothing_is_refused(refused: Plan, text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        run(refused)
    assert str(caught.value) == text
