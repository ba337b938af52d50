"""Fusion by level: what software lists, whatever can be, or nothing; the bytes that go are those that stay on chip."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hwmodel.config.recipe import presets
from hwmodel.graph import REFERENCE, Graph, Target
from hwmodel.graph.order import check
from hwmodel.ops import Builder, demand_node
from hwmodel.ops.rmsnorm import RmsNormParams
from hwmodel.ops.swiglu import SwigluParams
from hwmodel.recipes.fusion import fuse, kernel_name
from hwmodel.recipes.lowering import Lowering
from hwmodel.recipes.recipe import Recipe, StepKind

ROWS, COLUMNS = 256, 512
ELEMENTS = ROWS * COLUMNS


def norm_and_cast(recipe: Recipe, target: Target = REFERENCE) -> Graph:
    """A norm, its casts for fprop and wgrad, and the two GEMMs' readers."""
    low = Lowering(Builder("one"), recipe, target, step=StepKind())
    builder = low.builder
    builder.input("x", (ROWS, COLUMNS), "bf16")
    builder.input("weight", (COLUMNS,), "bf16")
    builder.add("rmsnorm", RmsNormParams(), ("x", "weight"), ("normed",), role="norm")
    low.deliver("normed", role="x", uses=("fprop", "wgrad"), label="fc")
    return builder.graph()


def fused(recipe: Recipe, level: str, *kernels: str, amax_fuses: bool = True) -> Graph:
    target = replace(REFERENCE, fused_kernels=frozenset(kernels))
    graph = fuse(norm_and_cast(recipe, target), level, target, amax_fuses=amax_fuses)
    check(graph)
    return graph


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def moved(graph: Graph) -> int:
    """Bytes of all kernels that touch the whole tensor, tables of a few bytes left out."""
    return sum(demand_node(node, graph).bytes for node in graph.nodes if node.op != "update_scale")


def test_nothing_is_fused_at_level_none() -> None:
    recipe = presets()["delayed"]
    assert ops(fused(recipe, "none", "rmsnorm+quantise")) == ["rmsnorm", "quantise"]


def test_production_fuses_what_the_software_lists_and_no_more() -> None:
    recipe = presets()["delayed"]
    assert ops(fused(recipe, "production")) == ["rmsnorm", "quantise"]
    assert ops(fused(recipe, "production", "swiglu+quantise")) == ["rmsnorm", "quantise"]
    assert ops(fused(recipe, "production", "rmsnorm+quantise")) == ["fused"]


def test_ideal_asks_no_software() -> None:
    assert ops(fused(presets()["delayed"], "ideal")) == ["fused"]


def test_a_known_scale_makes_the_norm_write_one_byte_less_than_bf16() -> None:
    plain = norm_and_cast(presets()["bf16"])
    cast = fused(presets()["delayed"], "ideal")
    few = 100  # scales and amax
    assert moved(cast) == pytest.approx(moved(plain) - ELEMENTS, abs=few)
    assert moved(fused(presets()["delayed"], "none")) == pytest.approx(moved(plain) + 3 * ELEMENTS, abs=few)


def test_current_scaling_fuses_its_amax_into_the_norm_and_not_its_cast() -> None:
    graph = fused(presets()["current"], "ideal")
    assert ops(graph) == ["fused", "update_scale", "quantise"]
    plain = moved(norm_and_cast(presets()["bf16"]))
    assert moved(graph) == pytest.approx(plain + 3 * ELEMENTS, abs=100)
    assert moved(fused(presets()["current"], "none")) == pytest.approx(plain + 5 * ELEMENTS, abs=100)


def test_an_amax_kept_apart_is_not_fused() -> None:
    graph = fused(presets()["current"], "ideal", amax_fuses=False)
    assert ops(graph) == ["rmsnorm", "amax", "update_scale", "quantise"]


def test_a_separate_amax_still_needs_the_tensor_that_the_fused_cast_made() -> None:
    recipe = replace(presets()["delayed"], amax=replace(presets()["delayed"].amax, kernel="separate"))
    graph = fused(recipe, "ideal", amax_fuses=False)
    assert sorted(ops(graph)) == ["amax", "fused"]
    (kernel,) = (node for node in graph.nodes if node.op == "fused")
    assert "normed" in kernel.outputs


def test_blocks_fuse_under_their_family_of_kernel() -> None:
    recipe = presets()["mxfp8"]
    assert ops(fused(recipe, "production", "rmsnorm+quantise")) == ["rmsnorm", "quantise", "quantise"]
    assert ops(fused(recipe, "production", "rmsnorm+quantise.block")) == ["fused"]
    both = replace(REFERENCE, switches={"one_kernel_for_both_directions": True})
    whole = fuse(norm_and_cast(recipe, both), "ideal", both, amax_fuses=True)
    tables = 2 * ELEMENTS // 32
    # Two copies of one byte and their tables for the two bytes of BF16.
    assert moved(whole) == moved(norm_and_cast(presets()["bf16"])) + tables


def test_kernels_are_named_by_producer_direction_and_family() -> None:
    recipe = presets()["row"]
    graph = norm_and_cast(recipe)
    norm, quantise = graph.nodes[0], next(node for node in graph.nodes if node.op == "quantise")
    assert kernel_name(norm, quantise) == "rmsnorm+quantise.row"
    backward = replace(norm, op="swiglu", params=SwigluParams(backward=True))
    assert kernel_name(backward, quantise) == "swiglu_backward+quantise.row"


@pytest.mark.parametrize("name", list(presets()))
@pytest.mark.parametrize("level", ["none", "production", "ideal"])
def test_fusion_makes_every_tensor_that_is_still_read(name: str, level: str) -> None:
    recipe = presets()[name]
    plain = norm_and_cast(recipe)
    graph = fuse(plain, level, REFERENCE, amax_fuses=True)
    check(graph)
    assert moved(graph) <= moved(plain)
    codes = {name for node in plain.nodes if node.op == "quantise" for name in node.outputs}
    assert codes <= set(graph.tensors)
