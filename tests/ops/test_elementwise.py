"""Bytes per element of the work that BF16 does too."""

from __future__ import annotations

import pytest

from hwmodel.errors import ParameterError
from hwmodel.graph import Stream, TensorSpec
from hwmodel.ops import OPS
from hwmodel.ops.cross_entropy import CrossEntropyParams
from hwmodel.ops.embedding import EmbeddingParams
from hwmodel.ops.optimizer_step import OptimizerParams
from hwmodel.ops.residual_add import ResidualAddParams
from hwmodel.ops.rmsnorm import RmsNormParams
from hwmodel.ops.rope import RopeParams
from hwmodel.ops.swiglu import SwigluParams

T, H = 128, 512
X = TensorSpec("x", (T, H), "bf16")
WEIGHT = TensorSpec("weight", (H,), "bf16")


def asked(op: str, params: object, *inputs: TensorSpec) -> Stream:
    found = OPS.get(op)
    given = found.demand(params, inputs, found.infer(params, inputs))
    assert isinstance(given, Stream)
    return given


def test_rmsnorm_reads_2_and_writes_2_forward_and_4_and_2_backward() -> None:
    n = T * H
    forward = asked("rmsnorm", RmsNormParams(), X, WEIGHT)
    assert (forward.read_bytes, forward.write_bytes) == (2 * n + WEIGHT.bytes, 2 * n)
    backward = asked("rmsnorm", RmsNormParams(backward=True), X, X, WEIGHT)
    assert (backward.read_bytes, backward.write_bytes) == (4 * n + WEIGHT.bytes, 2 * n)
    assert dict(forward.instructions)["rsqrt"] == T


def test_residual_add_reads_4_and_writes_2() -> None:
    given = asked("residual_add", ResidualAddParams(), X, X)
    assert (given.read_bytes, given.write_bytes) == (4 * T * H, 2 * T * H)


def test_rope_moves_only_the_rotated_columns() -> None:
    rotated = 320
    given = asked("rope", RopeParams(rotated), X)
    assert (given.read_bytes, given.write_bytes, given.elements) == (2 * T * rotated, 2 * T * rotated, T * rotated)


def test_swiglu_reads_4_and_writes_2_forward_and_6_and_4_backward() -> None:
    f = H // 2
    forward = asked("swiglu", SwigluParams(), X)
    assert (forward.read_bytes, forward.write_bytes) == (4 * T * f, 2 * T * f)
    backward = asked("swiglu", SwigluParams(backward=True), TensorSpec("g", (T, f), "bf16"), X)
    assert (backward.read_bytes, backward.write_bytes) == (6 * T * f, 4 * T * f)


def test_a_lookup_costs_the_rows_it_touches_and_no_flops() -> None:
    vocabulary = 10_000
    tokens, table = TensorSpec("tokens", (T,), "int32"), TensorSpec("table", (vocabulary, H), "bf16")
    forward = asked("embedding", EmbeddingParams(vocabulary, H), tokens, table)
    assert (forward.read_bytes, forward.write_bytes, forward.flops) == (4 * T + 2 * T * H, 2 * T * H, 0)
    backward = asked("embedding", EmbeddingParams(vocabulary, H, backward=True), X, tokens)
    assert (backward.read_bytes, backward.write_bytes) == (2 * T * H + 4 * T + 4 * T * H, 4 * T * H)


def test_cross_entropy_passes_once_over_the_logits_each_way() -> None:
    targets = TensorSpec("targets", (T,), "int32")
    forward = asked("cross_entropy", CrossEntropyParams(), X, targets)
    assert (forward.read_bytes, forward.write_bytes) == (2 * T * H + 4 * T, 4 * T)
    backward = asked("cross_entropy", CrossEntropyParams(backward=True), X, targets)
    assert (backward.read_bytes, backward.write_bytes) == (2 * T * H + 4 * T, 2 * T * H)


def test_the_optimiser_moves_gradients_master_copy_moments_and_parameters() -> None:
    count, master, moments, gradient, parameter = 1000, 4, 8, 4, 2
    given = asked("optimizer_step", OptimizerParams(parameters=count))
    assert given.read_bytes == count * (gradient + master + moments)
    assert given.write_bytes == count * (master + moments + parameter)


@pytest.mark.parametrize(
    ("op", "params", "inputs", "message"),
    [
        (
            "rmsnorm",
            RmsNormParams(),
            (X, TensorSpec("w", (4,), "bf16")),
            "inputs: 'w' (4,) must have shape (512,): one weight for each column of 'x'",
        ),
        ("rope", RopeParams(513), (X,), "rotated_columns: must be at most the columns of 'x' (128, 512), got 513"),
        (
            "swiglu",
            SwigluParams(),
            (TensorSpec("x", (2, 3), "bf16"),),
            "inputs: 'x' (2, 3) must have an even number of columns: gate and up",
        ),
        (
            "embedding",
            EmbeddingParams(8, 4),
            (TensorSpec("t", (3,), "int32"), TensorSpec("table", (8, 5), "bf16")),
            "inputs: 'table' (8, 5) must have shape (8, 4): (vocabulary, hidden)",
        ),
        (
            "cross_entropy",
            CrossEntropyParams(),
            (X, WEIGHT),
            "inputs: 'weight' (512,) must have one element for each row of 'x' (128, 512)",
        ),
    ],
)
def test_refused_inputs(op: str, params: object, inputs: tuple[TensorSpec, ...], message: str) -> None:
    with pytest.raises(ParameterError) as refused:
        OPS.get(op).infer(params, inputs)
    assert str(refused.value) == message


def test_refused_params() -> None:
    with pytest.raises(ParameterError, match=r"^rotated_columns: must be >= 1, got 0$"):
        RopeParams(0)
    with pytest.raises(ParameterError, match=r"^vocabulary: must be >= 1, got 0$"):
        EmbeddingParams(0, 1)
    with pytest.raises(ParameterError, match=r"^kind: must be one of adam, got 'sgd'$"):
        OptimizerParams(parameters=1, kind="sgd")
    with pytest.raises(ParameterError, match=r"^parameters: must be >= 1, got 0$"):
        OptimizerParams(parameters=0)
    with pytest.raises(ParameterError, match=r"^parameter_bytes: must be 1, 2 or 4, got 3$"):
        OptimizerParams(parameters=1, parameter_bytes=3)
