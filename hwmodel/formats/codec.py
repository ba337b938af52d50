"""Rounding to the values of a number format, on arrays. Results are float32 values, not codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hwmodel.errors import ParameterError
from hwmodel.formats.rules import OVERFLOWS

if TYPE_CHECKING:
    from hwmodel.formats.catalogue import FormatSpec

Floats = np.ndarray[Any, np.dtype[np.float32]]
Values = np.ndarray[Any, np.dtype[Any]]

_WITHOUT_INF = frozenset({"fp8_e4m3fn", "mxfp8_e4m3fn", "e8m0"})
"""Overflow gives NaN where there is no Inf (OCP 8-bit Floating Point v1.0, section 5; OCP Microscaling v1.0)."""


def round_to_format(x: Values, spec: FormatSpec, *, overflow: str = "saturate") -> Floats:
    """The representable value for each element.

    A magnitude that rounds to more than ``max_finite``, and Inf, give ``max_finite`` with ``saturate``, Inf with
    ``inf`` (NaN in a format without Inf). NaN stays NaN. The sign of zero is kept where the format has one: HiF8 and
    E8M0 have not. E8M0 has no zero either: 0 gives its smallest value.

    Minifloats round to nearest, ties to even; HiF8 ties away from zero, with a mantissa whose width falls with the
    exponent: 3 bits for |E| <= 3, 2 up to 7, 1 up to 15, and bare powers of two from 2^-16 to 2^-22
    (arXiv:2409.16626, table 2).

    Args:
        x: any real values; float64 is rounded once, without a stop at float32.
        spec: a floating-point format.
        overflow: ``saturate`` or ``inf``.

    Raises:
        ParameterError: an unknown ``overflow``, an integer format, or a negative value for E8M0.
    """
    if overflow not in OVERFLOWS:
        raise ParameterError("overflow", f"must be one of {', '.join(OVERFLOWS)}, got {overflow!r}")
    if spec.name.startswith("int"):
        raise ParameterError("format", f"must be a floating-point format, got {spec.name!r}")
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        exact = np.asarray(x, dtype=np.float64)
    magnitude = np.abs(exact)
    if spec.name == "e8m0":
        if np.any(exact < 0):
            raise ParameterError("x", "must be >= 0: e8m0 has no sign")
        magnitude = np.maximum(magnitude, spec.min_subnormal)
    finite = np.isfinite(exact)
    usable = np.where(finite, magnitude, 1.0)
    exponent = np.frexp(usable)[1] - 1
    rounded = _hif8(usable, exponent) if spec.name == "hif8" else _minifloat(usable, exponent, spec)
    rounded = np.where(finite, rounded, magnitude)
    too_big = spec.max_finite if overflow == "saturate" else (np.nan if spec.name in _WITHOUT_INF else np.inf)
    rounded = np.where(rounded > spec.max_finite, too_big, rounded)
    signed = np.copysign(rounded, exact)
    if spec.name == "hif8":
        signed = signed + 0.0  # -0.0 + 0.0 is 0.0
    return signed.astype(np.float32)


def _minifloat(magnitude: Values, exponent: Values, spec: FormatSpec) -> Values:
    """Nearest multiple of the binade's last place, ties to even."""
    place = np.maximum(exponent, spec.min_exponent) - spec.mantissa_bits
    return np.asarray(np.ldexp(np.rint(np.ldexp(magnitude, -place)), place))


def _hif8(magnitude: Values, exponent: Values) -> Values:
    """Nearest multiple of the binade's last place, ties away; the place depends on the exponent."""
    size = np.abs(exponent)
    width = np.select([size <= 3, size <= 7, size <= 15], [3, 2, 1], 0)
    place = np.maximum(exponent, -22) - width
    steps = np.ldexp(magnitude, -place)
    whole = np.floor(steps)
    return np.asarray(np.ldexp(whole + (steps - whole >= 0.5), place))
