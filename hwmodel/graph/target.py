"""What a device with its software can do, in the words lowering needs; holds no rate and no time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NativeScaling:
    """A block scale the matrix unit applies by itself along the contraction axis."""

    columns: int
    """Block length along the contraction axis."""
    scale_format: str


@dataclass(frozen=True, slots=True)
class Target:
    """Layouts, formats, block scales, fused kernels and overlap that a device with a software set offers."""

    name: str
    matrix_formats: frozenset[str]
    """Formats the matrix unit multiplies at a rate of its own."""
    any_operand_layout: bool = True
    """8-bit GEMM operands may be read transposed; otherwise both must be contiguous along k."""
    native_scaling: tuple[NativeScaling, ...] = ()
    fused_kernels: frozenset[str] = frozenset()
    """'rmsnorm+quantise', 'swiglu+amax', ...: producer op, what is fused behind it, and for block scales the layout
    family ('rmsnorm+quantise.block')."""
    switches: Mapping[str, bool | int | str] = field(default_factory=dict)
    """Booleans, counts and kernel names of the software set."""
    overlaps: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Named collective -> payload families ('plain', 'block_scaled') whose transfer may run beside compute."""

    def scales_natively(self, columns: int | None, scale_format: str) -> bool:
        """The matrix unit applies a scale that changes every ``columns`` elements of the contraction axis."""
        return any(native.columns == columns and native.scale_format == scale_format for native in self.native_scaling)

    def overlap(self, collective: str, payload: str) -> bool:
        """Whether the transfer named ``collective`` may run beside compute for this payload family."""
        return payload in self.overlaps.get(collective, frozenset())

    def switch(self, name: str) -> bool:
        """A boolean switch; absent is off."""
        return bool(self.switches.get(name, False))

    def count(self, name: str, default: int) -> int:
        """A count of the software set."""
        return int(self.switches.get(name, default))

    def kernel(self, name: str) -> str:
        """A kernel name of the software set, '' where it names none."""
        return str(self.switches.get(name, ""))


REFERENCE = Target(
    name="reference",
    matrix_formats=frozenset(("fp32", "bf16", "fp16", "fp8_e4m3fn", "fp8_e5m2", "mxfp8_e4m3fn", "mxfp8_e5m2", "hif8")),
    native_scaling=(NativeScaling(32, "e8m0"),),
)
"""Accepts everything and fuses nothing: for evaluation without a device."""
