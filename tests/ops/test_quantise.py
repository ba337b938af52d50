"""Quantise kernels: bytes per element of each recipe, what one pass cannot do, and values at every granularity."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hwmodel.errors import ParameterError
from hwmodel.formats import FORMATS, ScaleLayout
from hwmodel.graph import Demand, TensorSpec
from hwmodel.ops import OPS
from hwmodel.ops.amax import AmaxParams
from hwmodel.ops.dequantise import DequantiseParams
from hwmodel.ops.quantise import QuantiseParams
from hwmodel.ops.transpose import TransposeParams
from hwmodel.ops.update_scale import UpdateScaleParams

R, C = 4096, 8192
F8 = "fp8_e4m3fn"
X = TensorSpec("x", (R, C), "bf16")
ONE = TensorSpec("scale", (1,), "fp32")
TENSOR = ScaleLayout(None, None)
ROW = ScaleLayout(1, None)
BLOCK = ScaleLayout(1, 128)
SQUARE = ScaleLayout(128, 128)
MX = ScaleLayout(1, 32, "e8m0")
MX_SQUARE = ScaleLayout(32, 32, "e8m0")

READ, WRITE = 2, 1  # bytes per element of a BF16 source and of a copy in 8 bits


def asked(op: str, params: object, *inputs: TensorSpec) -> Demand:
    found = OPS.get(op)
    return found.demand(params, inputs, found.infer(params, inputs))


def per_element(*demands: Demand) -> Fraction:
    """Bytes per element of x."""
    return Fraction(sum(demand.bytes for demand in demands), X.elements)


def scale_bytes(layout: ScaleLayout) -> Fraction:
    return Fraction(layout.scale_bytes(R, C), X.elements)


TINY = Fraction(1, 1000)  # a handful of scales of a whole tensor


def test_delayed_costs_3_bytes_and_its_amax_none() -> None:
    cast = asked("quantise", QuantiseParams(F8, TENSOR, scale_known=True), X, ONE)
    with_amax = asked("quantise", QuantiseParams(F8, TENSOR, scale_known=True, with_amax=True), X, ONE)
    assert cast.bytes == (READ + WRITE) * R * C + ONE.bytes
    assert with_amax.bytes == cast.bytes + 4


def test_delayed_where_the_matrix_unit_reads_one_direction_costs_4_bytes() -> None:
    params = QuantiseParams(F8, TENSOR, scale_known=True, transposed_copy=True)
    assert asked("quantise", params, X, ONE).bytes == (READ + 2 * WRITE) * R * C + ONE.bytes
    turned = asked("transpose", TransposeParams(), TensorSpec("codes", (R, C), F8))
    assert turned.bytes == 2 * R * C


def test_current_costs_5_bytes() -> None:
    amax = asked("amax", AmaxParams(TENSOR), X)
    scale = asked("update_scale", UpdateScaleParams(F8, from_current=True), TensorSpec("amax", (1, 1), "fp32"))
    cast = asked("quantise", QuantiseParams(F8, TENSOR, scale_known=True), X, ONE)
    assert READ + READ + WRITE <= per_element(amax, scale, cast) < READ + READ + WRITE + TINY


def test_rows_cost_3_bytes_and_columns_need_their_amax_first() -> None:
    row = asked("quantise", QuantiseParams(F8, ROW), X)
    assert per_element(row) == READ + WRITE + scale_bytes(ROW)
    amax = asked("amax", AmaxParams(ROW.turned()), X)
    table = TensorSpec("scale", (1, C), "fp32")
    column = asked("quantise", QuantiseParams(F8, ROW, "column", scale_known=True), X, table)
    assert per_element(amax, column) == READ + READ + WRITE + 2 * scale_bytes(ROW.turned())


@pytest.mark.parametrize("layout", [BLOCK, MX])
def test_one_kernel_for_both_directions_costs_4_06_bytes(layout: ScaleLayout) -> None:
    both = asked("quantise", QuantiseParams(F8, layout, "both"), X)
    assert per_element(both) == READ + 2 * WRITE + 2 * scale_bytes(layout)
    assert float(per_element(both)) == 4.0625


@pytest.mark.parametrize("layout", [BLOCK, MX])
def test_two_kernels_cost_6_06_bytes(layout: ScaleLayout) -> None:
    two = [asked("quantise", QuantiseParams(F8, layout, direction), X) for direction in ("row", "column")]
    assert per_element(*two) == 2 * (READ + WRITE + scale_bytes(layout))
    assert float(per_element(*two)) == 6.0625


def test_square_blocks_serve_both_directions_from_one_copy() -> None:
    assert per_element(asked("quantise", QuantiseParams(F8, SQUARE), X)) == READ + WRITE + scale_bytes(SQUARE)
    assert per_element(asked("quantise", QuantiseParams(F8, MX_SQUARE), X)) == READ + WRITE + Fraction(1, 32 * 32)


def test_access_is_transpose_once_a_copy_runs_across_rows() -> None:
    for params, access in (
        (QuantiseParams(F8, MX), "contiguous"),
        (QuantiseParams(F8, MX, "column"), "transpose"),
        (QuantiseParams(F8, MX, "both"), "transpose"),
        (QuantiseParams(F8, SQUARE, transposed_copy=True), "transpose"),
    ):
        assert getattr(asked("quantise", params, X), "access") == access  # noqa: B009 - one member of a union


def test_vector_work_counts_each_amax_and_each_set_of_codes() -> None:
    n = R * C
    for params, inputs, work in (
        (QuantiseParams(F8, TENSOR, scale_known=True), (X, ONE), {"simple": n, "cast": n}),
        (
            QuantiseParams(F8, TENSOR, scale_known=True, with_amax=True, transposed_copy=True),
            (X, ONE),
            {"simple": 2 * n, "binary": n, "cast": n},
        ),
        (QuantiseParams(F8, MX), (X,), {"simple": n, "binary": n, "cast": n, "divide": n // 32, "reduce": n}),
        (
            QuantiseParams(F8, MX, "both"),
            (X,),
            {"simple": n, "binary": 3 * n, "cast": 2 * n, "divide": 2 * n // 32, "reduce": n},
        ),
    ):
        assert dict(getattr(asked("quantise", params, *inputs), "instructions")) == work  # noqa: B009 - as above


def test_amax_reduces_across_cores_where_a_block_spans_all_rows() -> None:
    for layout, across in ((TENSOR, True), (ROW.turned(), True), (ROW, False), (MX, False)):
        assert getattr(asked("amax", AmaxParams(layout), X), "reduces_across_cores") is across  # noqa: B009 - as above


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"directions": "rows"}, "directions: must be one of row, column, both, got 'rows'"),
        ({"margin_bits": -1}, "margin_bits: must be >= 0, got -1"),
        ({"scale_rounding": "up"}, "scale_rounding: must be one of round_up, floor, got 'up'"),
        (
            {"transposed_copy": True},
            "transposed_copy: needs directions 'row' and a block that is square or the whole tensor: only such codes "
            "transpose",
        ),
        (
            {"directions": "both", "scale_known": True},
            "directions: one known scale table serves 'both' only where the block is square or the whole tensor",
        ),
        (
            {"layout": TENSOR},
            "scale_known: must be true where a block spans all rows of x: its amax is only known once x has been read, "
            "so give an encode_scale",
        ),
        (
            {"layout": ROW, "directions": "both"},
            "scale_known: must be true where a block spans all rows of x: its amax is only known once x has been read, "
            "so give an encode_scale",
        ),
    ],
)
def test_what_one_pass_cannot_do_is_refused(keywords: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = {"format": F8, "layout": BLOCK} | keywords
    with pytest.raises(ParameterError) as refused:
        QuantiseParams(**settings)
    assert str(refused.value) == message


def test_a_scale_table_of_the_wrong_size_is_refused() -> None:
    params = QuantiseParams(F8, ROW, "column", scale_known=True)
    with pytest.raises(ParameterError) as refused:
        asked("quantise", params, X, ONE)
    assert str(refused.value) == "inputs: encode_scale 'scale' (1,) of 'x' (4096, 8192) must have 1 x 8192 entries"


def test_update_scale_refusals() -> None:
    for keywords, message in (
        ({"history_rule": "least"}, "history_rule: must be one of max, latest, mean, got 'least'"),
        ({"history_steps": -1}, "history_steps: must be >= 0, got -1"),
        ({"tensors": 0}, "tensors: must be >= 1, got 0"),
        (
            {"from_current": True, "history_steps": 4},
            "history_steps: must be 0 for the scale of a tensor's own amax, got 4",
        ),
    ):
        with pytest.raises(ParameterError) as refused:
            UpdateScaleParams(F8, **dict[str, Any](keywords))
        assert str(refused.value) == message
    with pytest.raises(ParameterError, match=r"^inputs: must hold 3 amaxes, one for each of tensors=3, got 1$"):
        asked("update_scale", UpdateScaleParams(F8, tensors=3), ONE)
    with pytest.raises(
        ParameterError, match=r"^inputs: 'scale' \(1,\) must have shape \(4, 1\): \(history_steps, amaxes"
    ):
        asked("update_scale", UpdateScaleParams(F8, history_steps=4), ONE, ONE)


# --------------------------------------------------------------------------------------------------------- arithmetic


def run(op: str, params: object, *arrays: object) -> tuple[np.ndarray[Any, np.dtype[np.float32]], ...]:
    evaluate = OPS.get(op).evaluate
    assert evaluate is not None
    return evaluate(params, tuple(np.asarray(array, dtype=np.float32) for array in arrays))


@pytest.mark.parametrize("number_format", [F8, "fp8_e5m2", "hif8"])
@pytest.mark.parametrize("layout", [ROW, BLOCK, SQUARE, MX])
def test_dequantised_values_are_near_and_a_zero_row_stays_zero(
    layout: ScaleLayout, number_format: str, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((150, 300)).astype(np.float32)
    x[7] = 0.0
    margin = 11 if number_format == "hif8" and layout.scale_format == "fp32" else 0
    codes, table = run("quantise", QuantiseParams(number_format, layout, margin_bits=margin), x)
    (back,) = run("dequantise", DequantiseParams(layout, "fp32"), codes, table)
    assert np.all(back[7] == 0)
    # Half a last place of a normal value: 2 mantissa bits give 1/8, HiF8 near the top of its range 1/4.
    step = {F8: 2.0**-4, "fp8_e5m2": 2.0**-3, "hif8": 2.0**-2}[number_format]
    large = np.abs(x) > 0.01
    assert np.all(np.abs(back - x)[large] <= step * np.abs(x)[large] * (1 + 1e-6))


def test_a_zero_row_does_not_change_other_rows(rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 64)).astype(np.float32)
    zeroed = x.copy()
    zeroed[1] = 0.0
    for layout in (ROW, MX):
        before, after = (run("quantise", QuantiseParams(F8, layout), each)[0] for each in (x, zeroed))
        np.testing.assert_array_equal(np.delete(before, 1, axis=0), np.delete(after, 1, axis=0))
        assert np.all(after[1] == 0)


def test_the_column_copy_is_the_row_copy_of_the_transposed_tensor(rng: np.random.Generator) -> None:
    x = rng.standard_normal((150, 300)).astype(np.float32)
    row, column, row_table, column_table = run("quantise", QuantiseParams(F8, MX, "both"), x)
    np.testing.assert_array_equal(row, run("quantise", QuantiseParams(F8, MX), x)[0])
    turned, turned_table = run("quantise", QuantiseParams(F8, MX), x.T)
    np.testing.assert_array_equal(column, turned)
    np.testing.assert_array_equal(column_table, turned_table)
    assert row_table.shape == (150, 10)


def test_known_column_scales_give_what_one_pass_over_the_transposed_tensor_gives(rng: np.random.Generator) -> None:
    x = rng.standard_normal((40, 70)).astype(np.float32)
    (amax,) = run("amax", AmaxParams(ROW.turned()), x)
    encode, decode = run("update_scale", UpdateScaleParams(F8, from_current=True), amax)
    (column,) = run("quantise", QuantiseParams(F8, ROW, "column", scale_known=True), x, encode)
    expected, table = run("quantise", QuantiseParams(F8, ROW), x.T)
    np.testing.assert_array_equal(column, expected)
    np.testing.assert_array_equal(decode.reshape(-1), table.reshape(-1))


def test_one_kernel_gives_codes_transposed_codes_and_amax(rng: np.random.Generator) -> None:
    x = rng.standard_normal((6, 10)).astype(np.float32)
    params = QuantiseParams(F8, TENSOR, scale_known=True, transposed_copy=True, with_amax=True)
    codes, turned, amax = run("quantise", params, x, [100.0])
    np.testing.assert_array_equal(turned, codes.T)
    assert amax.tolist() == [np.abs(x).max()]


def test_a_stale_scale_saturates() -> None:
    for number_format in (F8, "hif8"):
        codes, amax = run(
            "quantise", QuantiseParams(number_format, TENSOR, scale_known=True, with_amax=True), [[1e30, -1.0]], [1e30]
        )
        assert codes[0, 0] == FORMATS.get(number_format).max_finite
        assert amax[0] == np.float32(1e30)


def test_a_history_takes_this_step_first_and_drops_the_oldest() -> None:
    params = UpdateScaleParams(F8, history_steps=3, tensors=2)
    history = [[4.0, 1.0], [8.0, 2.0], [16.0, 32.0]]
    encode, decode, new = run("update_scale", params, [2.0], [0.5], history)
    assert new.tolist() == [[2.0, 0.5], [4.0, 1.0], [8.0, 2.0]]
    assert encode.tolist() == [448 / 8, 448 / 2]
    np.testing.assert_array_equal(decode, np.float32(1) / encode)


def test_delayed_scaling_agrees_with_a_plain_loop(rng: np.random.Generator) -> None:
    steps = [rng.standard_normal((8, 16)).astype(np.float32) * 2**step for step in range(6)]
    for rule, length in (("max", 3), ("latest", 3), ("mean", 2), ("max", 1)):
        params = UpdateScaleParams("hif8", margin_bits=11, history_steps=length, history_rule=rule)
        history: np.ndarray[Any, np.dtype[np.float32]] = np.zeros((length, 1), dtype=np.float32)
        seen: list[float] = []
        for x in steps:
            (amax,) = run("amax", AmaxParams(TENSOR), x)
            encode, _, history = run("update_scale", params, amax, history)
            seen = [float(np.abs(x).max()), *seen][:length]
            estimate = {"max": max(seen), "latest": seen[0], "mean": sum(seen) / len(seen)}[rule]
            np.testing.assert_allclose(encode, 16.0 / estimate, rtol=1e-6)
