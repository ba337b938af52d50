"""Products: dimensions, bytes, what is refused, and values under every kind of scale."""

from __future__ import annotations

import numpy as np
import pytest

from hwmodel.errors import ParameterError
from hwmodel.formats import FORMATS, ScaleLayout
from hwmodel.formats.blocks import spread
from hwmodel.formats.codec import round_to_format
from hwmodel.graph import Gemm, TensorSpec
from hwmodel.ops.gemm import GemmParams, demand, evaluate, infer

F8 = "fp8_e4m3fn"
MX = ScaleLayout(1, 32, "e8m0")
BLOCK = ScaleLayout(1, 128)
SQUARE = ScaleLayout(128, 128)
TENSOR = ScaleLayout(None, None)


def tensor(name: str, shape: tuple[int, ...], number_format: str = "bf16") -> TensorSpec:
    return TensorSpec(name, shape, number_format)


def asked(params: GemmParams, *inputs: TensorSpec) -> Gemm:
    return demand(params, inputs, infer(params, inputs))


def test_each_stored_order_gives_the_same_product() -> None:
    m, n, k = 6, 10, 14
    for turned_a in (False, True):
        for turned_b in (False, True):
            a = tensor("a", (k, m) if turned_a else (m, k))
            b = tensor("b", (n, k) if turned_b else (k, n))
            given = asked(GemmParams(transpose_a=turned_a, transpose_b=turned_b), a, b)
            assert (given.m, given.n, given.k) == (m, n, k)
            assert given.flops == 2 * m * n * k


def test_leading_extents_are_rows() -> None:
    params = GemmParams()
    (out,) = infer(params, (tensor("a", (2, 3, 14)), tensor("b", (14, 10))))
    assert (out.shape, out.format) == ((6, 10), "bf16")


def test_bytes_are_operands_scales_and_output_once() -> None:
    m, n, k = 256, 512, 1024
    params = GemmParams("fp32", transpose_b=True, a_scale=BLOCK, b_scale=SQUARE, accumulates=True)
    tables = tensor("sa", (m, k // 128), "fp32"), tensor("sb", (n // 128, k // 128), "fp32")
    given = asked(params, tensor("a", (m, k), F8), tensor("b", (n, k), F8), *tables, tensor("acc", (m, n), "fp32"))
    assert given.a_scale_bytes == 4 * m * k // 128
    assert given.b_scale_bytes == 4 * n * k // 128**2
    main_grad = 4 * m * n
    assert given.write_bytes == main_grad
    assert given.read_bytes == m * k + n * k + given.a_scale_bytes + given.b_scale_bytes + main_grad


def test_kernel_choices_pass_through() -> None:
    params = GemmParams(native_block_scales=True, promote_every=128, epilogue_scale_vectors=2, kernel="two_groups")
    given = asked(params, tensor("a", (4, 8)), tensor("b", (8, 4)))
    assert (given.native_block_scales, given.promote_every) == (True, 128)
    assert (given.epilogue_scale_vectors, given.kernel) == (2, "two_groups")


@pytest.mark.parametrize(
    ("params", "inputs", "message"),
    [
        (
            GemmParams(),
            (tensor("x", (4, 8)), tensor("w", (7, 16))),
            "inputs: 'x' (4, 8) and 'w' (7, 16) must share the contraction extent "
            "(transpose_a=False, transpose_b=False), got 8 and 7",
        ),
        (GemmParams(), (tensor("x", (4, 8)),), "inputs: op 'gemm' reads 2 tensors, got 1 ('x')"),
        (
            GemmParams(a_scale=MX),
            (tensor("x", (4, 64)), tensor("w", (64, 16)), tensor("s", (4, 3), "e8m0")),
            "inputs: scale table 's' (4, 3) of 'x' (4, 64) must have 4 x 2 entries",
        ),
        (
            GemmParams(accumulates=True),
            (tensor("x", (4, 8)), tensor("w", (8, 16)), tensor("acc", (16, 4))),
            "inputs: 'acc' (16, 4) must have shape (4, 16): it is the accumulator of the product",
        ),
    ],
)
def test_refused_inputs(params: GemmParams, inputs: tuple[TensorSpec, ...], message: str) -> None:
    with pytest.raises(ParameterError) as refused:
        infer(params, inputs)
    assert str(refused.value) == message


def test_refused_params() -> None:
    with pytest.raises(ParameterError, match=r"^promote_every: must be >= 0, got -1$"):
        GemmParams(promote_every=-1)
    with pytest.raises(ParameterError, match=r"^epilogue_scale_vectors: must be 0, 1 or 2, got 3$"):
        GemmParams(epilogue_scale_vectors=3)


@pytest.mark.parametrize("turned_a", [False, True])
@pytest.mark.parametrize("turned_b", [False, True])
@pytest.mark.parametrize(
    "layouts", [(TENSOR, TENSOR), (ScaleLayout(1, None), ScaleLayout(1, None)), (BLOCK, SQUARE), (MX, MX)]
)
def test_values_are_the_product_of_the_scaled_operands(
    layouts: tuple[ScaleLayout, ScaleLayout], turned_a: bool, turned_b: bool, rng: np.random.Generator
) -> None:
    m, n, k = 150, 140, 300
    a, b = (round_to_format(rng.standard_normal(shape), FORMATS.get(F8)) for shape in ((m, k), (n, k)))
    tables = [
        rng.uniform(0.5, 2.0, size=layout.scale_shape(*x.shape)) for layout, x in zip(layouts, (a, b), strict=True)
    ]
    tables = [table.astype(np.float32) for table in tables]
    wide = [x * spread(t, layout, x.shape) for x, t, layout in zip((a, b), tables, layouts, strict=True)]
    expected = wide[0].astype(np.float64) @ wide[1].T.astype(np.float64) + 1.0
    stored = [a.T if turned_a else a, b if turned_b else b.T]
    stored_tables = [tables[0].T if turned_a else tables[0], tables[1] if turned_b else tables[1].T]
    params = GemmParams("fp32", turned_a, turned_b, *layouts, accumulates=True)
    (product,) = evaluate(params, (*stored, *stored_tables, np.ones((m, n), dtype=np.float32)))
    np.testing.assert_allclose(product, expected, rtol=1e-5, atol=1e-4)


def test_a_product_beyond_the_output_format_is_inf() -> None:
    big = np.full((1, 1), 3e38, dtype=np.float32)
    (product,) = evaluate(GemmParams(), (big, big))
    assert product.tolist() == [[np.inf]]
