"""Token lookup: bytes and no FLOPs."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.graph import Stream
from hwmodel.ops.base import Op, Tensors, instructions, register, require_shape, shown, take, unnamed


@dataclass(frozen=True, slots=True)
class EmbeddingParams:
    """Forward (tokens (T,), table) -> (T, hidden). Backward (grad (T, hidden), tokens) -> grad_table, in fp32."""

    vocabulary: int
    """Rows of this rank's part of the table."""
    hidden: int
    backward: bool = False

    def __post_init__(self) -> None:
        for field in ("vocabulary", "hidden"):
            if getattr(self, field) < 1:
                raise ParameterError(field, f"must be >= 1, got {getattr(self, field)}")


def infer(params: EmbeddingParams, inputs: Tensors) -> Tensors:
    """The looked-up rows, or the gradient of the table."""
    take("embedding", inputs, 2)
    shape = (params.vocabulary, params.hidden)
    if not params.backward:
        tokens, table = inputs
        require_shape(table, shape, "(vocabulary, hidden)")
        return (unnamed((tokens.elements, params.hidden), table.format),)
    grad, tokens = inputs
    if (grad.rows, grad.columns) != (tokens.elements, params.hidden):
        message = f"{shown(grad)} must have a row of {params.hidden} for each token of {shown(tokens)}"
        raise ParameterError("inputs", message)
    return (unnamed(shape, "fp32"),)


def demand(params: EmbeddingParams, inputs: Tensors, outputs: Tensors) -> Stream:
    """Only the rows that the tokens name: read and written once forward, added into the table's gradient backward."""
    out = outputs[0]
    if not params.backward:
        tokens, table = inputs
        rows_bytes = tokens.elements * table.bytes // params.vocabulary
        return Stream(read_bytes=tokens.bytes + rows_bytes, write_bytes=out.bytes, elements=out.elements)
    grad, tokens = inputs
    rows_bytes = tokens.elements * out.bytes // params.vocabulary
    return Stream(
        read_bytes=grad.bytes + tokens.bytes + rows_bytes,
        write_bytes=rows_bytes,
        elements=grad.elements,
        instructions=instructions(binary=grad.elements),
    )


register(Op("embedding", "elementwise", EmbeddingParams, infer, demand))
