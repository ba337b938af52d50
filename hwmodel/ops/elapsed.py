"""Time that passes for a reason worked out elsewhere: a pipeline bubble, traffic that nothing hides."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.graph import Elapsed
from hwmodel.ops.base import Op, Tensors, register, take


@dataclass(frozen=True, slots=True)
class ElapsedParams:
    """No tensors in or out; ``after`` of the node says when."""

    picoseconds: int
    bytes: int = 0
    """Moved meanwhile, for reports."""

    def __post_init__(self) -> None:
        for field in ("picoseconds", "bytes"):
            if getattr(self, field) < 0:
                raise ParameterError(field, f"must be >= 0, got {getattr(self, field)}")


def infer(params: ElapsedParams, inputs: Tensors) -> Tensors:
    """Nothing."""
    take("elapsed", inputs, 0)
    return ()


def demand(params: ElapsedParams, inputs: Tensors, outputs: Tensors) -> Elapsed:
    """The time as given."""
    return Elapsed(params.picoseconds, params.bytes)


register(Op("bubble", "bubble", ElapsedParams, infer, demand))
register(Op("exposed_traffic", "collective", ElapsedParams, infer, demand))
