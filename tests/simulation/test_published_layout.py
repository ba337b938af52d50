"""Llama 3.1 405B in a published layout: the order of recipes, their distance, and what each perturbation moves.

The bands are what the mechanisms must explain; no constant of the product is fitted to any of them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from hwmodel.api import Session, recipes

if TYPE_CHECKING:
    from hwmodel.simulation.result import Result

WORKLOAD = "llama3_405b"


@cache
def session(device: str, *sets: str) -> Session:
    return Session(WORKLOAD, device, sets=sets)


@cache
def result(recipe: str, device: str, *sets: str) -> Result:
    of_file = session(device, *sets)
    edits = [text for text in sets if text.startswith("recipe.")]
    chosen = Session(WORKLOAD, device, sets=edits, recipe=recipe).workload.recipe
    return of_file.result(chosen)


def seconds(recipe: str, device: str, *sets: str) -> float:
    return result(recipe, device, *sets).step_seconds


def test_gpu_order_is_delayed_current_mx() -> None:
    speedups = [result(name, "gpu").speedup for name in ("delayed", "current", "mxfp8")]
    assert speedups == sorted(speedups, reverse=True)
    assert 1.46 <= speedups[0] <= 1.70


def test_gpu_distances_are_within_what_others_published() -> None:
    assert 1.015 <= seconds("current", "gpu") / seconds("delayed", "gpu") <= 1.04
    assert 0.92 <= seconds("current", "gpu") / seconds("mxfp8", "gpu") <= 0.995
    assert 0.80 <= seconds("mxfp8", "gpu") / seconds("mxfp8", "gpu", "software=early") <= 0.95


def test_early_software_moves_only_block_scaled_recipes() -> None:
    for name in ("bf16", "delayed", "current"):
        assert seconds(name, "gpu", "software=early") == seconds(name, "gpu")
    assert seconds("mxfp8", "gpu", "software=early") > seconds("mxfp8", "gpu")


def test_without_fusion_delayed_loses_more_than_current_and_bf16_nothing() -> None:
    lost = {
        name: seconds(name, "gpu", "recipe.fusion=none") - seconds(name, "gpu")
        for name in ("bf16", "delayed", "current")
    }
    assert lost["bf16"] == 0
    assert lost["delayed"] > lost["current"] > 0


def test_twice_the_memory_rate_helps_and_moves_vector_work_most() -> None:
    fast = "device.resources.hbm.bytes_per_second=16 TB/s"
    before, after = result("current", "gpu"), result("current", "gpu", fast)
    gained = {key: before.totals.breakdown[key] - after.totals.breakdown[key] for key in before.totals.breakdown}
    assert after.step_seconds < before.step_seconds
    for key in ("elementwise", "quantise", "amax"):
        assert gained[key] > 0.3 * before.totals.breakdown[key]


def test_an_infinite_link_leaves_only_latency_of_transfers() -> None:
    fast = ("device.resources.nvlink.bytes_per_second=1e18", "device.resources.nic.bytes_per_second=1e18")
    before, after = result("delayed", "gpu"), result("delayed", "gpu", *fast)
    assert after.totals.breakdown["collective"] < 0.6 * before.totals.breakdown["collective"]
    assert 0 < before.step_seconds - after.step_seconds < before.totals.busy["collective"] / 1e12


def test_twice_the_vector_cores_never_lengthen_a_step() -> None:
    twice = "device.resources.vector.units=128"
    for name in ("bf16", "current", "mxfp8"):
        assert seconds(name, "npu", twice) <= seconds(name, "npu")


def test_without_amax_delayed_gains_what_amax_and_its_updates_cost() -> None:
    never = result("delayed", "gpu", "recipe.interval_steps=none")
    always = result("delayed", "gpu")
    assert never.step_seconds < always.step_seconds
    assert never.totals.counts["amax_passes"] == 0
    assert never.totals.breakdown["scale"] == 0


def test_hopper_orders_by_granularity_and_block_loses_in_the_gemm() -> None:
    names = ("delayed", "current", "row", "block", "subchannel")
    steps = [seconds(name, "h100") for name in names]
    assert steps == sorted(steps)
    current, block = (result(name, "h100").totals.breakdown for name in ("current", "block"))
    lost = {key: block[key] - current[key] for key in block}
    assert lost["gemm"] == max(lost.values())
    assert lost["gemm"] > 0
    assert lost["quantise"] + lost["amax"] + lost["transpose"] < 0


def test_hif8_interval_matters_only_where_amax_is_its_own_kernel() -> None:
    steps = {
        kernel: [
            seconds("hif8_delayed", "npu", f"recipe.amax.kernel={kernel}", f"recipe.interval_steps={interval}")
            for interval in (1, 5, 20)
        ]
        for kernel in ("separate", "fused")
    }
    assert steps["separate"][0] > steps["separate"][1] > steps["separate"][2]
    gained = steps["separate"][0] - steps["separate"][2]
    assert abs(steps["fused"][0] - steps["fused"][2]) < 0.01 * gained


def test_name_and_layer_count_do_not_matter_to_speedups() -> None:
    for name in ("delayed", "current", "mxfp8"):
        shorter = result(name, "gpu", "model.layers=124", "name=renamed")
        assert shorter.speedup == pytest.approx(result(name, "gpu").speedup, rel=0.01)


def test_differences_by_key_add_up_to_the_difference_of_steps() -> None:
    for one, other in (("delayed", "current"), ("current", "mxfp8"), ("bf16", "delayed")):
        a, b = result(one, "gpu").totals, result(other, "gpu").totals
        assert sum(b.breakdown[key] - a.breakdown[key] for key in a.breakdown) == b.picoseconds - a.picoseconds


def test_every_preset_runs_or_says_why_not() -> None:
    for name in recipes():
        if name.startswith("hif8"):
            continue
        assert result(name, "gpu").step_seconds > 0


def test_the_order_does_not_hang_on_how_resources_are_shared() -> None:
    resources = session("gpu").machine.device.resources
    flipped = tuple(f"device.resources.{name}.policy=proportional" for name in sorted(resources))
    steps = [seconds(name, "gpu", *flipped) for name in ("delayed", "current", "mxfp8", "bf16")]
    assert steps == sorted(steps)
