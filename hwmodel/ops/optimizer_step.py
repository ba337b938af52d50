"""The optimiser's update of this rank's shard of the parameters."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.graph import Stream
from hwmodel.ops.base import Op, Tensors, instructions, register, unnamed

KINDS = ("adam",)
_FORMATS = {1: "fp8_e4m3fn", 2: "bf16", 4: "fp32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerParams:
    """Bytes per parameter that a step moves. Any inputs (they only order it) -> the new parameters (parameters,)."""

    parameters: int
    """On this rank, after any sharding."""
    kind: str = "adam"
    master_bytes: int = 4
    """High-precision copy, per parameter."""
    moment_bytes: int = 8
    """All moments together, per parameter (Adam: two of 4)."""
    gradient_bytes: int = 4
    parameter_bytes: int = 2
    """The copy the model computes with."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError("kind", f"must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.parameters < 1:
            raise ParameterError("parameters", f"must be >= 1, got {self.parameters}")
        for field in ("master_bytes", "moment_bytes", "gradient_bytes"):
            if getattr(self, field) < 0:
                raise ParameterError(field, f"must be >= 0, got {getattr(self, field)}")
        if self.parameter_bytes not in _FORMATS:
            raise ParameterError("parameter_bytes", f"must be 1, 2 or 4, got {self.parameter_bytes}")


def infer(params: OptimizerParams, inputs: Tensors) -> Tensors:
    """The new parameters."""
    return (unnamed((params.parameters,), _FORMATS[params.parameter_bytes]),)


def demand(params: OptimizerParams, inputs: Tensors, outputs: Tensors) -> Stream:
    """Reads gradients, master copy and moments; writes master copy, moments and parameters.

    Adam per parameter: two moment averages, bias corrections, root, division, weight decay and the update.
    """
    n = params.parameters
    kept = params.master_bytes + params.moment_bytes
    return Stream(
        read_bytes=n * (params.gradient_bytes + kept),
        write_bytes=n * (kept + params.parameter_bytes),
        elements=n,
        instructions=instructions(simple=7 * n, binary=5 * n, divide=n, rsqrt=n, cast=n),
    )


register(Op("optimizer_step", "optimizer", OptimizerParams, infer, demand))
