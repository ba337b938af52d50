"""A tensor written with its axes exchanged, such as 8-bit codes for a matrix unit that reads along one axis only."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.graph import Stream
from hwmodel.ops.base import Op, Tensors, bytes_of, register, take, unnamed


@dataclass(frozen=True, slots=True)
class TransposeParams:
    """(x (R, C)) -> (C, R); nothing to choose."""


def infer(params: TransposeParams, inputs: Tensors) -> Tensors:
    """The tensor turned."""
    take("transpose", inputs, 1)
    (x,) = inputs
    return (unnamed((x.columns, x.rows), x.format),)


def demand(params: TransposeParams, inputs: Tensors, outputs: Tensors) -> Stream:
    """Read once, written once (1 and 1 byte per 8-bit element), across the rows."""
    return Stream(bytes_of(inputs), bytes_of(outputs), elements=inputs[0].elements, access="transpose")


register(Op("transpose", "transpose", TransposeParams, infer, demand))
