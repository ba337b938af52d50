"""What every op promises; a new op joins with one example below."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hwmodel.errors import HwModelError, ParameterError
from hwmodel.formats import FORMATS, ScaleLayout
from hwmodel.formats.codec import round_to_format
from hwmodel.graph import INSTRUCTION_CLASSES, Demand, Fused, Graph, Node, Stream, TensorSpec
from hwmodel.ops import KINDS, OPS, Builder, demand_node, infer_node
from hwmodel.ops.amax import AmaxParams
from hwmodel.ops.attention import AttentionParams
from hwmodel.ops.collective import CollectiveParams
from hwmodel.ops.columns import SliceParams
from hwmodel.ops.cross_entropy import CrossEntropyParams
from hwmodel.ops.dequantise import DequantiseParams
from hwmodel.ops.elapsed import ElapsedParams
from hwmodel.ops.embedding import EmbeddingParams
from hwmodel.ops.fused import FusedParams, fused_part
from hwmodel.ops.gemm import GemmParams
from hwmodel.ops.optimizer_step import OptimizerParams
from hwmodel.ops.quantise import QuantiseParams
from hwmodel.ops.rearrange_scales import RearrangeScalesParams
from hwmodel.ops.residual_add import ResidualAddParams
from hwmodel.ops.rmsnorm import RmsNormParams
from hwmodel.ops.rope import RopeParams
from hwmodel.ops.swiglu import SwigluParams
from hwmodel.ops.transpose import TransposeParams
from hwmodel.ops.update_scale import UpdateScaleParams
from hwmodel.ops.views import ConcatParams, SplitParams

if TYPE_CHECKING:
    from hwmodel.ops.base import Op

TENSOR = ScaleLayout(None, None)
ROW = ScaleLayout(1, None)
MX = ScaleLayout(1, 32, "e8m0")
BLOCK = ScaleLayout(1, 128)
SQUARE = ScaleLayout(128, 128)


@dataclass(frozen=True, slots=True)
class Example:
    """A use of an op that must work."""

    op: str
    params: Any
    inputs: tuple[TensorSpec, ...]


def example(op: str, params: Any, *inputs: tuple[tuple[int, ...], str]) -> Example:
    return Example(op, params, tuple(TensorSpec(f"in{i}", *spec) for i, spec in enumerate(inputs)))


def attention(*, backward: bool) -> AttentionParams:
    return AttentionParams(8, 2, 16, 32, queries=64, keys=64, sequences=3, backward=backward)


def norm_and_cast() -> FusedParams:
    x, weight, scale = (TensorSpec(f"in{i}", shape, "bf16") for i, shape in enumerate(((64, 96), (96,), (1,))))
    norm = fused_part("rmsnorm", RmsNormParams(), (x, weight), ("normed",))
    cast = QuantiseParams("hif8", TENSOR, scale_known=True)
    return FusedParams((norm, fused_part("quantise", cast, (*norm.outputs, scale), ("codes",))))


X = ((130, 256), "bf16")
F8 = "fp8_e4m3fn"
TP = CollectiveParams("tp", 4)
EXAMPLES = (
    example("gemm", GemmParams(), ((4, 32, 64), "bf16"), ((64, 48), "bf16")),
    example(
        "gemm",
        GemmParams("fp32", transpose_a=True, a_scale=TENSOR, b_scale=TENSOR, accumulates=True),
        ((64, 32), F8),
        ((64, 48), "fp8_e5m2"),
        ((1,), "fp32"),
        ((1, 1), "fp32"),
        ((32, 48), "fp32"),
    ),
    example(
        "gemm",
        GemmParams(transpose_b=True, a_scale=MX, b_scale=MX, native_block_scales=True),
        ((40, 96), "mxfp8_e4m3fn"),
        ((24, 96), "mxfp8_e4m3fn"),
        ((40, 3), "e8m0"),
        ((24, 3), "e8m0"),
    ),
    example(
        "gemm",
        GemmParams(a_scale=BLOCK, b_scale=SQUARE, promote_every=128),
        ((40, 300), F8),
        ((300, 200), F8),
        ((40, 3), "fp32"),
        ((3, 2), "fp32"),
    ),
    example("attention", attention(backward=False), ((192, 8 * 16 + 2 * 48), "bf16")),
    example("attention", attention(backward=False), ((192, 224), "bf16"), ((192, 96), "bf16")),
    example("attention", attention(backward=True), ((192, 256), "bf16"), ((192, 224), "bf16"), ((192, 256), "bf16")),
    example(
        "attention",
        attention(backward=True),
        ((192, 256), "bf16"),
        ((192, 224), "bf16"),
        ((192, 96), "bf16"),
        ((192, 256), "bf16"),
    ),
    example("rmsnorm", RmsNormParams(), X, ((256,), "bf16")),
    example("rmsnorm", RmsNormParams(backward=True), X, X, ((256,), "bf16")),
    example("rope", RopeParams(192), X),
    example("swiglu", SwigluParams(), X),
    example("swiglu", SwigluParams(backward=True), ((130, 128), "bf16"), X),
    example("residual_add", ResidualAddParams(), X, X),
    example("embedding", EmbeddingParams(1000, 64), ((130,), "int32"), ((1000, 64), "bf16")),
    example("embedding", EmbeddingParams(1000, 64, backward=True), ((130, 64), "bf16"), ((130,), "int32")),
    example("cross_entropy", CrossEntropyParams(), X, ((130,), "int32")),
    example("cross_entropy", CrossEntropyParams(backward=True), X, ((130,), "int32"), ((130,), "fp32")),
    example("quantise", QuantiseParams("hif8", TENSOR, scale_known=True, with_amax=True), X, ((1,), "fp32")),
    example("quantise", QuantiseParams(F8, TENSOR, scale_known=True, transposed_copy=True), X, ((1, 1), "fp32")),
    example("quantise", QuantiseParams(F8, TENSOR, "both", scale_known=True), X, ((1,), "fp32")),
    example("quantise", QuantiseParams(F8, ROW, margin_bits=2), X),
    example("quantise", QuantiseParams(F8, ROW, "column", scale_known=True), X, ((1, 256), "fp32")),
    example("quantise", QuantiseParams(F8, SQUARE, transposed_copy=True), X),
    example("quantise", QuantiseParams(F8, BLOCK, "both", with_amax=True), X),
    example("quantise", QuantiseParams("mxfp8_e4m3fn", MX, "both", scales_in_gemm_order=True), X),
    example("quantise", QuantiseParams("mxfp8_e5m2", MX, "column", scale_rounding="floor"), X),
    example("dequantise", DequantiseParams(MX), ((130, 256), "mxfp8_e4m3fn"), ((130, 8), "e8m0")),
    example("dequantise", DequantiseParams(TENSOR, "fp32"), ((130, 256), "hif8"), ((1,), "fp32")),
    example("amax", AmaxParams(TENSOR, launches=2), X),
    example("amax", AmaxParams(ROW.turned()), X),
    example("amax", AmaxParams(BLOCK), X),
    example("update_scale", UpdateScaleParams("hif8", margin_bits=11, from_current=True), ((1, 256), "fp32")),
    example(
        "update_scale",
        UpdateScaleParams(F8, history_steps=16, history_rule="mean", tensors=3, powers_of_two=True),
        ((1,), "fp32"),
        ((2,), "fp32"),
        ((16, 3), "fp32"),
    ),
    example("transpose", TransposeParams(), ((130, 256), "hif8")),
    example("rearrange_scales", RearrangeScalesParams(), ((130, 8), "e8m0")),
    example("optimizer_step", OptimizerParams(parameters=1000), ((1000,), "fp32")),
    example("all_reduce", replace(TP, reduction="max"), ((1,), "fp32"), ((3,), "fp32")),
    example("all_gather", TP, ((32, 64), F8), ((32, 2), "e8m0")),
    example("reduce_scatter", TP, ((32, 64), "bf16")),
    example("send_recv", TP, ((32, 64), "bf16")),
    example("bubble", ElapsedParams(10**6)),
    example("exposed_traffic", ElapsedParams(10**6, bytes=1024)),
    example("split", SplitParams(axis=1, pieces=4, index=3), X),
    example("concat", ConcatParams(axis=0), X, ((2, 256), "bf16")),
    example("slice", SliceParams(axis=1, start=192, stop=256), X),
    example("overlay", SliceParams(axis=1, start=192, stop=256), X, ((130, 64), "bf16")),
    example("fused", norm_and_cast(), ((64, 96), "bf16"), ((96,), "bf16"), ((1,), "bf16")),
)
NAMES = [f"{each.op}.{place}" for place, each in enumerate(EXAMPLES)]
examples = pytest.mark.parametrize("given", EXAMPLES, ids=NAMES)


def with_outputs(given: Example) -> tuple[Op, tuple[TensorSpec, ...]]:
    op = OPS.get(given.op)
    return op, op.infer(given.params, given.inputs)


def demanded(given: Example) -> Demand:
    op, outputs = with_outputs(given)
    return op.demand(given.params, given.inputs, outputs)


def arrays(specs: tuple[TensorSpec, ...], rng: np.random.Generator) -> tuple[np.ndarray[Any, Any], ...]:
    """Representable values; scales and histories positive."""
    made = []
    for spec in specs:
        values = rng.standard_normal(spec.shape)
        if spec.format == "e8m0":
            values = np.abs(values) + 0.01
        elif spec.format == "fp32" and spec.elements < 1000:
            values = np.abs(values)
        made.append(round_to_format(values, FORMATS.get(spec.format)))
    return tuple(made)


def numbers(record: object) -> list[int]:
    """Every number in a demand, parts included."""
    found: list[int] = []
    assert is_dataclass(record)
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, int) and not isinstance(value, bool):
            found.append(value)
        elif isinstance(value, Stream):
            found += numbers(value)
        elif field.name == "parts":
            found += [number for _, part in value for number in numbers(part)]
        elif field.name == "instructions":
            found += [count for _, count in value]
        else:
            assert isinstance(value, str | bool), f"{field.name} is {type(value).__name__}"
    return found


def test_every_op_has_an_example() -> None:
    assert {each.op for each in EXAMPLES} == set(OPS.names())


@pytest.mark.parametrize("name", OPS.names())
def test_an_op_is_charged_to_a_known_kind(name: str) -> None:
    op = OPS.get(name)
    assert op.name == name
    assert op.kind in KINDS


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^kind: must be one of gemm, .*, bubble, got 'magic'$"):
        replace(OPS.get("gemm"), kind="magic")


@examples
def test_params_are_frozen_hashable_and_picklable_records(given: Example) -> None:
    params = given.params
    assert OPS.get(given.op).params_type.__name__ == type(params).__name__
    assert pickle.loads(pickle.dumps(params)) == params
    assert hash(params) == hash(replace(params))
    assert not hasattr(params, "__dict__"), "no slots"
    with pytest.raises((FrozenInstanceError, TypeError)):
        params.anything = 1


@examples
def test_infer_is_pure_and_leaves_naming_to_the_graph(given: Example) -> None:
    op, outputs = with_outputs(given)
    assert outputs == op.infer(given.params, given.inputs)
    assert all(spec.name == "" for spec in outputs) or given.op == "fused"


@examples
def test_demand_is_exact_and_not_negative(given: Example) -> None:
    asked = demanded(given)
    assert asked == demanded(given)
    counted = [*numbers(asked), asked.bytes, asked.flops]
    assert all(type(number) is int and number >= 0 for number in counted)


@examples
def test_vector_work_uses_known_instruction_classes(given: Example) -> None:
    asked = demanded(given)
    streams = [asked] if isinstance(asked, Stream) else [p for _, p in asked.parts] if isinstance(asked, Fused) else []
    for stream in streams:
        assert [name for name, _ in stream.instructions] == [
            name for name in INSTRUCTION_CLASSES if name in dict(stream.instructions)
        ]
        assert stream.access in ("contiguous", "transpose", "latency")


@pytest.mark.parametrize(
    "given",
    [each for each in EXAMPLES if OPS.get(each.op).evaluate],
    ids=[name for name, each in zip(NAMES, EXAMPLES, strict=True) if OPS.get(each.op).evaluate],
)
def test_evaluate_gives_what_infer_says(given: Example, rng: np.random.Generator) -> None:
    op, outputs = with_outputs(given)
    assert op.evaluate is not None
    inputs = arrays(given.inputs, rng)
    before = [array.copy() for array in inputs]
    results = op.evaluate(given.params, inputs)
    assert [array.shape for array in results] == [spec.shape for spec in outputs]
    for array, spec in zip(results, outputs, strict=True):
        assert array.dtype == np.float32
        np.testing.assert_array_equal(round_to_format(array, FORMATS.get(spec.format)), array)
    for array, kept in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(array, kept)


@examples
def test_a_wrong_number_of_inputs_is_refused_by_field(given: Example) -> None:
    many = (TensorSpec("more", (7, 5), "bf16"),) * 9
    if given.op in ("optimizer_step", "all_reduce", "all_gather", "send_recv"):
        return  # any number will do
    with pytest.raises(ParameterError) as refused:
        OPS.get(given.op).infer(given.params, (*given.inputs, *many))
    assert refused.value.field in ("inputs", "axis")


@examples
def test_a_node_in_a_graph_infers_and_demands_as_its_op_does(given: Example) -> None:
    op, outputs = with_outputs(given)
    builder = Builder("g")
    for spec in given.inputs:
        builder.input(spec.name, spec.shape, spec.format)
    names = [spec.name or f"out{place}" for place, spec in enumerate(outputs)]
    assert builder.add(given.op, given.params, [spec.name for spec in given.inputs], names, name="n") == tuple(names)
    graph = builder.graph()
    (node,) = graph.nodes
    assert infer_node(node, graph) == graph.specs(node.outputs)
    assert demand_node(node, graph) == op.demand(given.params, given.inputs, graph.specs(node.outputs))


def test_params_of_another_op_are_refused_by_node() -> None:
    graph = Graph("g", {"x": TensorSpec("x", (2, 2), "bf16")}, (), ("x",))
    node = Node("n", "rope", TransposeParams(), ("x",), ("y",))
    with pytest.raises(HwModelError, match=r"^n\.params: op 'rope' takes RopeParams, got TransposeParams$"):
        infer_node(node, graph)
