"""A recipe is a point on axes: what cannot exist is refused with the reason, and every preset can be lowered."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hwmodel.config.recipe import presets
from hwmodel.errors import ParameterError, RefusedError, RegistryError
from hwmodel.formats import ScaleLayout
from hwmodel.graph import REFERENCE, Target
from hwmodel.recipes.layouts import GRANULARITIES
from hwmodel.recipes.recipe import AmaxAxes, Exceptions, Formats, Recipe, StepKind, step_kinds
from hwmodel.recipes.timings import TIMINGS
from hwmodel.workload import HandGraph
from hwmodel.workload.hand import lower_hand
from hwmodel.workload.workload import OpLine, TensorLine

ROOT = Path(__file__).parents[2]
K_CONTIGUOUS = replace(REFERENCE, name="k-contiguous", any_operand_layout=False, native_scaling=())
FP8 = Formats("fp8_e4m3fn", "fp8_e4m3fn", "fp8_e5m2")
LINEAR = HandGraph(
    "linear",
    (TensorLine("x", (256, 512), "bf16"), TensorLine("w", (384, 512), "bf16")),
    (OpLine("linear", ("x", "w"), ("y",)),),
)


def refusal(**axes: object) -> str:
    with pytest.raises((ParameterError, RefusedError, RegistryError)) as caught:
        Recipe(**{"formats": FP8, **axes})  # type: ignore[arg-type]  # wrong values are the point
    return str(caught.value)


# -------------------------------------------------------------------------------------------------------------- presets


def test_the_presets_stand_in_the_order_of_their_file() -> None:
    assert list(presets()) == [
        *("bf16", "delayed", "current", "static", "direct", "row", "row_bf16_wgrad", "block", "subchannel", "mxfp8"),
        *("hif8_current", "hif8_delayed", "hif8_direct"),
    ]


def test_a_preset_remembers_its_name_and_asking_twice_gives_equal_ones() -> None:
    assert all(recipe.preset == name for name, recipe in presets().items())
    assert presets() == presets()
    presets().clear()
    assert presets()


def test_hif8_delayed_refreshes_every_fifth_step_with_its_amax_at_sixteen() -> None:
    recipe = presets()["hif8_delayed"]
    assert (recipe.interval_steps, recipe.margin_bits, recipe.timing) == (5, 11, "delayed")
    assert 32768 / 2**recipe.margin_bits == 16


@pytest.mark.parametrize("target", [REFERENCE, K_CONTIGUOUS], ids=lambda target: target.name)
@pytest.mark.parametrize("name", list(presets()))
def test_every_preset_lowers(name: str, target: Target) -> None:
    recipe = presets()[name]
    for step in (*step_kinds(recipe), StepKind(cold_start=True)):
        graph = lower_hand(LINEAR, recipe, target, step)
        gemms = [node for node in graph.nodes if node.op == "gemm"]
        assert len(gemms) == 3
        for use, gemm in zip(("fprop", "dgrad", "wgrad"), gemms, strict=True):
            eight_bit = [graph.tensors[name].format for name in gemm.inputs[:2]]
            expected = [recipe.formats.of(role) for role in {"fprop": "xw", "dgrad": "gw", "wgrad": "gx"}[use]]
            assert eight_bit == (["bf16", "bf16"] if recipe.high_precision(use) else expected)


@pytest.mark.parametrize("name", list(presets()))
def test_a_target_that_reads_along_k_only_gets_operands_that_lie_so(name: str) -> None:
    recipe = presets()[name]
    graph = lower_hand(LINEAR, recipe, K_CONTIGUOUS, StepKind())
    for node in graph.nodes:
        if node.op == "gemm" and not recipe.high_precision(node.name.rpartition(".")[2]):
            assert (node.params.transpose_a, node.params.transpose_b) == (False, True), node.name


# ----------------------------------------------------------------------------------------------------------------- axes


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    assert refusal(granularity="tensr") == (
        "unknown granularity 'tensr'; did you mean 'tensor'? known: block, mx, row, subchannel, tensor"
    )
    assert refusal(timing="late").startswith("unknown timing 'late'")
    assert refusal(fusion="all") == "fusion: must be one of none, production, ideal, got 'all'"
    assert refusal(history_rule="min") == "history_rule: must be one of max, latest, mean, got 'min'"
    assert refusal(scale_rounding="up") == "scale_rounding: must be one of nearest, power_of_two, got 'up'"


def test_numbers_out_of_range_are_refused() -> None:
    assert refusal(interval_steps=0) == "interval_steps: must be >= 1 and <= 10000, or none, got 0"
    assert refusal(history_steps=0) == "history_steps: must be >= 1, got 0"
    assert refusal(margin_bits=-1) == "margin_bits: must be between 0 and 32, got -1"


def test_parts_refuse_under_their_own_path() -> None:
    with pytest.raises(ParameterError, match=r"^amax\.kernel: must be one of fused, fused_producer, separate"):
        AmaxAxes(kernel="apart")
    with pytest.raises(ParameterError, match=r"^amax\.sampling: must be one of full, split"):
        AmaxAxes(sampling="half")
    with pytest.raises(ParameterError, match=r"^exceptions\.first_layers: must be >= 0, got -1"):
        Exceptions(first_layers=-1)
    with pytest.raises(ParameterError, match=r"^exceptions\.gemms: must be one of fprop, dgrad, wgrad, got 'all'"):
        Exceptions(gemms=("all",))


@pytest.mark.parametrize("timing", ["static", "delayed", "direct"])
@pytest.mark.parametrize("granularity", ["row", "block", "subchannel"])
def test_a_scale_across_steps_needs_blocks_that_keep_their_identity(timing: str, granularity: str) -> None:
    text = refusal(timing=timing, granularity=granularity)
    assert text.startswith(f"recipe.timing: '{timing}' with granularity '{granularity}': a scale kept across steps")
    assert text.endswith("use granularity 'tensor' or timing 'current'")


def test_an_mx_format_needs_its_own_blocks() -> None:
    text = refusal(formats=Formats("mxfp8_e4m3fn", "mxfp8_e4m3fn", "mxfp8_e4m3fn"), granularity="subchannel")
    assert text == (
        "recipe.formats.x: 'mxfp8_e4m3fn' shares one scale per 32 elements, granularity 'subchannel' does not; use "
        "granularity 'mx'"
    )


def test_split_sampling_needs_an_amax_that_is_a_pass_of_its_own_and_may_be_late() -> None:
    split = AmaxAxes("separate", "split")
    assert Recipe(formats=FP8, timing="delayed", amax=split).period_steps == 1
    assert refusal(timing="current", amax=split).startswith("recipe.amax.sampling: 'split' with timing 'current': ")
    assert "has nothing to split" in refusal(timing="delayed", amax=AmaxAxes("fused", "split"))


def test_axes_that_cannot_matter_make_no_difference() -> None:
    assert Recipe(granularity="mx", margin_bits=3).canonical() == Recipe().canonical()
    current = Recipe(formats=FP8, timing="current")
    assert replace(current, interval_steps=7, preset="mine").canonical() == current.canonical()
    delayed = Recipe(formats=FP8, timing="delayed")
    assert replace(delayed, interval_steps=7).canonical() != delayed.canonical()


def test_a_period_has_one_step_with_an_amax() -> None:
    kinds = step_kinds(Recipe(formats=FP8, timing="delayed", interval_steps=4))
    assert [kind.amax_due for kind in kinds] == [True, False, False, False]
    assert step_kinds(Recipe(formats=FP8, timing="delayed", interval_steps=None)) == (StepKind(amax_due=False),)
    assert step_kinds(Recipe(formats=FP8, timing="current", interval_steps=4)) == (StepKind(),)


@pytest.mark.parametrize("name", GRANULARITIES.names())
def test_a_granularity_is_one_layout_for_each_role(name: str) -> None:
    recipe = Recipe(formats=FP8, timing="current", granularity=name)
    for role in "xwg":
        assert recipe.layout(role) == GRANULARITIES.get(name).of(role)
        assert replace(recipe, scale_rounding="power_of_two").layout(role).powers_of_two


def test_only_the_weight_of_dgrad_takes_its_own_granularity() -> None:
    recipe = presets()["row_bf16_wgrad"]
    assert recipe.layout("w", "fprop") == recipe.layout("x") == ScaleLayout(1, None, powers_of_two=True)
    assert recipe.layout("w", "dgrad").per_tensor
    assert not recipe.layout("g", "dgrad").per_tensor


def test_every_timing_is_used_by_a_preset() -> None:
    assert {recipe.timing for recipe in presets().values()} == set(TIMINGS.names())


# -------------------------------------------------------------------------------------------------- a granularity of 64


WALK = """
from hwmodel.formats import ScaleLayout
from hwmodel.graph import REFERENCE
from hwmodel.recipes.layouts import GRANULARITIES, Granularity

