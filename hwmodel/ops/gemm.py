"""Matrix product, with block or vector scales where operands have 8 bits."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.formats import FORMATS, ScaleLayout
from hwmodel.graph import Gemm, TensorSpec
from hwmodel.ops.base import Arrays, Op, Tensors, register, require_shape, shown, take, unnamed


@dataclass(frozen=True, slots=True)
class GemmParams:
    """(M, K) x (K, N) -> (M, N). Leading extents of an operand are flattened into its rows.

    Inputs: a, b, then the decode_scale table of a and of b where they have one, then the accumulator.
    A table is laid out like its operand as stored: (row blocks, column blocks) of that tensor.
    """

    out_format: str = "bf16"
    transpose_a: bool = False
    """a is stored (K, M)."""
    transpose_b: bool = False
    """b is stored (N, K)."""
    a_scale: ScaleLayout | None = None
    """Blocks of a seen with K as its last axis; None for an operand without scales."""
    b_scale: ScaleLayout | None = None
    """Blocks of b seen with K as its last axis."""
    accumulates: bool = False
    """Adds to an (M, N) tensor already in device memory, the last input."""
    native_block_scales: bool = False
    promote_every: int = 0
    epilogue_scale_vectors: int = 0
    kernel: str = ""

    def __post_init__(self) -> None:
        FORMATS.get(self.out_format)
        if self.promote_every < 0:
            raise ParameterError("promote_every", f"must be >= 0, got {self.promote_every}")
        if not 0 <= self.epilogue_scale_vectors <= 2:
            raise ParameterError("epilogue_scale_vectors", f"must be 0, 1 or 2, got {self.epilogue_scale_vectors}")

    @property
    def input_count(self) -> int:
        """Tensors the node reads."""
        return 2 + (self.a_scale is not None) + (self.b_scale is not None) + self.accumulates

    def stored_layouts(self) -> tuple[ScaleLayout | None, ScaleLayout | None]:
        """The blocks of a and b as these are stored."""
        a = self.a_scale.turned() if self.a_scale is not None and self.transpose_a else self.a_scale
        b = self.b_scale.turned() if self.b_scale is not None and not self.transpose_b else self.b_scale
        return a, b


def infer(params: GemmParams, inputs: Tensors) -> Tensors:
    """(M, N) in the output format."""
    take("gemm", inputs, params.input_count)
    m, n, _ = _extents(params, inputs)
    tables = iter(inputs[2:])
    for operand, layout in zip(inputs, params.stored_layouts(), strict=False):
        if layout is not None:
            _check_table(next(tables), operand, layout)
    if params.accumulates:
        require_shape(inputs[-1], (m, n), "it is the accumulator of the product")
    return (unnamed((m, n), params.out_format),)


def demand(params: GemmParams, inputs: Tensors, outputs: Tensors) -> Gemm:
    """The product's dimensions, formats and scale bytes."""
    a, b = inputs[:2]
    m, n, k = _extents(params, inputs)
    tables = iter(inputs[2:])
    return Gemm(
        m=m,
        n=n,
        k=k,
        a_format=a.format,
        b_format=b.format,
        out_format=outputs[0].format,
        a_scale_bytes=next(tables).bytes if params.a_scale is not None else 0,
        b_scale_bytes=next(tables).bytes if params.b_scale is not None else 0,
        accumulates=params.accumulates,
        native_block_scales=params.native_block_scales,
        promote_every=params.promote_every,
        epilogue_scale_vectors=params.epilogue_scale_vectors,
        kernel=params.kernel,
    )


def evaluate(params: GemmParams, arrays: Arrays) -> Arrays:
    """The product of the decoded and scaled operands, summed in float64 and rounded once to the output format.

    Where the K loop breaks, and how often partial sums are promoted, does not show in these values.
    """
    import numpy as np  # noqa: PLC0415 - timing never pays for numpy

    from hwmodel.formats import blocks, codec  # noqa: PLC0415 - as above

    tables = iter(arrays[2:])
    decoded = []
    for array, layout in zip(arrays, params.stored_layouts(), strict=False):
        flat = blocks.flat(array).astype("float64")
        decoded.append(flat if layout is None else flat * blocks.spread(next(tables), layout, flat.shape))
    a = decoded[0].T if params.transpose_a else decoded[0]
    b = decoded[1].T if params.transpose_b else decoded[1]
    with np.errstate(invalid="ignore"):  # Inf times 0 is NaN, as in the machine
        product = a @ b
        if params.accumulates:
            product = product + arrays[-1]
    return (codec.round_to_format(product, FORMATS.get(params.out_format), overflow="inf"),)


def _extents(params: GemmParams, inputs: Tensors) -> tuple[int, int, int]:
    """(m, n, k)."""
    a, b = inputs[:2]
    m, k = (a.columns, a.rows) if params.transpose_a else (a.rows, a.columns)
    n, b_k = (b.rows, b.columns) if params.transpose_b else (b.columns, b.rows)
    if k != b_k:
        turns = f"transpose_a={params.transpose_a}, transpose_b={params.transpose_b}"
        message = f"{shown(a)} and {shown(b)} must share the contraction extent ({turns}), got {k} and {b_k}"
        raise ParameterError("inputs", message)
    return m, n, k


def _check_table(table: TensorSpec, operand: TensorSpec, layout: ScaleLayout) -> None:
    needed = layout.scale_shape(operand.rows, operand.columns)
    if table.elements != needed[0] * needed[1]:
        message = f"scale table {shown(table)} of {shown(operand)} must have {needed[0]} x {needed[1]} entries"
        raise ParameterError("inputs", message)


register(Op("gemm", "gemm", GemmParams, infer, demand, evaluate))
