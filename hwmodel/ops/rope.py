"""Rotary position embedding on the query and key columns of a packed qkv."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.graph import Stream
from hwmodel.ops.base import Op, Tensors, instructions, register, shown, take, unnamed


@dataclass(frozen=True, slots=True)
class RopeParams:
    """(qkv) -> qkv with its first ``rotated_columns`` turned; backward turns a gradient the other way."""

    rotated_columns: int
    backward: bool = False

    def __post_init__(self) -> None:
        if self.rotated_columns < 1:
            raise ParameterError("rotated_columns", f"must be >= 1, got {self.rotated_columns}")


def infer(params: RopeParams, inputs: Tensors) -> Tensors:
    """A tensor like the input."""
    take("rope", inputs, 1)
    (x,) = inputs
    if params.rotated_columns > x.columns:
        message = f"must be at most the columns of {shown(x)}, got {params.rotated_columns}"
        raise ParameterError("rotated_columns", message)
    return (unnamed(x.shape, x.format),)


def demand(params: RopeParams, inputs: Tensors, outputs: Tensors) -> Stream:
    """The rotated columns read and written in place; the others are not touched. Sines and cosines stay on chip."""
    (x,) = inputs
    moved = x.rows * params.rotated_columns
    moved_bytes = x.bytes * params.rotated_columns // x.columns
    work = instructions(binary=3 * moved, cast=moved)
    return Stream(read_bytes=moved_bytes, write_bytes=moved_bytes, elements=moved, instructions=work)


register(Op("rope", "elementwise", RopeParams, infer, demand))
