"""Graphs written by hand: ops in any order, linear layers in the recipe's form, and what is refused by name."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hwmodel.config.recipe import presets
from hwmodel.errors import GraphError, HwModelError, ParameterError, RefusedError
from hwmodel.graph import REFERENCE, Graph, Target
from hwmodel.graph.order import check
from hwmodel.ops.residual_add import ResidualAddParams
from hwmodel.ops.rmsnorm import RmsNormParams
from hwmodel.ops.swiglu import SwigluParams
from hwmodel.recipes.recipe import Recipe, StepKind
from hwmodel.workload import HandGraph
from hwmodel.workload.hand import lower_hand
from hwmodel.workload.workload import OpLine, TensorLine

X = TensorLine("x", (256, 512), "bf16")
W = TensorLine("w", (384, 512), "bf16")
LINEAR = OpLine("linear", ("x", "w"), ("y",), "fc")
BF16 = Recipe()
ADD = ResidualAddParams()


def graph(*ops: OpLine, tensors: tuple[TensorLine, ...] = (X, W)) -> HandGraph:
    return HandGraph("by hand", tensors, ops)


def lowered(hand: HandGraph, preset: str = "bf16", target: Target = REFERENCE, **axes: object) -> Graph:
    recipe = replace(presets()[preset], **axes)  # type: ignore[arg-type]  # axes by name
    made = lower_hand(hand, recipe, target, StepKind())
    check(made)
    return made


def add(first: str, second: str, out: str) -> OpLine:
    return OpLine("residual_add", (first, second), (out,), params=ADD, backward=False)


def refusal(hand: HandGraph, recipe: Recipe = BF16, kind: type[HwModelError] = GraphError) -> str:
    with pytest.raises(kind) as caught:
        lower_hand(hand, recipe, REFERENCE, StepKind())
    return str(caught.value)


# -------------------------------------------------------------------------------------------------------- linear layers


def test_a_linear_layer_is_three_gemms_of_the_right_shapes() -> None:
    made = lowered(graph(LINEAR))
    assert [node.name for node in made.nodes] == ["y.fprop", "x.grad.dgrad", "w.grad.wgrad"]
    shapes = {name: (made.tensors[name].shape, made.tensors[name].format) for name in ("y", "x.grad", "w.grad")}
    assert shapes == {
        "y": ((256, 384), "bf16"),
        "x.grad": ((256, 512), "bf16"),
        "w.grad": ((384, 512), "fp32"),
    }
    assert made.inputs == ("x", "w", "y.grad")


def test_without_its_backward_it_is_one_gemm_and_one_copy_of_each_operand() -> None:
    made = lowered(graph(replace(LINEAR, backward=False)), "mxfp8")
    assert Counter(node.op for node in made.nodes) == {"quantise": 2, "rearrange_scales": 2, "gemm": 1}


def test_layers_that_read_one_tensor_share_its_cast() -> None:
    second = OpLine("linear", ("x", "v"), ("z",), backward=False)
    made = lowered(graph(LINEAR, second, tensors=(X, W, TensorLine("v", (128, 512), "bf16"))), "delayed")
    casts = [node.inputs[0] for node in made.nodes if node.op == "quantise"]
    assert sorted(casts) == ["v", "w", "x", "y.grad"]


def test_layers_in_a_row_hand_their_gradient_down() -> None:
    second = OpLine("linear", ("y", "v"), ("z",))
    made = lowered(graph(LINEAR, second, tensors=(X, W, TensorLine("v", (128, 384), "bf16"))))
    names = [node.name for node in made.nodes]
    assert names == ["y.fprop", "z.fprop", "y.grad.dgrad", "v.grad.wgrad", "x.grad.dgrad", "w.grad.wgrad"]
    assert "y.grad" not in made.inputs
    assert "z.grad" in made.inputs


def test_a_gradient_may_come_from_an_op() -> None:
    swiglu = OpLine("swiglu", ("seed", "y"), ("y.grad",), "act.backward", SwigluParams(backward=True), backward=False)
    made = lowered(graph(swiglu, LINEAR, tensors=(X, W, TensorLine("seed", (256, 192), "bf16"))))
    assert [node.name for node in made.nodes] == ["y.fprop", "act.backward", "x.grad.dgrad", "w.grad.wgrad"]


def test_delayed_scaling_updates_its_state_once_in_each_pass() -> None:
    made = lowered(graph(LINEAR), "delayed")
    updates = [node for node in made.nodes if node.op == "update_scale"]
    assert [(node.name, len(node.inputs) - 1) for node in updates] == [
        ("forward.fp8_e4m3fn.update", 2),
        ("backward.fp8_e5m2.update", 1),
    ]
    assert (
        Counter(node.op for node in lowered(graph(LINEAR), "delayed", interval_steps=None).nodes)["update_scale"] == 0
    )


def test_a_norm_before_the_layer_takes_its_cast_along() -> None:
    norm = OpLine("rmsnorm", ("x", "g"), ("n",), params=RmsNormParams(), backward=False)
    layer = OpLine("linear", ("n", "w"), ("y",))
    hand = graph(layer, norm, tensors=(X, W, TensorLine("g", (512,), "bf16")))
    kernels = Counter(node.op for node in lowered(hand, "delayed", fusion="ideal").nodes)
    assert (kernels["fused"], kernels["rmsnorm"]) == (1, 0)


def test_a_target_without_native_blocks_of_128_breaks_the_k_loop() -> None:
    for preset, every in (("block", 128), ("subchannel", 128), ("mxfp8", 0), ("current", 0), ("row", 0)):
        gemms = [node.params for node in lowered(graph(LINEAR), preset).nodes if node.op == "gemm"]
        assert {gemm.promote_every for gemm in gemms} == {every}, preset


def test_a_shape_that_blocks_do_not_divide_is_refused() -> None:
    hand = graph(
        replace(LINEAR, inputs=("x", "v")),
        tensors=(TensorLine("x", (256, 500), "bf16"), TensorLine("v", (384, 500), "bf16")),
    )
    text = refusal(hand, presets()["mxfp8"], RefusedError)
    assert text.startswith("recipe.granularity: tensor 'x' has 500 columns")


# ---------------------------------------------------------------------------------------------------------------- order


def test_ops_may_stand_in_any_order() -> None:
    ops = (add("x", "x", "a"), add("a", "x", "b"), add("b", "a", "c"))
    forward, backward = lowered(graph(*ops)), lowered(graph(*reversed(ops)))
    assert [node.name for node in forward.nodes] == ["a", "b", "c"]
    assert forward.nodes == backward.nodes


def test_of_ops_that_may_come_next_the_first_written_comes_first() -> None:
    made = lowered(graph(add("x", "x", "later"), add("x", "x", "a"), add("x", "x", "b")))
    assert [node.name for node in made.nodes] == ["later", "a", "b"]


# ------------------------------------------------------------------------------------------------------------- refusals


def test_a_cycle_is_refused_with_its_ops() -> None:
    text = refusal(graph(add("c", "x", "a"), add("a", "x", "b"), add("b", "x", "c")))
    assert text == "graph 'by hand': cycle: 'a' -> 'b' -> 'c' -> 'a'"


def test_a_layer_that_needs_its_own_gradient_is_a_cycle() -> None:
    text = refusal(graph(LINEAR, add("x.grad", "x", "more"), add("more", "y", "y.grad")))
    assert text.startswith("graph 'by hand': cycle: ")
    assert "'fc.backward'" in text


def test_a_tensor_that_nothing_makes_is_refused() -> None:
    text = refusal(graph(add("x", "nothing", "a")))
    assert text == "graph 'by hand': node 'a' reads 'nothing', which no node writes and which is not a graph input"


def test_a_tensor_made_twice_is_refused_with_both_ops() -> None:
    text = refusal(graph(add("x", "x", "a"), replace(add("x", "x", "a"), name="again")))
    assert text == "graph 'by hand': tensor 'a' is written twice, by node 'a' and by node 'again'"


def test_two_layers_cannot_both_give_the_gradient_of_what_they_read() -> None:
    second = OpLine("linear", ("x", "v"), ("z",))
    text = refusal(graph(LINEAR, second, tensors=(X, W, TensorLine("v", (128, 512), "bf16"))))
    assert "tensor 'x.grad' is written twice, by node 'z.backward' and by node 'fc.backward'" in text


def test_two_ops_of_one_name_are_refused() -> None:
    text = refusal(graph(replace(add("x", "x", "a"), name="op"), replace(add("x", "x", "b"), name="op")))
    assert text == "graph 'by hand': two nodes are called 'op'"


def test_what_an_op_refuses_is_named_by_its_place() -> None:
    three = OpLine("residual_add", ("x", "x", "x"), ("a",), params=ADD, backward=False)
    assert refusal(graph(three), kind=ParameterError).startswith("ops.0.inputs: op 'residual_add' reads 2 tensors")
    two = OpLine("residual_add", ("x", "x"), ("a", "b"), params=ADD, backward=False)
    assert refusal(graph(two), kind=ParameterError).startswith("ops.0.outputs: op 'residual_add' gives 1 tensor")
    wrong = OpLine("linear", ("x", "v"), ("y",))
    hand = graph(wrong, tensors=(X, TensorLine("v", (384, 500), "bf16")))
    assert "must share the contraction extent" in refusal(hand, kind=ParameterError)
    assert refusal(hand, kind=ParameterError).startswith("ops.0.inputs: ")
    half = OpLine("linear", ("x",), ("y",))
    assert refusal(graph(half), kind=ParameterError).startswith("ops.0.inputs: op 'linear' reads x and w and gives y")


def test_a_listed_tensor_that_an_op_makes_is_checked() -> None:
    listed = TensorLine("y", (256, 384), "bf16")
    lowered(graph(LINEAR, tensors=(X, W, listed)))
    text = refusal(graph(LINEAR, tensors=(X, W, replace(listed, shape=(384, 256)))), kind=ParameterError)
    assert text == "tensors.y: an op gives it as (256, 384) bf16, got (384, 256) bf16"
    given = TensorLine("y.grad", (256, 384), "bf16")
    assert "y.grad" in lowered(graph(LINEAR, tensors=(X, W, given))).inputs
