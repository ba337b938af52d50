"""Root-mean-square norm over the last axis."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.graph import Stream
from hwmodel.ops.base import (
    Op,
    Tensors,
    bytes_of,
    instructions,
    register,
    require_shape,
    take,
    unnamed,
)


@dataclass(frozen=True, slots=True)
class RmsNormParams:
    """Forward (x, weight) -> y. Backward (grad_y, x, weight) -> grad_x, without the residual branch's gradient."""

    backward: bool = False


def infer(params: RmsNormParams, inputs: Tensors) -> Tensors:
    """A tensor like x."""
    take("rmsnorm", inputs, 3 if params.backward else 2)
    *data, weight = inputs
    x = data[-1]
    require_shape(weight, (x.columns,), f"one weight for each column of {x.name!r}")
    if params.backward:
        require_shape(data[0], x.shape, f"it is the gradient for {x.name!r}")
    return (unnamed(x.shape, x.format),)


def demand(params: RmsNormParams, inputs: Tensors, outputs: Tensors) -> Stream:
    """Every input and output once: 2 read 2 written forward, 4 read 2 written backward, per 16-bit element.

    Forward per element: square, sum, times the row's factor, times weight. Backward: the row's factor again (square,
    sum), grad x weight, its product with x and sum, and grad_x as the difference of two scaled terms.
    """
    x = inputs[-2]
    n = x.elements
    if params.backward:
        work = instructions(binary=4 * n, simple=3 * n, reduce=2 * n, cast=n, rsqrt=x.rows)
    else:
        work = instructions(binary=2 * n, simple=n, reduce=n, cast=n, rsqrt=x.rows)
    return Stream(read_bytes=bytes_of(inputs), write_bytes=bytes_of(outputs), elements=n, instructions=work)


register(Op("rmsnorm", "elementwise", RmsNormParams, infer, demand))
