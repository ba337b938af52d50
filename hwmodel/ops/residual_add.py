"""Sum of two tensors: the residual connection, and the joining of two gradients."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.graph import Stream
from hwmodel.ops.base import Op, Tensors, bytes_of, instructions, register, require_shape, take, unnamed


@dataclass(frozen=True, slots=True)
class ResidualAddParams:
    """(a, b) -> a + b; nothing to choose."""


def infer(params: ResidualAddParams, inputs: Tensors) -> Tensors:
    """A tensor like a."""
    take("residual_add", inputs, 2)
    a, b = inputs
    require_shape(b, a.shape, f"it is added to {a.name!r}")
    return (unnamed(a.shape, a.format),)


def demand(params: ResidualAddParams, inputs: Tensors, outputs: Tensors) -> Stream:
    """4 bytes read and 2 written per 16-bit element, one addition."""
    n = outputs[0].elements
    work = instructions(binary=n, cast=n)
    return Stream(read_bytes=bytes_of(inputs), write_bytes=bytes_of(outputs), elements=n, instructions=work)


register(Op("residual_add", "elementwise", ResidualAddParams, infer, demand))
