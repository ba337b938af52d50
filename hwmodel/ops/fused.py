"""Several vector kernels in one, by composition: what stays on chip is neither written nor read again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodel.errors import ParameterError
from hwmodel.graph import Fused, Params, Stream, TensorSpec
from hwmodel.ops.base import OPS, Op, Tensors, inferred, instructions, register, shown

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class FusedPart:
    """One of the kernels, with the tensors it would read and write alone."""

    op: str
    params: Params
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True, slots=True)
class FusedParams:
    """Kernels in the order they work on each piece of data.

    The node reads what parts read and no earlier part wrote, in order of first use, and writes, in order, what no
    other part reads and what is named in ``keeps``. Its tensors bear the names they have in the parts.
    """

    parts: tuple[FusedPart, ...]
    keeps: tuple[str, ...] = ()
    """Tensors between parts that are also written to device memory."""

    def __post_init__(self) -> None:
        if not self.parts:
            raise ParameterError("parts", "must hold at least one kernel")
        written = {spec.name for part in self.parts for spec in part.outputs}
        for name in self.keeps:
            if name not in written:
                raise ParameterError("keeps", f"no part writes {name!r}")

    def external_inputs(self) -> Tensors:
        """Tensors read from device memory, in order of first use."""
        written: set[str] = set()
        found: dict[str, TensorSpec] = {}
        for part in self.parts:
            for spec in part.inputs:
                if spec.name not in written:
                    found.setdefault(spec.name, spec)
            written.update(spec.name for spec in part.outputs)
        return tuple(found.values())

    def external_outputs(self) -> Tensors:
        """Tensors written to device memory, in order."""
        read = {spec.name for part in self.parts for spec in part.inputs}
        outputs = (spec for part in self.parts for spec in part.outputs)
        return tuple(spec for spec in outputs if spec.name not in read or spec.name in self.keeps)


def fused_part(op: str, params: Params, inputs: Tensors, names: Sequence[str]) -> FusedPart:
    """A part whose outputs are inferred and called ``names``."""
    return FusedPart(op, params, inputs, inferred(OPS.get(op), params, inputs, names, f"part {op}"))


def infer(params: FusedParams, inputs: Tensors) -> Tensors:
    """What leaves the chip."""
    _streams(params)
    expected = params.external_inputs()
    if inputs != expected:
        rule = ", ".join(shown(spec) for spec in expected)
        raise ParameterError("inputs", f"must be {rule}, got {', '.join(shown(spec) for spec in inputs)}")
    return params.external_outputs()


def demand(params: FusedParams, inputs: Tensors, outputs: Tensors) -> Fused:
    """The parts' sum, less each write of what is no output of the node and each read of what is on chip already.

    The whole is one launch; it transposes if a part does, waits for tiny accesses only if all parts do.
    """
    streams = _streams(params)
    kept = {spec.name for spec in outputs}
    if unknown := kept - {spec.name for part in params.parts for spec in part.outputs}:
        raise ParameterError("outputs", f"no part writes {', '.join(map(repr, sorted(unknown)))}")
    on_chip: set[str] = set()
    read_bytes = write_bytes = 0
    for part, stream in zip(params.parts, streams, strict=True):
        again = sum(spec.bytes for spec in part.inputs if spec.name in on_chip)
        read_bytes += max(stream.read_bytes - again, 0)
        inside = sum(spec.bytes for spec in part.outputs if spec.name not in kept)
        write_bytes += max(stream.write_bytes - inside, 0)
        on_chip.update(spec.name for spec in (*part.inputs, *part.outputs))
    whole = Stream(
        read_bytes=read_bytes,
        write_bytes=write_bytes,
        elements=max(stream.elements for stream in streams),
        instructions=_together(streams),
        access=_access(streams),
        reduces_across_cores=any(stream.reduces_across_cores for stream in streams),
        flops=sum(stream.flops for stream in streams),
    )
    kinds = (OPS.get(part.op).kind for part in params.parts)
    return Fused(whole, tuple(zip(kinds, streams, strict=True)))


def _streams(params: FusedParams) -> tuple[Stream, ...]:
    """Each part's demand alone; refuses a part that is no vector or memory kernel."""
    streams: list[Stream] = []
    for part in params.parts:
        asked = OPS.get(part.op).demand(part.params, part.inputs, part.outputs)
        if not isinstance(asked, Stream):
            message = f"only vector and memory kernels fuse, got {part.op!r}, which is {type(asked).__name__.lower()}"
            raise ParameterError("parts", message)
        streams.append(asked)
    return tuple(streams)


def _together(streams: Sequence[Stream]) -> tuple[tuple[str, int], ...]:
    counts: Counter[str] = Counter()
    for stream in streams:
        counts.update(dict(stream.instructions))
    return instructions(**counts)


def _access(streams: Sequence[Stream]) -> str:
    found = {stream.access for stream in streams}
    return next(access for access in ("transpose", "contiguous", "latency") if access in found)


register(Op("fused", "elementwise", FusedParams, infer, demand))
