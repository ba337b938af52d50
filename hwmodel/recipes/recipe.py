"""A scaling recipe as a point on independent axes; a description without state, spent when the graph is built."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hwmodel.errors import ParameterError, RefusedError
from hwmodel.formats import FORMATS, ScaleLayout
from hwmodel.recipes.layouts import GRANULARITIES
from hwmodel.recipes.timings import TIMINGS

AMAX_KERNELS = ("fused", "fused_producer", "separate")
AMAX_SAMPLINGS = ("full", "split")
FUSIONS = ("none", "production", "ideal")
HISTORY_RULES = ("max", "latest", "mean")
SCALE_ROUNDINGS = ("nearest", "power_of_two")
GEMM_USES = ("fprop", "dgrad", "wgrad")
LONGEST_INTERVAL_STEPS = 10_000
"""A run covers one interval period and lists its steps, so the period is kept listable."""


def _one_of(field: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ParameterError(field, f"must be one of {', '.join(known)}, got '{value}'")


@dataclass(frozen=True, slots=True)
class Formats:
    """Number format of each role's operands in the matrix unit."""

    x: str = "bf16"
    w: str = "bf16"
    g: str = "bf16"

    def __post_init__(self) -> None:
        for field in ("x", "w", "g"):
            FORMATS.get(getattr(self, field))

    def of(self, role: str) -> str:
        """Format of role 'x', 'w' or 'g'."""
        return str(getattr(self, role))


@dataclass(frozen=True, slots=True)
class AmaxAxes:
    """How an amax that must be known is computed."""

    kernel: str = "fused"
    """fused: in the cast's own kernel; fused_producer: in the kernel that makes the tensor; separate: a pass of its
    own."""
    sampling: str = "full"
    """full: the whole tensor on a step that is due; split: one slice of interval_steps each step."""

    def __post_init__(self) -> None:
        _one_of("amax.kernel", self.kernel, AMAX_KERNELS)
        _one_of("amax.sampling", self.sampling, AMAX_SAMPLINGS)


