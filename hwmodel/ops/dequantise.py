"""Decoded codes times their scales, in a wider format."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.formats import FORMATS, ScaleLayout
from hwmodel.graph import Stream
from hwmodel.ops.base import Arrays, Op, Tensors, bytes_of, instructions, register, shown, take, unnamed


@dataclass(frozen=True, slots=True)
class DequantiseParams:
    """(codes (R, C), decode_scale) -> (R, C); ``layout`` counts rows and columns of the codes as stored."""

    layout: ScaleLayout
    format_out: str = "bf16"

    def __post_init__(self) -> None:
        FORMATS.get(self.format_out)


def infer(params: DequantiseParams, inputs: Tensors) -> Tensors:
    """A tensor like the codes in the wider format."""
    take("dequantise", inputs, 2)
    data, table = inputs
    needed = params.layout.scale_shape(data.rows, data.columns)
    if table.elements != needed[0] * needed[1]:
        message = f"decode_scale {shown(table)} of {shown(data)} must have {needed[0]} x {needed[1]} entries"
        raise ParameterError("inputs", message)
    return (unnamed(data.shape, params.format_out),)


def demand(params: DequantiseParams, inputs: Tensors, outputs: Tensors) -> Stream:
    """1 byte read and 2 written per element of an 8-bit tensor, and the scales; multiply and cast."""
    n = inputs[0].elements
    product = "simple" if params.layout.per_tensor else "binary"
    work = instructions(**{product: n, "cast": n})
    return Stream(read_bytes=bytes_of(inputs), write_bytes=bytes_of(outputs), elements=n, instructions=work)


def evaluate(params: DequantiseParams, arrays: Arrays) -> Arrays:
    """The product, rounded to the wider format."""
    from hwmodel.formats import blocks, codec  # noqa: PLC0415 - timing never pays for numpy

    data = blocks.flat(arrays[0])
    product = blocks.scaled(data, blocks.spread(arrays[1], params.layout, data.shape))
    rounded = codec.round_to_format(product, FORMATS.get(params.format_out), overflow="inf")
    return (rounded.reshape(arrays[0].shape),)


register(Op("dequantise", "quantise", DequantiseParams, infer, demand, evaluate))
