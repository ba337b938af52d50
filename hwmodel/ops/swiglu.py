"""Gated activation: silu(gate) * up over a packed (gate, up)."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.graph import Stream
from hwmodel.ops.base import Op, Tensors, bytes_of, instructions, register, require_shape, shown, take, unnamed


@dataclass(frozen=True, slots=True)
class SwigluParams:
    """Forward (gate_up (T, 2f)) -> (T, f). Backward (grad (T, f), gate_up (T, 2f)) -> grad_gate_up (T, 2f)."""

    backward: bool = False


def infer(params: SwigluParams, inputs: Tensors) -> Tensors:
    """Half as wide as gate_up forward, like gate_up backward."""
    take("swiglu", inputs, 2 if params.backward else 1)
    gate_up = inputs[-1]
    if gate_up.columns % 2:
        raise ParameterError("inputs", f"{shown(gate_up)} must have an even number of columns: gate and up")
    half = (*gate_up.shape[:-1], gate_up.columns // 2)
    if params.backward:
        require_shape(inputs[0], half, f"it is the gradient of the gated half of {gate_up.name!r}")
        return (unnamed(gate_up.shape, gate_up.format),)
    return (unnamed(half, gate_up.format),)


def demand(params: SwigluParams, inputs: Tensors, outputs: Tensors) -> Stream:
    """Per 16-bit element of f: 4 bytes read and 2 written forward, 6 read and 4 written backward.

    Per element of f: the sigmoid (negate, exp, add 1, divide) and two products forward; backward the sigmoid again,
    its derivative and the products for both halves.
    """
    n = inputs[-1].elements // 2
    if params.backward:
        work = instructions(exp=n, divide=n, simple=3 * n, binary=5 * n, cast=2 * n)
    else:
        work = instructions(exp=n, divide=n, simple=2 * n, binary=2 * n, cast=n)
    return Stream(read_bytes=bytes_of(inputs), write_bytes=bytes_of(outputs), elements=n, instructions=work)


register(Op("swiglu", "elementwise", SwigluParams, infer, demand))
