"""Scale arithmetic: from the largest magnitude (amax) to the scale that maps it to the top of a format.

What unusual amaxes give:

=============  ============================  ===================================================
amax           `encode_scale`                `shared_decode_scale` (E8M0)
=============  ============================  ===================================================
0              1.0                           2^-127, the least: an all-zero block stays zero
subnormal      the largest finite fp32, if   2^-127, or the 2^-126 that its mantissa asks for
               the quotient overflows
Inf            1.0                           2^127, the greatest
NaN            1.0                           NaN: the block is NaN, and no other
=============  ============================  ===================================================

An encode_scale of 1.0 leaves an empty or broken block as it is: zeros stay zeros, Inf and NaN show. A scale is never
Inf and never zero. Sources: NVIDIA Transformer Engine, ``compute_scale_from_amax`` (0, Inf and NaN give 1, overflow
the largest fp32, powers of two by clearing the mantissa); OCP Microscaling v1.0 section 6.3 (floor); arXiv:2506.08027
section 3 (round-up; the subnormal threshold and Inf as in Transformer Engine's E8M0 conversion).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hwmodel.errors import ParameterError
from hwmodel.formats.catalogue import FORMATS, FormatSpec
from hwmodel.formats.rules import HISTORY_RULES, SCALE_ROUNDINGS

if TYPE_CHECKING:
    from hwmodel.formats.layout import ScaleLayout

Array = np.ndarray[Any, np.dtype[Any]]

_FP32 = FORMATS.get("fp32")
_SMALLEST_NORMAL = 2.0**-126
_E8M0_BIAS = 127
_E8M0_TOP = 254


def encode_scale(amax: Array, spec: FormatSpec, *, margin_bits: int = 0, powers_of_two: bool = False) -> Array:
    """Scale that brings ``amax`` to the top of ``spec``, less ``margin_bits`` powers of two.

    Zero, Inf and NaN amax give 1.0; a quotient beyond fp32 gives the largest finite fp32. ``powers_of_two`` rounds the
    scale down, so the scaled amax never passes the top.

    Args:
        amax: largest magnitudes.
        spec: target format.
        margin_bits: powers of two left free above amax.

    Shapes:
        result: as amax, float32

    Units:
        Result multiplies real values before encoding.

    Raises:
        ParameterError: ``margin_bits`` is negative.
    """
    top = _top(spec, margin_bits)
    largest = np.asarray(amax, dtype=np.float64)
    usable = np.isfinite(largest) & (largest > 0)
    quotient = top / np.where(usable, largest, 1.0)
    scale = np.where(usable, np.clip(quotient, _SMALLEST_NORMAL, _FP32.max_finite), 1.0).astype(np.float32)
    if powers_of_two:
        _, exponent = np.frexp(scale)
        scale = np.ldexp(np.float32(1.0), exponent - 1)
    return np.asarray(scale, dtype=np.float32)


def decode_scale(scale: Array) -> Array:
    """The float32 reciprocal of an encode_scale.

    Units:
        Result multiplies decoded values.
    """
    return np.asarray(np.float32(1.0) / np.asarray(scale, dtype=np.float32))


def shared_decode_scale(amax: Array, spec: FormatSpec, *, rounding: str = "round_up", margin_bits: int = 0) -> Array:
    """The E8M0 decode_scale of blocks with these maxima, as float32 values (2^-127 to 2^127, NaN).

    ``round_up``: the least power of two at or above float32(amax / max_finite), so nothing saturates. ``floor``:
    2^(floor(log2 amax) - floor(log2 max_finite)), which can clip the top of a block.

    Raises:
        ParameterError: an unknown ``rounding``, or negative ``margin_bits``.
    """
    if rounding not in SCALE_ROUNDINGS:
        raise ParameterError("scale_rounding", f"must be one of {', '.join(SCALE_ROUNDINGS)}, got {rounding!r}")
    largest = np.asarray(amax, dtype=np.float32)
    finite = np.where(np.isfinite(largest), largest, np.float32(1.0))
    top = _top(spec, margin_bits)
    biased = _round_up(finite, top) if rounding == "round_up" else _floor(finite, top)
    biased = np.where(np.isinf(largest), _E8M0_TOP, biased)
    scale = np.ldexp(np.float32(1.0), biased - _E8M0_BIAS)
    return np.where(np.isnan(largest), np.float32(np.nan), scale).astype(np.float32)


def block_scales(
    amax: Array, spec: FormatSpec, layout: ScaleLayout, *, rounding: str = "round_up", margin_bits: int = 0
) -> tuple[Array, Array]:
    """(encode_scale, decode_scale) of blocks with these maxima, in the layout's scale format."""
    if layout.scale_format == "e8m0":
        decode = shared_decode_scale(amax, spec, rounding=rounding, margin_bits=margin_bits)
        return decode_scale(decode), decode
    encode = encode_scale(amax, spec, margin_bits=margin_bits, powers_of_two=layout.powers_of_two)
    return encode, decode_scale(encode)


def history_amax(history: Array, rule: str) -> Array:
    """One amax for each tensor from a history, latest first; entries of 0 were never written and do not count.

    Shapes:
        history: (history_steps, tensors) -> result: (tensors,)

    Raises:
        ParameterError: an unknown ``rule``.
    """
    if rule not in HISTORY_RULES:
        raise ParameterError("history_rule", f"must be one of {', '.join(HISTORY_RULES)}, got {rule!r}")
    if rule == "max":
        return np.asarray(history.max(axis=0))
    if rule == "latest":
        return np.asarray(history[0])
    written = np.maximum((history != 0).sum(axis=0), 1)
    return np.asarray(history.sum(axis=0) / written, dtype=np.float32)


def _top(spec: FormatSpec, margin_bits: int) -> float:
    """Where amax is put."""
    if margin_bits < 0:
        raise ParameterError("margin_bits", f"must be >= 0, got {margin_bits}")
    return math.ldexp(spec.max_finite, -margin_bits)


def _round_up(amax: Array, top: float) -> Array:
    """Biased exponent of amax / top in float32, one more if its mantissa is not zero."""
    with np.errstate(over="ignore"):
        bits = (amax / np.float32(top)).astype(np.float32).view(np.uint32)
    exponent = (bits >> np.uint32(23)).astype(np.int32)
    mantissa = bits & np.uint32(0x7FFFFF)
    normal = np.minimum(exponent + (mantissa > 0), _E8M0_TOP)
    return np.where(exponent == 0, (mantissa > 0x400000).astype(np.int32), normal)


def _floor(amax: Array, top: float) -> Array:
    """Biased exponent of amax less the exponent of ``top``, within E8M0."""
    _, exponent = np.frexp(amax)
    shifted = exponent - math.frexp(top)[1] + _E8M0_BIAS
    return np.where(amax == 0, 0, np.clip(shifted, 0, _E8M0_TOP))
