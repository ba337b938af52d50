"""The number formats as facts with computed properties. A new ordinary format is one entry here."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.registry import Registry


@dataclass(frozen=True, slots=True)
class FormatSpec:
    """One number format.

    Sources: OCP 8-bit Floating Point v1.0 (E4M3 with finite-only NaN, E5M2); OCP Microscaling v1.0 (E8M0, MX
    elements); HiFloat8, arXiv:2409.16626 (38 binades, largest finite 32768); IEEE 754 (fp32, fp16);
    NVIDIA A100 white paper (tf32: 8 bits of exponent, 10 of mantissa).
    """

    name: str
    bits: int
    max_finite: float
    min_subnormal: float
    mantissa_bits: int
    """Stored mantissa bits; for HiF8 the most it has (its width falls with the exponent)."""
    min_exponent: int
    """Exponent of the smallest normal binade."""
    rounding: str = "rne"
    rate_as: str = ""
    """Format whose matrix rate applies where a device lists none under this name (mxfp8 elements are fp8)."""
    shared_scale_columns: int = 0
    """Block length along the contraction axis of a shared-scale (MX) format; 0 for none."""
    family: str = ""
    """Formats of one family may be the two operands of one matrix product; '' for those of the same name alone.

    Both FP8 formats in any mix, with MX scales on both or on neither: PTX ISA, tcgen05.mma kinds f8f6f4 and mxf8f6f4,
    and wgmma; the cube is modelled alike. No machine known multiplies operands of different widths.
    """

    def __post_init__(self) -> None:
        if self.bits < 1:
            raise ParameterError("bits", f"must be >= 1, got {self.bits}")

    def multiplies(self, other: FormatSpec) -> bool:
        """Whether this format and ``other`` can be the operands of one matrix product."""
        return self.name == other.name or (bool(self.family) and self.family == other.family)

    @property
    def is_eight_bit(self) -> bool:
        """Elements of one byte that need scaling."""
        return self.bits == 8 and self.name != "e8m0"


FORMATS: Registry[FormatSpec] = Registry("format")

for _spec in (
    FormatSpec("fp32", 32, 3.4028234663852886e38, 2.0**-149, 23, -126),
    # Held in 4 bytes, multiplied with the 10 leading bits of its mantissa.
    FormatSpec("tf32", 32, 3.4011621342146535e38, 2.0**-136, 10, -126),
    FormatSpec("bf16", 16, 3.3895313892515355e38, 2.0**-133, 7, -126),
    FormatSpec("fp16", 16, 65504.0, 2.0**-24, 10, -14),
    FormatSpec("fp8_e4m3fn", 8, 448.0, 2.0**-9, 3, -6, family="fp8"),
    FormatSpec("fp8_e5m2", 8, 57344.0, 2.0**-16, 2, -14, family="fp8"),
    FormatSpec("mxfp8_e4m3fn", 8, 448.0, 2.0**-9, 3, -6, rate_as="fp8_e4m3fn", shared_scale_columns=32, family="mxfp8"),
    FormatSpec("mxfp8_e5m2", 8, 57344.0, 2.0**-16, 2, -14, rate_as="fp8_e5m2", shared_scale_columns=32, family="mxfp8"),
    FormatSpec("hif8", 8, 32768.0, 2.0**-22, 3, -15, rounding="ta"),
    FormatSpec("e8m0", 8, 2.0**127, 2.0**-127, 0, -127),
    FormatSpec("int32", 32, 2147483647.0, 1.0, 31, 0),
):
    FORMATS.register(_spec.name, _spec)
