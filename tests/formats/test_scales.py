"""From amax to scale: the ordinary case, every unusual amax, and both E8M0 rules."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hwmodel.errors import ParameterError
from hwmodel.formats import FORMATS, ScaleLayout
from hwmodel.formats.codec import Values, round_to_format
from hwmodel.formats.scales import (
    block_scales,
    decode_scale,
    encode_scale,
    history_amax,
    shared_decode_scale,
)

E4M3 = FORMATS.get("fp8_e4m3fn")
E5M2 = FORMATS.get("fp8_e5m2")
HIF8 = FORMATS.get("hif8")
FP32_MAX = float(np.finfo(np.float32).max)


def array(*values: float) -> Values:
    return np.array(values, dtype=np.float32)


def test_amax_goes_to_the_top_less_the_margin() -> None:
    assert encode_scale(array(8.0), E4M3).tolist() == [56.0]
    assert encode_scale(array(8.0), E4M3, margin_bits=3).tolist() == [7.0]
    assert encode_scale(array(1.0), HIF8, margin_bits=11).tolist() == [16.0]  # amax lands on 16
    assert decode_scale(array(56.0)).tolist() == [np.float32(1) / np.float32(56)]


def test_zero_inf_and_nan_amax_leave_the_data_as_it_is() -> None:
    assert encode_scale(array(0.0, np.inf, np.nan), E4M3).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("spec", "amax"), [(E4M3, 1.3166e-36), (E5M2, 1.6852e-34), (HIF8, 9.6297e-35)])
def test_a_scale_is_never_inf(spec: object, amax: float) -> None:
    assert isinstance(spec, type(E4M3))
    assert encode_scale(array(amax * 0.999, 1e-45), spec).tolist() == [FP32_MAX, FP32_MAX]
    assert encode_scale(array(amax * 1.001), spec)[0] < FP32_MAX
    assert np.all(np.isfinite(decode_scale(encode_scale(array(1e-45, 3e38), spec, margin_bits=60))))


def test_a_tiny_amax_does_not_fill_the_range() -> None:
    scale = encode_scale(array(2e-38), E4M3)
    assert scale.tolist() == [FP32_MAX]
    assert round_to_format(array(2e-38) * scale, E4M3).tolist() == [7.0]


def test_powers_of_two_round_the_encode_scale_down() -> None:
    amax = array(8.0, 7.0, 1.0, 1e-45)
    given_back = encode_scale(amax, E4M3, powers_of_two=True)
    assert given_back.tolist() == [32.0, 64.0, 256.0, 2.0**127]
    assert np.all(amax * given_back <= E4M3.max_finite)


def test_e8m0_rules_on_a_block_of_960() -> None:
    floor = shared_decode_scale(array(960.0), E4M3, rounding="floor")
    up = shared_decode_scale(array(960.0), E4M3, rounding="round_up")
    assert (floor.tolist(), up.tolist()) == ([2.0 ** (128 - 127)], [2.0 ** (129 - 127)])
    block = array(957.0, 960.0, 902.4)
    assert (round_to_format(block / floor, E4M3) * floor).tolist() == [896.0, 896.0, 896.0]
    assert (round_to_format(block / up, E4M3) * up).tolist() == [960.0, 960.0, 896.0]


@pytest.mark.parametrize("spec", [E4M3, E5M2])
def test_round_up_is_the_least_power_of_two_that_never_saturates(spec: object) -> None:
    assert isinstance(spec, type(E4M3))
    starts = np.exp2(np.arange(-100, 120, dtype=np.float64)) * spec.max_finite / 256
    near = array(*(start for start in starts if start < FP32_MAX))
    for amax in (near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(0))):
        scale = shared_decode_scale(amax, spec)
        for one, given_back in zip(amax, scale, strict=True):
            exact = Fraction(float(np.float32(one) / np.float32(spec.max_finite)))
            assert Fraction(float(given_back)) >= exact > Fraction(float(given_back)) / 2


@pytest.mark.parametrize("rounding", ["round_up", "floor"])
def test_e8m0_of_unusual_maxima(rounding: str) -> None:
    given_back = shared_decode_scale(array(0.0, 1e-45, np.inf, FP32_MAX, np.nan), E4M3, rounding=rounding)
    assert given_back[:3].tolist() == [2.0**-127, 2.0**-127, 2.0**127]
    assert given_back[3] == 2.0 ** (127 - 8 + (rounding == "round_up"))
    assert math.isnan(given_back[4])


def test_round_up_of_a_subnormal_quotient_looks_at_its_top_bit() -> None:
    below, above = 2.0**-127, float(np.nextafter(np.float32(2.0**-127), np.float32(1)))
    assert shared_decode_scale(array(below * 448, above * 448), E4M3).tolist() == [2.0**-127, 2.0**-126]


def test_block_scales_follow_the_layout() -> None:
    encode, decode = block_scales(array(960.0), E4M3, ScaleLayout(1, 32, "e8m0"))
    assert (encode.tolist(), decode.tolist()) == ([0.25], [4.0])
    encode, decode = block_scales(array(8.0), E4M3, ScaleLayout(1, 128, powers_of_two=True))
    assert (encode.tolist(), decode.tolist()) == ([32.0], [1 / 32])


def test_history_rules() -> None:
    history = np.array([[1.0, 3.0], [5.0, 2.0], [0.0, 0.0]], dtype=np.float32)  # latest first; one not yet written
    assert history_amax(history, "max").tolist() == [5.0, 3.0]
    assert history_amax(history, "latest").tolist() == [1.0, 3.0]
    assert history_amax(history, "mean").tolist() == [3.0, 2.5]
    assert history_amax(np.zeros((3, 1), dtype=np.float32), "mean").tolist() == [0.0]


def test_refusals() -> None:
    with pytest.raises(ParameterError, match=r"^margin_bits: must be >= 0, got -1$"):
        encode_scale(array(1.0), E4M3, margin_bits=-1)
    with pytest.raises(ParameterError, match=r"^scale_rounding: must be one of round_up, floor, got 'down'$"):
        shared_decode_scale(array(1.0), E4M3, rounding="down")
    with pytest.raises(ParameterError, match=r"^history_rule: must be one of max, latest, mean, got 'least'$"):
        history_amax(np.zeros((1, 1)), "least")
