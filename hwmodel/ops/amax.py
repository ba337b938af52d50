"""Largest magnitudes as a pass of their own."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.formats import ScaleLayout
from hwmodel.graph import Stream
from hwmodel.ops.base import Arrays, Op, Tensors, bytes_of, instructions, register, take, unnamed


@dataclass(frozen=True, slots=True)
class AmaxParams:
    """(x) -> fp32 table (row blocks, column blocks) of x."""

    layout: ScaleLayout
    launches: int = 1
    """Kernels it takes (2 where the result is cleared by a kernel of its own first)."""

    def __post_init__(self) -> None:
        if self.launches < 1:
            raise ParameterError("launches", f"must be >= 1, got {self.launches}")


def infer(params: AmaxParams, inputs: Tensors) -> Tensors:
    """The table of maxima."""
    take("amax", inputs, 1)
    (x,) = inputs
    return (unnamed(params.layout.scale_shape(x.rows, x.columns), "fp32"),)


def demand(params: AmaxParams, inputs: Tensors, outputs: Tensors) -> Stream:
    """Bytes of x once; abs and a running maximum per element. Cores join their results where a block spans all rows."""
    n = inputs[0].elements
    return Stream(
        read_bytes=bytes_of(inputs),
        write_bytes=bytes_of(outputs),
        elements=n,
        instructions=instructions(simple=n, binary=n),
        reduces_across_cores=params.layout.rows is None,
        launches=params.launches,
    )


def evaluate(params: AmaxParams, arrays: Arrays) -> Arrays:
    """The table; NaN where a block holds one."""
    from hwmodel.formats import blocks  # noqa: PLC0415 - timing never pays for numpy

    return (blocks.block_amax(blocks.flat(arrays[0]), params.layout),)


register(Op("amax", "amax", AmaxParams, infer, demand, evaluate))
