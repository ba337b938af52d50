"""Pieces of a tensor and their joining, at no cost: a kernel reads and writes part of a tensor in place."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.graph import Elapsed
from hwmodel.ops.base import Op, Tensors, register, shown, take, unnamed


@dataclass(frozen=True, slots=True)
class SplitParams:
    """(x) -> piece ``index`` of ``pieces`` equal ones along ``axis``."""

    axis: int
    pieces: int
    index: int
    blocks: int = 1
    """The axis is ``blocks`` equal blocks and a piece holds its part of every one, in order."""

    def __post_init__(self) -> None:
        for field in ("pieces", "blocks"):
            if getattr(self, field) < 1:
                raise ParameterError(field, f"must be >= 1, got {getattr(self, field)}")
        if not 0 <= self.index < self.pieces:
            raise ParameterError("index", f"must be 0 to pieces - 1 = {self.pieces - 1}, got {self.index}")


@dataclass(frozen=True, slots=True)
class ConcatParams:
    """(piece, ...) -> the pieces joined along ``axis`` in that order."""

    axis: int


def infer_split(params: SplitParams, inputs: Tensors) -> Tensors:
    """The piece."""
    take("split", inputs, 1)
    (x,) = inputs
    _check_axis(params.axis, inputs)
    extent = x.shape[params.axis]
    if extent % (params.pieces * params.blocks):
        parts = f"{params.pieces} pieces of {params.blocks} blocks" if params.blocks > 1 else f"{params.pieces} pieces"
        message = f"extent {extent} of {shown(x)} along axis {params.axis} must divide in {parts}"
        raise ParameterError("inputs", message)
    shape = (*x.shape[: params.axis], extent // params.pieces, *x.shape[params.axis + 1 :])
    return (unnamed(shape, x.format),)


def infer_concat(params: ConcatParams, inputs: Tensors) -> Tensors:
    """All pieces together."""
    if not inputs:
        raise ParameterError("inputs", "op 'concat' reads at least one tensor, got none")
    _check_axis(params.axis, inputs)
    first, axis = inputs[0], params.axis
    for spec in inputs[1:]:
        like = (*first.shape[:axis], spec.shape[axis], *first.shape[axis + 1 :])
        if spec.shape != like or spec.format != first.format:
            raise ParameterError("inputs", f"{shown(spec)} cannot be joined to {shown(first)} along axis {axis}")
    joined = sum(spec.shape[axis] for spec in inputs)
    return (unnamed((*first.shape[:axis], joined, *first.shape[axis + 1 :]), first.format),)


def demand(params: SplitParams | ConcatParams, inputs: Tensors, outputs: Tensors) -> Elapsed:
    """Nothing."""
    return Elapsed(0)


def _check_axis(axis: int, inputs: Tensors) -> None:
    for spec in inputs:
        if not 0 <= axis < len(spec.shape):
            raise ParameterError("axis", f"must be an axis of {shown(spec)}, got {axis}")


register(Op("split", "elementwise", SplitParams, infer_split, demand))
register(Op("concat", "elementwise", ConcatParams, infer_concat, demand))
