"""Scale, round and saturate into an 8-bit format, for one or both contraction directions."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.formats import FORMATS, ScaleLayout
from hwmodel.formats.rules import SCALE_ROUNDINGS
from hwmodel.graph import Stream, TensorSpec
from hwmodel.ops.base import Arrays, Op, Tensors, bytes_of, instructions, register, shown, take, unnamed

DIRECTIONS = ("row", "column", "both")


@dataclass(frozen=True, slots=True)
class QuantiseParams:
    """x (R, C), or (x, encode_scale) where the scale is known before x is read.

    Outputs, in this order: the copy with its last axis along C (R, C), if row or both; the copy along R, stored
    (C, R), if column or both; the transposed second copy (C, R) of the same codes; then, if the scale is not known, a
    decode_scale table for each copy written; then the amax of x (1,), fp32. ``layout`` counts rows and columns of the
    copy that is written, whose last axis is its contraction axis; an encode_scale table is laid out like x.
    """

    format: str
    layout: ScaleLayout
    directions: str = "row"
    scale_known: bool = False
    with_amax: bool = False
    """Also gives the largest magnitude of x, found in the same pass."""
    transposed_copy: bool = False
    """Also writes the row copy's codes transposed, for a matrix unit that reads only along the contraction axis."""
    margin_bits: int = 0
    scales_in_gemm_order: bool = False
    """Scales come in the order the matrix unit reads; costs nothing here and saves a rearrange_scales."""
    scale_rounding: str = "round_up"
    """Rule of an E8M0 shared scale."""

    def __post_init__(self) -> None:
        FORMATS.get(self.format)
        if self.directions not in DIRECTIONS:
            raise ParameterError("directions", f"must be one of {', '.join(DIRECTIONS)}, got {self.directions!r}")
        if self.scale_rounding not in SCALE_ROUNDINGS:
            rule = f"must be one of {', '.join(SCALE_ROUNDINGS)}, got {self.scale_rounding!r}"
            raise ParameterError("scale_rounding", rule)
        if self.margin_bits < 0:
            raise ParameterError("margin_bits", f"must be >= 0, got {self.margin_bits}")
        same_codes = self.layout.serves_both_directions
        if self.transposed_copy and (self.directions != "row" or not same_codes):
            message = "needs directions 'row' and a block that is square or the whole tensor: only such codes transpose"
            raise ParameterError("transposed_copy", message)
        if self.scale_known and self.directions == "both" and not same_codes:
            message = "one known scale table serves 'both' only where the block is square or the whole tensor"
            raise ParameterError("directions", message)
        if not self.scale_known and any(layout.rows is None for layout in self.layouts_of_x()):
            message = (
                "must be true where a block spans all rows of x: its amax is only known once x has been read, so "
                "give an encode_scale"
            )
            raise ParameterError("scale_known", message)

    @property
    def has_row(self) -> bool:
        """A copy along x's last axis is written."""
        return self.directions != "column"

    @property
    def has_column(self) -> bool:
        """A copy along x's rows is written."""
        return self.directions != "row"

    @property
    def copies_turned(self) -> tuple[bool, ...]:
        """For each copy, in order of outputs, whether it is stored transposed."""
        return (False,) * self.has_row + (True,) * self.has_column + (True,) * self.transposed_copy

    def layouts_of_x(self) -> tuple[ScaleLayout, ...]:
        """The blocks in terms of x, for each set of codes."""
        return (self.layout,) * self.has_row + (self.layout.turned(),) * self.has_column


def infer(params: QuantiseParams, inputs: Tensors) -> Tensors:
    """Codes, decode_scale tables and amax, as asked for."""
    take("quantise", inputs, 2 if params.scale_known else 1)
    x = inputs[0]
    if params.scale_known:
        needed = params.layouts_of_x()[0].scale_shape(x.rows, x.columns)
        if inputs[1].elements != needed[0] * needed[1]:
            message = f"encode_scale {shown(inputs[1])} of {shown(x)} must have {needed[0]} x {needed[1]} entries"
            raise ParameterError("inputs", message)
    shapes = [(x.columns, x.rows) if turned else (x.rows, x.columns) for turned in params.copies_turned]
    results: list[TensorSpec] = [unnamed(shape, params.format) for shape in shapes]
    if not params.scale_known:
        results += [unnamed(params.layout.scale_shape(*shape), params.layout.scale_format) for shape in shapes]
    if params.with_amax:
        results.append(unnamed((1,), "fp32"))
    return tuple(results)


def demand(params: QuantiseParams, inputs: Tensors, outputs: Tensors) -> Stream:
    """Bytes of x once, of each copy and table once: 2 read, 1 written for each copy, per 16-bit element.

    Access is 'transpose' as soon as one copy is stored across x's rows, else 'contiguous'. Per element: abs and max
    for each amax found here; multiply and cast for each set of codes (a transposed copy repeats codes). Per scale: a
    division.
    """
    n = inputs[0].elements
    sets = 1 if params.layout.serves_both_directions else len(params.layouts_of_x())
    # A maximum along the row is a reduction; down the rows, and over the whole tensor, it is a running maximum.
    row_amax = not params.scale_known and params.has_row
    column_amax = not params.scale_known and params.has_column and (sets > 1 or not params.has_row)
    maxima = row_amax + column_amax + params.with_amax
    by_scalar = params.layout.per_tensor
    scales = 0 if params.scale_known else sets * params.layout.scale_count(inputs[0].rows, inputs[0].columns)
    work = instructions(
        simple=(n if maxima else 0) + (sets * n if by_scalar else 0),
        binary=n * (column_amax + params.with_amax) + (0 if by_scalar else sets * n),
        reduce=n * row_amax,
        cast=sets * n,
        divide=scales,
    )
    return Stream(
        read_bytes=bytes_of(inputs),
        write_bytes=bytes_of(outputs),
        elements=n,
        instructions=work,
        access="transpose" if any(params.copies_turned) else "contiguous",
        reduces_across_cores=params.with_amax,
    )


def evaluate(params: QuantiseParams, arrays: Arrays) -> Arrays:
    """Decoded values of the codes (saturating), decode_scale tables and amax."""
    from hwmodel.formats import blocks, codec, scales  # noqa: PLC0415 - timing never pays for numpy

    spec = FORMATS.get(params.format)
    x = blocks.flat(arrays[0])
    data, tables = [], []
    for turned in params.copies_turned:
        source = x.T if turned else x
        if params.scale_known:
            spread = blocks.spread(arrays[1], params.layouts_of_x()[0], x.shape)
            factors = spread.T if turned else spread
        else:
            amax = blocks.block_amax(source, params.layout)
            encode, decode = scales.block_scales(
                amax, spec, params.layout, rounding=params.scale_rounding, margin_bits=params.margin_bits
            )
            factors = blocks.spread(encode, params.layout, source.shape)
            tables.append(decode)
        data.append(codec.round_to_format(blocks.scaled(source, factors), spec))
    amaxes = [blocks.block_amax(x, ScaleLayout(None, None)).reshape(1)] if params.with_amax else []
    return (*data, *tables, *amaxes)


register(Op("quantise", "quantise", QuantiseParams, infer, demand, evaluate))
