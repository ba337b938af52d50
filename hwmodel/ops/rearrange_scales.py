"""A scale table brought into the order in which a matrix unit reads it."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.graph import Stream
from hwmodel.ops.base import Op, Tensors, bytes_of, register, take, unnamed


@dataclass(frozen=True, slots=True)
class RearrangeScalesParams:
    """(table) -> the same entries in another order; nothing to choose."""


def infer(params: RearrangeScalesParams, inputs: Tensors) -> Tensors:
    """A table like the input."""
    take("rearrange_scales", inputs, 1)
    (table,) = inputs
    return (unnamed(table.shape, table.format),)


def demand(params: RearrangeScalesParams, inputs: Tensors, outputs: Tensors) -> Stream:
    """Few bytes in tiny scattered accesses, so latency decides."""
    return Stream(bytes_of(inputs), bytes_of(outputs), elements=inputs[0].elements, access="latency")


register(Op("rearrange_scales", "scale", RearrangeScalesParams, infer, demand))
