"""What a device with a software set can do, in the words lowering needs: facts in, no rate and no time out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.device.device import PROMOTIONS
from hwmodel.errors import ParameterError, suggestion
from hwmodel.graph.target import NativeScaling, Target

if TYPE_CHECKING:
    from hwmodel.device.device import Device
    from hwmodel.device.software import Software


def target(device: Device, software: Software) -> Target:
    """Formats, layouts and block scales of ``device``; kernels, fusions and overlaps of ``software``.

    Raises:
        ParameterError: ``software`` names a GEMM kernel that ``device`` does not have.
    """
    known = (*PROMOTIONS, *device.gemm_variants)
    for name, kernel in software.kernels.items():
        if kernel not in known:
            message = f"device {device.name!r} has no GEMM kernel {kernel!r}{suggestion(kernel, known)}"
            raise ParameterError(f"software.kernels.{name}", message)
    return Target(
        name=f"{device.name}/{software.name}",
        matrix_formats=device.matrix_formats,
        any_operand_layout=device.any_operand_layout,
        native_scaling=tuple(NativeScaling(columns, scale_format) for columns, scale_format in device.native_scaling),
        fused_kernels=software.fused,
        switches={**software.switches, **software.counts, **software.kernels},
        overlaps=software.overlaps,
    )