layout = ScaleLayout(1, 64, "e8m0", powers_of_two=True)
GRANULARITIES.register("mx64", Granularity(layout, layout, layout))  # the one line

from dataclasses import replace
from hwmodel.config.workload import load_workload
from hwmodel.graph import NativeScaling
from hwmodel.recipes.recipe import StepKind
from hwmodel.workload.hand import lower_hand

edits = ["recipe=subchannel", "recipe.granularity=mx64"]
workload = load_workload("linear", edits).workload
native = replace(REFERENCE, native_scaling=(NativeScaling(64, "e8m0"),))
without = replace(REFERENCE, native_scaling=())
for target in (native, without, REFERENCE):  # the reference has blocks of 32
    graph = lower_hand(workload, workload.recipe, target, StepKind())
    gemms = [node.params for node in graph.nodes if node.op == "gemm"]
    print(*((gemm.native_block_scales, gemm.promote_every) for gemm in gemms))
"""


def test_a_new_granularity_is_one_line_and_breaks_the_k_loop_where_it_is_not_native() -> None:
    command = [sys.executable, "-c", WALK]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    native, without, other = done.stdout.splitlines()
    assert native == "(True, 0) (True, 0) (True, 0)"
    assert without == other == "(False, 64) (False, 64) (False, 64)"
