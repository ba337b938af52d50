"""Softmax cross entropy over a (shard of a) vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.graph import Stream
from hwmodel.ops.base import Op, Tensors, bytes_of, instructions, register, shown, take, unnamed


@dataclass(frozen=True, slots=True)
class CrossEntropyParams:
    """Forward (logits (T, V) [, targets]) -> loss (T,) fp32. Backward, same inputs (and a loss) -> grad_logits."""

    backward: bool = False


def infer(params: CrossEntropyParams, inputs: Tensors) -> Tensors:
    """A loss for each row, or a gradient like the logits."""
    take("cross_entropy", inputs, 1, 2, *((3,) if params.backward else ()))
    logits = inputs[0]
    for spec in inputs[1:]:
        if spec.elements != logits.rows:
            raise ParameterError("inputs", f"{shown(spec)} must have one element for each row of {shown(logits)}")
    return (unnamed(logits.shape, logits.format) if params.backward else unnamed((logits.rows,), "fp32"),)


def demand(params: CrossEntropyParams, inputs: Tensors, outputs: Tensors) -> Stream:
    """One pass over the logits each way: maximum and sum are kept as they grow (online softmax)."""
    n = inputs[0].elements
    forward, backward = instructions(simple=n, exp=n, reduce=2 * n), instructions(simple=2 * n, exp=n, cast=n)
    work = backward if params.backward else forward
    return Stream(read_bytes=bytes_of(inputs), write_bytes=bytes_of(outputs), elements=n, instructions=work)


register(Op("cross_entropy", "elementwise", CrossEntropyParams, infer, demand))
