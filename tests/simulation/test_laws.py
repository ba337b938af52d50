"""Laws of whole steps: removing a kind, bounds, determinism across processes."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest

from hwmodel.api import Session
from hwmodel.engine import timing
from hwmodel.engine.ablate import without_kind
from hwmodel.engine.trace import SequenceTrace
from hwmodel.report.breakdown import KEYS, breakdown, busy

if TYPE_CHECKING:
    from hwmodel.simulation.result import Result

SMALL = (
    "model.layers=4",
    "batch.global=8",
    "parallel.tp=2",
    "parallel.dp=4",
    "batch.sequence=2048",
)
RECIPES = ("bf16", "delayed", "current", "row", "mxfp8")


@cache
def result(recipe: str, device: str, *sets: str) -> Result:
    return Session("quickstart", device, sets=(*SMALL, *sets), recipe=recipe).result()


def test_a_result_holds_what_it_was_made_from() -> None:
    data = result("delayed", "gpu", "device.clock_hz=1 GHz").data
    assert data["edits"] == [*SMALL, "device.clock_hz=1 GHz"]
    assert data["device"]["title"].endswith(", edited")
    assert data["inputs"]["model"]["layers"] > 0
    assert data["inputs"]["batch"]["sequence"] > 0


def test_a_shown_step_is_named_and_has_its_own_speedup() -> None:
    every, rare = (result("hif8_delayed", "npu", f"recipe.interval_steps={steps}") for steps in (1, 4))
    assert (every.step_shown, every.process) == ("", every.machine.device.title)
    assert every.shown_speedup == pytest.approx(every.speedup)
    assert rare.step_shown == "step 1 of a period of 4"
    assert rare.process == f"{rare.machine.device.title}, {rare.step_shown}"
    assert rare.shown_speedup * rare.trace.makespan_picoseconds == pytest.approx(
        rare.speedup * rare.totals.picoseconds / 4
    )
    assert rare.shown_speedup < rare.speedup


def removed(trace: SequenceTrace, kind: str) -> SequenceTrace:
    return SequenceTrace(
        trace.name, tuple((timing.run(without_kind(item.plan, kind)), count) for item, count in trace.items)
    )


@pytest.mark.parametrize("recipe", RECIPES)
def test_on_one_stream_removing_a_kind_shortens_the_step_by_its_breakdown_entry(recipe: str) -> None:
    trace = result(recipe, "gpu", "schedule.streams=serial").trace
    charged = breakdown(trace)
    for kind in KEYS:
        if kind in ("host", "idle"):
            continue
        assert trace.makespan_picoseconds - removed(trace, kind).makespan_picoseconds == charged[kind], kind


@pytest.mark.parametrize("recipe", RECIPES)
def test_on_several_streams_removing_a_kind_shortens_the_step_by_at_most_its_busy_time(recipe: str) -> None:
    trace = result(recipe, "gpu").trace
    running = busy(trace)
    for kind in KEYS:
        if kind in ("host", "idle"):
            continue
        saved = trace.makespan_picoseconds - removed(trace, kind).makespan_picoseconds
        assert saved <= running[kind], kind


@pytest.mark.parametrize("device", ["gpu", "npu"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_no_step_beats_compute_memory_or_its_own_parts(recipe: str, device: str) -> None:
    done = result(recipe, device)
    machine = done.machine.device
    memory_rate = machine.resources[machine.memory_resource].bytes_per_second
    fastest = max(machine.matrix.macs_per_cycle.values()) * machine.matrix.cores * machine.clock_hz * 2
    for trace, _ in done.trace.items:
        on_chip = [task for task in trace.plan.tasks if task.kind not in ("collective", "bubble")]
        flops = sum(task.info.flops for task in on_chip if task.kind in ("gemm", "attention"))
        moved = sum(task.info.bytes for task in on_chip if task.kind in ("elementwise", "quantise", "amax"))
        sent: dict[str, int] = {}
        for task in trace.plan.tasks:
            if task.kind == "collective" and task.demands:
                links = [name for name, _ in task.demands if name in {level.resource for level in machine.levels}]
                sent[max(links)] = sent.get(max(links), 0) + (task.info.bytes if len(links) == 1 else 0)
        links_floor = max((count / machine.resources[link].bytes_per_second for link, count in sent.items()), default=0)
        floor = max(flops / fastest, moved / memory_rate, links_floor) * 1e12
        assert trace.makespan_picoseconds >= floor
        for task in trace.plan.tasks:
            assert all(0 < share <= 1 << 20 for _, share in task.demands)
    assert done.data["model_flops_utilisation_fraction"] > 0
    assert 0 < done.data["recipe_flops_utilisation_fraction"] < 1
    assert sum(done.totals.breakdown.values()) == done.totals.picoseconds
    for kind, charged in done.totals.breakdown.items():
        assert charged <= done.totals.busy[kind] + (done.totals.picoseconds if kind in ("idle", "host") else 0)


PROGRAM = f"""
import hashlib, sys
from hwmodel.api import Session
done = Session("quickstart", "gpu", sets={SMALL!r}, recipe=sys.argv[1]).result()
names = [[task.name for task in item.plan.tasks] for item, _ in done.trace.items]
spans = [(item.plan.name, count, item.spans) for item, count in done.trace.items], names
print(hashlib.sha256(repr(spans).encode()).hexdigest())
"""


@pytest.mark.parametrize("recipe", ["current", "mxfp8"])
def test_traces_are_equal_across_processes_and_hash_seeds(recipe: str) -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM, recipe],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "31337")
    }
    assert len(digests) == 1


def test_padding_is_shown_and_never_silent() -> None:
    done = result("mxfp8", "gpu", "batch.sequence=2050")
    layout = done.data["layout"]
    assert layout["padded_tokens_per_rank"] == 2112
    assert any("padded from 2050 to 2112" in text for text in done.data["warnings"])
    assert result("delayed", "gpu", "batch.sequence=2050").data["layout"]["padded_tokens_per_rank"] == 2050


@pytest.mark.parametrize(("recipe", "padded"), [("mxfp8", 32000), ("block", 32256), ("delayed", 31936)])
def test_alignment_applies_to_the_shard(recipe: str, padded: int) -> None:
    sets = ("parallel.tp=4", "parallel.dp=2", "batch.sequence=31936")
    assert result(recipe, "gpu", *sets).data["layout"]["padded_tokens_per_rank"] == padded


def test_the_timed_graph_of_two_devices_has_the_same_nodes_where_they_can_do_the_same() -> None:
    names = [
        [task.name for item, _ in result("delayed", device, "software=mature").trace.items for task in item.plan.tasks]
        for device in ("gpu", "npu")
    ]
    assert names[0] == names[1]
