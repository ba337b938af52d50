"""A range of a tensor along one axis, read or written in place at no cost."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.graph import Elapsed
from hwmodel.ops.base import Op, Tensors, register, require_shape, shown, take, unnamed


@dataclass(frozen=True, slots=True)
class SliceParams:
    """slice: (x) -> x from ``start`` to ``stop`` along ``axis``. overlay: (x, part) -> x with that range replaced."""

    axis: int
    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise ParameterError("stop", f"must be > start and start >= 0, got {self.start} to {self.stop}")


def infer_slice(params: SliceParams, inputs: Tensors) -> Tensors:
    """The range."""
    take("slice", inputs, 1)
    return (unnamed(_range_shape(params, inputs), inputs[0].format),)


def infer_overlay(params: SliceParams, inputs: Tensors) -> Tensors:
    """A tensor like x."""
    take("overlay", inputs, 2)
    x, part = inputs
    require_shape(part, _range_shape(params, inputs), f"it replaces a range of {x.name!r}")
    return (unnamed(x.shape, x.format),)


def demand(params: SliceParams, inputs: Tensors, outputs: Tensors) -> Elapsed:
    """Nothing."""
    return Elapsed(0)


def _range_shape(params: SliceParams, inputs: Tensors) -> tuple[int, ...]:
    x = inputs[0]
    if not 0 <= params.axis < len(x.shape):
        raise ParameterError("axis", f"must be an axis of {shown(x)}, got {params.axis}")
    if params.stop > x.shape[params.axis]:
        raise ParameterError("stop", f"must be <= the extent of {shown(x)} along axis {params.axis}, got {params.stop}")
    return (*x.shape[: params.axis], params.stop - params.start, *x.shape[params.axis + 1 :])


register(Op("slice", "elementwise", SliceParams, infer_slice, demand))
register(Op("overlay", "elementwise", SliceParams, infer_overlay, demand))