@dataclass(frozen=True, slots=True)
class Exceptions:
    """Where the recipe does not apply and BF16 is kept."""

    first_layers: int = 0
    last_layers: int = 0
    gemms: tuple[str, ...] = ()
    """GEMMs of every linear layer kept in BF16: fprop, dgrad, wgrad."""

    def __post_init__(self) -> None:
        for field in ("first_layers", "last_layers"):
            if getattr(self, field) < 0:
                raise ParameterError(f"exceptions.{field}", f"must be >= 0, got {getattr(self, field)}")
        for use in self.gemms:
            _one_of("exceptions.gemms", use, GEMM_USES)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Axes of a scaling recipe (design principle: a point on axes, never a class per product name)."""

    preset: str = "bf16"
    """Name it started from; only shown, never asked."""
    formats: Formats = Formats()
    granularity: str = "tensor"
    weight_dgrad_granularity: str = ""
    """Granularity of the weight copy that dgrad reads, where it differs."""
    timing: str = "current"
    interval_steps: int | None = 1
    """Optimiser steps between two amax refreshes of delayed scaling; None: amax is never computed."""
    history_steps: int = 1024
    history_rule: str = "max"
    margin_bits: int = 0
    scale_rounding: str = "nearest"
    amax: AmaxAxes = AmaxAxes()
    fusion: str = "production"
    exceptions: Exceptions = Exceptions()

    def __post_init__(self) -> None:
        GRANULARITIES.get(self.granularity)
        if self.weight_dgrad_granularity:
            GRANULARITIES.get(self.weight_dgrad_granularity)
        TIMINGS.get(self.timing)
        _one_of("fusion", self.fusion, FUSIONS)
        _one_of("history_rule", self.history_rule, HISTORY_RULES)
        _one_of("scale_rounding", self.scale_rounding, SCALE_ROUNDINGS)
        if self.interval_steps is not None and not 1 <= self.interval_steps <= LONGEST_INTERVAL_STEPS:
            raise ParameterError(
                "interval_steps", f"must be >= 1 and <= {LONGEST_INTERVAL_STEPS}, or none, got {self.interval_steps}"
            )
        if self.history_steps < 1:
            raise ParameterError("history_steps", f"must be >= 1, got {self.history_steps}")
        if not 0 <= self.margin_bits <= 32:
            raise ParameterError("margin_bits", f"must be between 0 and 32, got {self.margin_bits}")
        self._refuse_impossible()

    def _refuse_impossible(self) -> None:
        """Combinations that cannot exist, each with the reason."""
        if not self.scaled:
            return
        per_tensor = all(self.layout(role).per_tensor for role in "xwg")
        if self.timing != "current" and not per_tensor:
            raise RefusedError(
                "recipe.timing",
                f"'{self.timing}' with granularity '{self.granularity}': a scale kept across steps needs blocks that "
                "keep their identity, and the rows of activations are new tokens at every step; use granularity "
                "'tensor' or timing 'current'",
            )
        for role in "xwg":
            columns = FORMATS.get(self.formats.of(role)).shared_scale_columns
            if columns and self.layout(role).columns != columns:
                raise RefusedError(
                    f"recipe.formats.{role}",
                    f"'{self.formats.of(role)}' shares one scale per {columns} elements, granularity "
                    f"'{self.granularity}' does not; use granularity 'mx'",
                )
        if self.timing == "current" and self.amax.sampling == "split":
            raise RefusedError(
                "recipe.amax.sampling",
                "'split' with timing 'current': it needs the whole tensor's amax now",
            )
        if self.timing == "delayed" and self.amax.sampling == "split" and self.amax.kernel != "separate":
            raise RefusedError(
                "recipe.amax.sampling",
                f"'split' with amax.kernel '{self.amax.kernel}': an amax fused into a kernel that reads it all "
                "has nothing to split; use amax.kernel 'separate'",
            )

    @property
    def scaled(self) -> bool:
        """Any operand is in a format of 8 bits."""
        return any(FORMATS.get(self.formats.of(role)).is_eight_bit for role in "xwg")

    @property
    def keeps_state(self) -> bool:
        """Scales are carried across steps and refreshed."""
        return self.scaled and self.timing == "delayed"

    @property
    def period_steps(self) -> int:
        """Steps after which the pattern of steps repeats."""
        if not self.keeps_state or self.interval_steps is None:
            return 1
        return self.interval_steps

    def layout(self, role: str, use: str = "") -> ScaleLayout:
        """Blocks of role 'x', 'w' or 'g', seen along the contraction axis of GEMM ``use``."""
        name = self.granularity
        if role == "w" and use == "dgrad" and self.weight_dgrad_granularity:
            name = self.weight_dgrad_granularity
        layout = GRANULARITIES.get(name).of(role)
        return replace(layout, powers_of_two=True) if self.scale_rounding == "power_of_two" else layout

    def high_precision(self, use: str) -> bool:
        """GEMM ``use`` stays in BF16."""
        return not self.scaled or use in self.exceptions.gemms

    def canonical(self) -> Recipe:
        """The same recipe with every axis that cannot matter at its default, so that equal points compare equal."""
        recipe = replace(self, preset="")
        if not self.scaled:
            return Recipe(preset="", formats=self.formats)
        if not self.keeps_state:
            recipe = replace(recipe, interval_steps=1, history_steps=1024, history_rule="max", amax=AmaxAxes())
        return recipe

    def as_current(self) -> Recipe:
        """The recipe of the first step, which has no history: the same scales from the tensors' own amax."""
        return replace(self, timing="current", amax=AmaxAxes())


@dataclass(frozen=True, slots=True)
class StepKind:
    """What distinguishes one step of a period from another when the graph is built."""

    cold_start: bool = False
    """No scale exists yet: one pass of current scaling that also fills the history."""
    amax_due: bool = True
    """The amax of delayed scaling is refreshed in this step."""
    slice_index: int = 0
    """Which slice is measured in this step, where the amax is split over the interval."""


def step_kinds(recipe: Recipe) -> tuple[StepKind, ...]:
    """The steady steps of one period, in order."""
    if recipe.keeps_state and recipe.interval_steps is None:
        return (StepKind(amax_due=False),)
    if recipe.keeps_state and recipe.amax.sampling == "split":
        return tuple(StepKind(slice_index=index) for index in range(recipe.period_steps))
    return tuple(StepKind(amax_due=index == 0) for index in range(recipe.period_steps))
