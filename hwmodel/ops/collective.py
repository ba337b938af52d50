"""Collectives and point-to-point transfers over one group of ranks."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.graph import Collective, TensorSpec
from hwmodel.ops.base import Op, Tensors, bytes_of, register, shown, unnamed

REDUCTIONS = ("sum", "max")


@dataclass(frozen=True, slots=True)
class CollectiveParams:
    """n tensors in, n tensors out, in one transfer: codes and their scales travel together."""

    group: str
    """Parallel dimension: tp, cp, dp, pp or a joined name such as dp_cp."""
    ranks: int
    stride: int = 1
    """Distance between neighbours of the group in the numbering of ranks."""
    reduction: str = "sum"
    """What all_reduce and reduce_scatter do."""
    axis: int = 0
    """Axis along which all_gather joins and reduce_scatter cuts."""
    overlapped: bool = False
    """The transfer may run beside compute."""
    overlap_name: str = ""
    """Name under which a device's software says whether it may."""

    def __post_init__(self) -> None:
        if self.reduction not in REDUCTIONS:
            raise ParameterError("reduction", f"must be one of {', '.join(REDUCTIONS)}, got {self.reduction!r}")
        for field in ("ranks", "stride"):
            if getattr(self, field) < 1:
                raise ParameterError(field, f"must be >= 1, got {getattr(self, field)}")


def infer_same(params: CollectiveParams, inputs: Tensors) -> Tensors:
    """Tensors like the inputs."""
    _check(inputs)
    return tuple(unnamed(spec.shape, spec.format) for spec in inputs)


def infer_gathered(params: CollectiveParams, inputs: Tensors) -> Tensors:
    """Each tensor ``ranks`` times as long along the axis."""
    _check(inputs)
    return tuple(_with_extent(spec, params.axis, _extent(spec, params.axis) * params.ranks) for spec in inputs)


def infer_scattered(params: CollectiveParams, inputs: Tensors) -> Tensors:
    """This rank's part of each tensor along the axis."""
    _check(inputs)
    for spec in inputs:
        extent = _extent(spec, params.axis)
        if extent % params.ranks:
            message = f"extent {extent} of {shown(spec)} along axis {params.axis} must divide over {params.ranks} ranks"
            raise ParameterError("inputs", message)
    return tuple(_with_extent(spec, params.axis, _extent(spec, params.axis) // params.ranks) for spec in inputs)


def all_reduce_demand(params: CollectiveParams, inputs: Tensors, outputs: Tensors) -> Collective:
    """The full tensors are the inputs."""
    return _collective("all_reduce", params, inputs)


def all_gather_demand(params: CollectiveParams, inputs: Tensors, outputs: Tensors) -> Collective:
    """The full tensors are the gathered ones."""
    return _collective("all_gather", params, outputs)


def reduce_scatter_demand(params: CollectiveParams, inputs: Tensors, outputs: Tensors) -> Collective:
    """The full tensors are the inputs."""
    return _collective("reduce_scatter", params, inputs)


def send_recv_demand(params: CollectiveParams, inputs: Tensors, outputs: Tensors) -> Collective:
    """The full tensors are the message."""
    return _collective("send_recv", params, inputs)


def _collective(kind: str, params: CollectiveParams, full: Tensors) -> Collective:
    return Collective(kind, params.group, params.ranks, bytes_of(full), params.stride)


def _check(inputs: Tensors) -> None:
    if not inputs:
        raise ParameterError("inputs", "a collective needs at least one tensor, got none")


def _extent(spec: TensorSpec, axis: int) -> int:
    if not 0 <= axis < len(spec.shape):
        raise ParameterError("axis", f"must be an axis of {shown(spec)}, got {axis}")
    return spec.shape[axis]


def _with_extent(spec: TensorSpec, axis: int, extent: int) -> TensorSpec:
    return unnamed((*spec.shape[:axis], extent, *spec.shape[axis + 1 :]), spec.format)


register(Op("all_reduce", "collective", CollectiveParams, infer_same, all_reduce_demand))
register(Op("all_gather", "collective", CollectiveParams, infer_gathered, all_gather_demand))
register(Op("reduce_scatter", "collective", CollectiveParams, infer_scattered, reduce_scatter_demand))
register(Op("send_recv", "collective", CollectiveParams, infer_same, send_recv_demand))
