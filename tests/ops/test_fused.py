"""Fused kernels: the parts' bytes less what stays on chip."""

from __future__ import annotations

import pytest

from hwmodel.errors import ParameterError
from hwmodel.formats import ScaleLayout
from hwmodel.graph import Fused, TensorSpec
from hwmodel.ops.amax import AmaxParams
from hwmodel.ops.fused import FusedParams, demand, fused_part, infer
from hwmodel.ops.gemm import GemmParams
from hwmodel.ops.quantise import QuantiseParams
from hwmodel.ops.residual_add import ResidualAddParams
from hwmodel.ops.rmsnorm import RmsNormParams

T, H = 128, 512
N = T * H
TENSOR = ScaleLayout(None, None)
X = TensorSpec("x", (T, H), "bf16")
Y = TensorSpec("y", (T, H), "bf16")
WEIGHT = TensorSpec("weight", (H,), "bf16")
SCALE = TensorSpec("scale", (1,), "fp32")

NORM = fused_part("rmsnorm", RmsNormParams(), (X, WEIGHT), ("normed",))
CAST = fused_part("quantise", QuantiseParams("hif8", TENSOR, scale_known=True), (*NORM.outputs, SCALE), ("codes",))
AMAX = fused_part("amax", AmaxParams(TENSOR), NORM.outputs, ("amax",))


def asked(params: FusedParams) -> Fused:
    inputs = params.external_inputs()
    return demand(params, inputs, infer(params, inputs))


def test_norm_and_cast_write_one_byte_less_than_the_norm() -> None:
    given = asked(FusedParams((NORM, CAST)))
    assert given.whole.read_bytes == 2 * N + WEIGHT.bytes + SCALE.bytes
    assert given.whole.write_bytes == 1 * N
    assert [kind for kind, _ in given.parts] == ["elementwise", "quantise"]
    assert [part.bytes for _, part in given.parts] == [4 * N + WEIGHT.bytes, 3 * N + SCALE.bytes]
    assert given.whole.launches == 1


def test_an_amax_behind_a_norm_adds_no_traffic() -> None:
    params = FusedParams((NORM, AMAX), keeps=("normed",))
    given = asked(params)
    assert [spec.name for spec in params.external_outputs()] == ["normed", "amax"]
    assert given.whole.bytes == 4 * N + WEIGHT.bytes + 4
    assert given.whole.reduces_across_cores


def test_a_tensor_several_parts_read_is_read_once() -> None:
    add = fused_part("residual_add", ResidualAddParams(), (X, Y), ("sum",))
    norm = fused_part("rmsnorm", RmsNormParams(), (*add.outputs, WEIGHT), ("normed",))
    again = fused_part("residual_add", ResidualAddParams(), (*norm.outputs, X), ("out",))
    given = asked(FusedParams((add, norm, again), keeps=("sum",)))
    assert given.whole.read_bytes == 4 * N + WEIGHT.bytes
    assert given.whole.write_bytes == 4 * N


def test_instructions_add_up_and_transposing_parts_decide_the_access() -> None:
    both = QuantiseParams("mxfp8_e4m3fn", ScaleLayout(1, 32, "e8m0"), "both")
    cast = fused_part("quantise", both, NORM.outputs, ("row", "column", "row_scale", "column_scale"))
    given = asked(FusedParams((NORM, cast)))
    assert given.whole.access == "transpose"
    parts = [dict(part.instructions) for _, part in given.parts]
    assert dict(given.whole.instructions)["cast"] == sum(part["cast"] for part in parts)
    assert given.whole.elements == N


def test_the_outputs_of_the_node_decide_what_is_written() -> None:
    params = FusedParams((NORM, CAST))
    written = (*NORM.outputs, *CAST.outputs)
    assert demand(params, params.external_inputs(), written).whole.write_bytes == 3 * N
    with pytest.raises(ParameterError, match=r"^outputs: no part writes 'other'$"):
        demand(params, params.external_inputs(), (TensorSpec("other", (1,), "bf16"),))


def test_refusals() -> None:
    with pytest.raises(ParameterError, match=r"^parts: must hold at least one kernel$"):
        FusedParams(())
    with pytest.raises(ParameterError, match=r"^keeps: no part writes 'z'$"):
        FusedParams((NORM,), keeps=("z",))
    product = fused_part("gemm", GemmParams(transpose_b=True), (X, Y), ("product",))
    with pytest.raises(
        ParameterError, match=r"^parts: only vector and memory kernels fuse, got 'gemm', which is gemm$"
    ):
        infer(FusedParams((product,)), (X, Y))
    with pytest.raises(
        ParameterError, match=r"^inputs: must be 'x' \(128, 512\), 'weight' \(512,\), got 'x' \(128, 512\)$"
    ):
        infer(FusedParams((NORM,)), (X,))
