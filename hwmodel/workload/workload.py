"""A workload: what is trained or run, how it is cut over devices, with which recipe and software."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from hwmodel.errors import ParameterError
from hwmodel.graph import Layout
from hwmodel.models.spec import ModelSpec
from hwmodel.recipes.recipe import LONGEST_INTERVAL_STEPS, Recipe

if TYPE_CHECKING:
    from collections.abc import Iterator

GRADIENT_BYTES = {"fp32": 4, "bf16": 2}
"""Format in which gradients are summed over data-parallel ranks -> bytes of an element."""


def _check_steps(steps: int) -> None:
    """Steps are listed one by one in a result."""
    if not 0 <= steps <= LONGEST_INTERVAL_STEPS:
        raise ParameterError("steps", f"must be >= 0 and <= {LONGEST_INTERVAL_STEPS}, got {steps}")


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences of one optimiser step, of one microbatch, and their length in tokens."""

    global_sequences: int
    micro_sequences: int
    sequence: int

    def __post_init__(self) -> None:
        for name, shown in (("global_sequences", "global"), ("micro_sequences", "micro"), ("sequence", "sequence")):
            if getattr(self, name) < 1:
                raise ParameterError(f"batch.{shown}", f"must be >= 1, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Optimizer:
    """Adam in mixed precision, its state sharded over data-parallel ranks or not."""

    sharded: bool = True
    gradient_format: str = "fp32"
    """Format in which gradients are accumulated over microbatches and summed over data-parallel ranks."""
    master_bytes: int = 4
    moment_bytes: int = 8
    """Both moments together, per parameter."""

    def __post_init__(self) -> None:
        if self.gradient_format not in GRADIENT_BYTES:
            raise ParameterError(
                "optimizer.gradient_format",
                f"must be one of {', '.join(GRADIENT_BYTES)}, got '{self.gradient_format}'",
            )
        for name in ("master_bytes", "moment_bytes"):
            if getattr(self, name) < 0:
                raise ParameterError(f"optimizer.{name}", f"must be >= 0, got {getattr(self, name)}")


def layout_mistakes(model: ModelSpec, batch: Batch, layout: Layout) -> Iterator[ParameterError]:
    """Every way in which a batch and a pipeline do not fit the degrees of parallelism."""
    per_rank = layout.dp * batch.micro_sequences
    if batch.global_sequences % per_rank:
        rule = f"must be a multiple of parallel.dp x batch.micro = {per_rank}"
        yield ParameterError("batch.global", f"{rule}, got {batch.global_sequences}")
    elif layout.vp > 1 and batch.global_sequences // per_rank % layout.pp:
        rule = f"interleaved stages need microbatches in multiples of pp={layout.pp}"
        yield ParameterError("parallel.vp", f"{rule}, got {batch.global_sequences // per_rank}")
    if batch.sequence % layout.cp:
        yield ParameterError("batch.sequence", f"must be a multiple of parallel.cp={layout.cp}, got {batch.sequence}")
    most = model.layers + 2
    if layout.pp * layout.vp > most and layout.vp > 1:
        yield ParameterError("parallel.vp", f"pp x vp must be <= layers + 2 = {most}, got {layout.pp * layout.vp}")
    elif layout.pp > most:
        yield ParameterError("parallel.pp", f"must be <= layers + 2 = {most}, got {layout.pp}")


@dataclass(frozen=True, slots=True)
class Training:
    """One optimiser step of a dense decoder."""

    name: str
    model: ModelSpec
    batch: Batch
    layout: Layout
    recipe: Recipe = field(default_factory=Recipe)
    schedule: str = "overlap"
    software: str = "mature"
    optimizer: Optimizer = Optimizer()
    steps: int = 0
    """Steady steps to list; 0 for one interval period."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for mistake in layout_mistakes(self.model, self.batch, self.layout):
            raise mistake
        _check_steps(self.steps)

    @property
    def microbatches(self) -> int:
        """Microbatches each data-parallel rank runs per step."""
        return self.batch.global_sequences // (self.layout.dp * self.batch.micro_sequences)

    @property
    def tokens_per_step(self) -> int:
        """Tokens of one optimiser step over all devices."""
        return self.batch.global_sequences * self.batch.sequence


@dataclass(frozen=True, slots=True)
class TensorLine:
    """A tensor of a hand-written graph."""

    name: str
    shape: tuple[int, ...]
    format: str


@dataclass(frozen=True, slots=True)
class OpLine:
    """An op of a hand-written graph: one of the registered ops, or 'linear', which the recipe lowers."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str = ""
    params: object = None
    backward: bool = True
    """For 'linear': dgrad and wgrad as well."""


@dataclass(frozen=True, slots=True)
class HandGraph:
    """Tensors and ops written by hand, for one device."""

    name: str
    tensors: tuple[TensorLine, ...]
    ops: tuple[OpLine, ...]
    recipe: Recipe = field(default_factory=Recipe)
    schedule: str = "overlap"
    software: str = "mature"
    layout: Layout = field(default_factory=Layout)
    steps: int = 0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_steps(self.steps)


Workload = Training | HandGraph


def describe(layout: Layout) -> dict[str, int | bool]:
    """The layout as plain values for results."""
    return {item.name: getattr(layout, item.name) for item in fields(layout)} | {"devices": layout.ranks}
