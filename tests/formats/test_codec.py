"""Rounding to representable values: an outside oracle, the standards' worked cases, and every boundary."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.errors import ParameterError
from hwmodel.formats import FORMATS
from hwmodel.formats.codec import Values, round_to_format

ORACLES = {
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "fp8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
    "mxfp8_e4m3fn": ml_dtypes.float8_e4m3fn,
}

# float32 bits and the value they round to without saturation, from the tables of arXiv:2409.16626 (HiFloat8): every
# mantissa width, ties at each kind of boundary, and both ends.
HIF8_VECTORS = [
    (0x40490FDB, 3.25),
    (0x3DCCCCCD, 0.09375),
    (0x3F880000, 1.125),
    (0x40F80000, 8.0),
    (0x41780000, 16.0),
    (0xC3700000, -256.0),
    (0x447A0000, 1024.0),
    (0xBA83126F, -(2.0**-10)),
    (0x37C00000, 2.0**-15),
    (0x34C00000, 2.0**-21),
    (0x34000000, 2.0**-22),
    (0xB3FFFFFF, 0.0),
    (0x47000000, 32768.0),
    (0x471FFFFF, 32768.0),
    (0x47200000, np.inf),
    (0x43500001, 224.0),
    (0x459FFFFF, 4096.0),
    (0x45A00000, 6144.0),
    (0xBE380001, -0.1875),
]


def of_bits(*words: int) -> Values:
    return np.array(words, dtype=np.uint32).view(np.float32)


def hif8_magnitudes() -> list[float]:
    """Every finite magnitude, written out from the table: (exponents, mantissa bits)."""
    widths = dict.fromkeys(range(4), 3) | dict.fromkeys(range(4, 8), 2)
    widths |= dict.fromkeys(range(8, 16), 1)
    normal = [
        2.0**exponent * (1 + step / 2 ** widths[abs(exponent)])
        for exponent in range(-15, 16)
        for step in range(2 ** widths[abs(exponent)])
    ]
    return [0.0, *(2.0**exponent for exponent in range(-22, -15)), *normal[:-1]]


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_minifloats_agree_with_the_oracle_at_every_boundary(name: str, rng: np.random.Generator) -> None:
    oracle = ORACLES[name]
    bits = FORMATS.get(name).bits
    codes = np.arange(2**bits, dtype=f"uint{bits}").view(oracle).astype(np.float32)
    values = np.unique(codes[np.isfinite(codes)])
    midpoints = (values[:-1].astype(np.float64) + values[1:]) / 2
    exact = midpoints.astype(np.float32)
    points = [values, exact, np.nextafter(exact, np.float32(np.inf)), np.nextafter(exact, np.float32(-np.inf))]
    points.append(rng.integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32))
    points.append(np.array([0.0, -0.0, -1e-8, np.inf, -np.inf, np.nan], dtype=np.float32))
    x = np.concatenate(points)
    with np.errstate(all="ignore"):
        expected = x.astype(oracle).astype(np.float32)
    given_back = round_to_format(x, FORMATS.get(name), overflow="inf")
    np.testing.assert_array_equal(given_back, expected)
    np.testing.assert_array_equal(np.signbit(given_back[expected == 0]), np.signbit(expected[expected == 0]))


def test_e8m0_agrees_with_the_oracle_on_positive_values(rng: np.random.Generator) -> None:
    # From 2^-126: ml_dtypes 0.6.0 rounds float32 subnormals up instead of to nearest.
    x = np.exp2(rng.uniform(-126, 127, 5000)).astype(np.float32)
    expected = x.astype(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    np.testing.assert_array_equal(round_to_format(x, FORMATS.get("e8m0"), overflow="inf"), expected)


def test_e8m0_has_no_zero_and_no_sign() -> None:
    np.testing.assert_array_equal(round_to_format(np.zeros(1), FORMATS.get("e8m0")), np.float32(2.0**-127))
    with pytest.raises(ParameterError, match=r"^x: must be >= 0: e8m0 has no sign$"):
        round_to_format(np.array([-1.0]), FORMATS.get("e8m0"))


def test_e4m3_overflows_above_464_in_the_mode_named() -> None:
    x = of_bits(0x43E00000, 0x43E80000, 0x43E80001, 0xC47A0000, 0x7F800000, 0x7FC00000)  # 448 464 464+ -1000 Inf NaN
    e4m3 = FORMATS.get("fp8_e4m3fn")
    np.testing.assert_array_equal(round_to_format(x, e4m3), [448, 448, 448, -448, 448, np.nan])
    free = round_to_format(x, e4m3, overflow="inf")
    np.testing.assert_array_equal(free, [448, 448, np.nan, np.nan, np.nan, np.nan])


def test_e4m3_ties_go_to_even() -> None:
    given_back = round_to_format(np.array([4.25, 4.75, 1.0625, 1.1875]), FORMATS.get("fp8_e4m3fn"))
    assert given_back.tolist() == [4.0, 5.0, 1.0, 1.25]


def test_tiny_negatives_keep_the_sign_of_zero_except_in_hif8() -> None:
    x = np.array([-1e-8, -0.0])
    for name, negative in (("fp8_e4m3fn", True), ("fp8_e5m2", True), ("hif8", False)):
        given_back = round_to_format(x, FORMATS.get(name))
        assert given_back.tolist() == [0.0, 0.0]
        assert np.signbit(given_back).tolist() == [negative, negative]


def test_hif8_ties_go_away_from_zero_and_40960_overflows() -> None:
    hif8 = FORMATS.get("hif8")
    ties = round_to_format(np.array([1.0625, 8.5, 18.0, 144.0, 20480.0]), hif8)
    assert ties.tolist() == [1.125, 9.0, 20.0, 160.0, 24576.0]
    x = np.array([40959.0, 40960.0, 65504.0, np.inf])
    assert round_to_format(x, hif8).tolist() == [32768.0] * 4
    assert round_to_format(x, hif8, overflow="inf").tolist() == [32768.0, np.inf, np.inf, np.inf]


@pytest.mark.parametrize(("word", "value"), HIF8_VECTORS)
def test_hif8_vectors(word: int, value: float) -> None:
    assert round_to_format(of_bits(word), FORMATS.get("hif8"), overflow="inf")[0] == value


def test_hif8_rounds_at_each_midpoint_and_one_step_either_side() -> None:
    hif8 = FORMATS.get("hif8")
    magnitudes = hif8_magnitudes()
    assert len(magnitudes) == 1 + 7 + 7 * 8 + 8 * 4 + 16 * 2 - 1  # zero, denormals, three widths, less the Inf slot
    values = np.array(magnitudes, dtype=np.float32)
    np.testing.assert_array_equal(round_to_format(values, hif8), values)
    midpoints = (values[:-1] + values[1:]) / 2
    np.testing.assert_array_equal(round_to_format(midpoints, hif8), values[1:])
    np.testing.assert_array_equal(round_to_format(np.nextafter(midpoints, np.float32(np.inf)), hif8), values[1:])
    np.testing.assert_array_equal(round_to_format(np.nextafter(midpoints, np.float32(0)), hif8), values[:-1])


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp8_e4m3fn", "fp8_e5m2", "hif8"])
@given(x=st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=20))
def test_rounding_is_monotone_idempotent_and_odd(name: str, x: list[float]) -> None:
    spec = FORMATS.get(name)
    given_back = round_to_format(np.array(sorted(x)), spec)
    assert np.all(np.diff(given_back) >= 0)
    np.testing.assert_array_equal(round_to_format(given_back, spec), given_back)
    np.testing.assert_array_equal(round_to_format(-np.array(sorted(x)), spec), -given_back)


def test_refusals() -> None:
    with pytest.raises(ParameterError, match=r"^overflow: must be one of saturate, inf, got 'wrap'$"):
        round_to_format(np.zeros(1), FORMATS.get("bf16"), overflow="wrap")
    with pytest.raises(ParameterError, match=r"^format: must be a floating-point format, got 'int32'$"):
        round_to_format(np.zeros(1), FORMATS.get("int32"))
