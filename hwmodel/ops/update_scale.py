"""From amaxes to scales, through a history where there is one: one tiny kernel for many tensors."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.formats import FORMATS
from hwmodel.formats.rules import HISTORY_RULES
from hwmodel.graph import Stream, TensorSpec
from hwmodel.ops.base import Arrays, Op, Tensors, bytes_of, instructions, register, require_shape, take, unnamed


@dataclass(frozen=True, slots=True)
class UpdateScaleParams:
    """(amax, ... [, history]) -> encode_scale, decode_scale [, history], fp32.

    Amaxes come as one table of any shape, whose shape the scales take, or as several that are joined in order to a
    vector. A history is (history_steps, amaxes), latest first: this step's amaxes enter at the front and the scales
    come from the new history.
    """

    format: str
    margin_bits: int = 0
    powers_of_two: bool = False
    history_steps: int = 0
    """Length of the history; 0 for none."""
    history_rule: str = "max"
    tensors: int = 1
    """Tensors that are updated together; with 1, one table may still hold a scale for each row or block."""
    from_current: bool = False
    """The amax is that of the very tensor to be quantised, so there is no history."""

    def __post_init__(self) -> None:
        FORMATS.get(self.format)
        if self.margin_bits < 0:
            raise ParameterError("margin_bits", f"must be >= 0, got {self.margin_bits}")
        if self.history_steps < 0:
            raise ParameterError("history_steps", f"must be >= 0, got {self.history_steps}")
        if self.history_rule not in HISTORY_RULES:
            rule = f"must be one of {', '.join(HISTORY_RULES)}, got {self.history_rule!r}"
            raise ParameterError("history_rule", rule)
        if self.tensors < 1:
            raise ParameterError("tensors", f"must be >= 1, got {self.tensors}")
        if self.from_current and self.history_steps:
            message = f"must be 0 for the scale of a tensor's own amax, got {self.history_steps}"
            raise ParameterError("history_steps", message)


def infer(params: UpdateScaleParams, inputs: Tensors) -> Tensors:
    """Scales in the shape of the amaxes, and the new history."""
    amaxes = _amaxes(params, inputs)
    count = sum(spec.elements for spec in amaxes)
    if count != params.tensors and (params.tensors > 1 or len(amaxes) > 1):
        raise ParameterError(
            "inputs", f"must hold {params.tensors} amaxes, one for each of tensors={params.tensors}, got {count}"
        )
    shape = amaxes[0].shape if len(amaxes) == 1 else (count,)
    results = [unnamed(shape, "fp32"), unnamed(shape, "fp32")]
    if params.history_steps:
        require_shape(inputs[-1], (params.history_steps, count), "(history_steps, amaxes)")
        results.append(unnamed(inputs[-1].shape, "fp32"))
    return tuple(results)


def demand(params: UpdateScaleParams, inputs: Tensors, outputs: Tensors) -> Stream:
    """A few bytes that wait for each other; two divisions per scale, a maximum over the history."""
    count = outputs[0].elements
    return Stream(
        read_bytes=bytes_of(inputs),
        write_bytes=bytes_of(outputs),
        elements=count * max(params.history_steps, 1),
        instructions=instructions(simple=count, binary=count * params.history_steps, divide=2 * count),
        access="latency",
    )


def evaluate(params: UpdateScaleParams, arrays: Arrays) -> Arrays:
    """The scales, as `hwmodel.formats.scales` says, and the history with this step's amaxes in front."""
    import numpy as np  # noqa: PLC0415 - timing never pays for numpy

    from hwmodel.formats import scales  # noqa: PLC0415 - as above

    amaxes = arrays[:-1] if params.history_steps else arrays
    shape = amaxes[0].shape if len(amaxes) == 1 else (-1,)
    amax = np.concatenate([array.reshape(-1) for array in amaxes]).astype(np.float32)
    history = []
    if params.history_steps:
        history = [np.concatenate([amax[None], arrays[-1][:-1]]).astype(np.float32)]
        amax = scales.history_amax(history[0], params.history_rule)
    encode = scales.encode_scale(
        amax.reshape(shape),
        FORMATS.get(params.format),
        margin_bits=params.margin_bits,
        powers_of_two=params.powers_of_two,
    )
    return (encode, scales.decode_scale(encode), *history)


def _amaxes(params: UpdateScaleParams, inputs: Tensors) -> tuple[TensorSpec, ...]:
    """The inputs that are amaxes."""
    amaxes = inputs[:-1] if params.history_steps else inputs
    if not amaxes:
        take("update_scale", inputs, 2 if params.history_steps else 1)
    return amaxes


register(Op("update_scale", "scale", UpdateScaleParams, infer, demand, evaluate))
