"""A scaling recipe as a point on independent axes; a description without state, spent when the graph is built."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from hwmodel.errors import ParameterError, RefusedError
from hwmodel.formats import FORMATS, ScaleLayout
from hwmodel.recipes.layouts import GRANULARITIES
from hwmodel.recipes.timings import TIMINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

AMAX_KERNELS = ("fused", "fused_producer", "separate")
AMAX_SAMPLINGS = ("full", "split")
FUSIONS = ("none", "production", "ideal")
HISTORY_RULES = ("max", "latest", "mean")
SCALE_ROUNDINGS = ("nearest", "power_of_two")
GEMM_USES = ("fprop", "dgrad", "wgrad")
UNCAST = "bf16"
"""Format of an operand that no recipe casts."""
_SHARED = "e8m0"
LONGEST_INTERVAL_STEPS = 10_000
"""A run covers one interval period and lists its steps, so the period is kept listable."""


def _one_of(field: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ParameterError(field, f"must be one of {', '.join(known)}, got '{value}'")


@dataclass(frozen=True, slots=True)
class Formats:
    """Number format of each role's operands in the matrix unit: what they are cast to, or BF16 where they are not."""

    x: str = "bf16"
    w: str = "bf16"
    g: str = "bf16"

    def __post_init__(self) -> None:
        for field in ("x", "w", "g"):
            name = getattr(self, field)
            if name != UNCAST and not FORMATS.get(name).is_eight_bit:
                known = ", ".join(item for item, spec in FORMATS.items() if spec.is_eight_bit)
                rule = f"must be {UNCAST}, which is not cast, or one of {known}"
                raise ParameterError(f"formats.{field}", f"{rule}, got '{name}'")

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
    weight_dgrad_granularity: str | None = None
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
        if self.weight_dgrad_granularity is not None:
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
        reasons: dict[str, str] = {}
        for path, message in self._impossible() if self.scaled else ():
            reasons.setdefault(message, path)
        if reasons:
            (path, message), *more = [(path, message) for message, path in reasons.items()]
            raise RefusedError(path, message, tuple(more))

    def _impossible(self) -> Iterator[tuple[str, str]]:
        """(path, reason) of combinations that cannot exist."""
        for use, role, granularity, layout in self._layouts():
            if self.timing != "current" and not layout.per_tensor:
                yield (
                    "recipe.weight_dgrad_granularity" if use else "recipe.timing",
                    f"'{self.timing}' with granularity '{granularity}': a scale kept across steps needs blocks that "
                    "keep their identity, and the rows of activations are new tokens at every step; use granularity "
                    "'tensor' or timing 'current'",
                )
            if reason := _contradiction(self.formats.of(role), granularity, layout):
                yield "recipe.weight_dgrad_granularity" if use else f"recipe.formats.{role}", reason
        if self.timing == "current" and self.amax.sampling == "split":
            yield "recipe.amax.sampling", "'split' with timing 'current': it needs the whole tensor's amax now"
        if self.timing == "delayed" and self.amax.sampling == "split" and self.amax.kernel != "separate":
            yield (
                "recipe.amax.sampling",
                f"'split' with amax.kernel '{self.amax.kernel}': an amax fused into a kernel that reads it all "
                "has nothing to split; use amax.kernel 'separate'",
            )

    def _layouts(self) -> tuple[tuple[str, str, str, ScaleLayout], ...]:
        """(use, role, granularity, layout) of all blocks; the use is '' where it has no granularity of its own."""
        found = tuple(("", role, self.granularity, self.layout(role)) for role in "xwg")
        own = self.weight_dgrad_granularity
        return found if own is None else (*found, ("dgrad", "w", own, self.layout("w", "dgrad")))

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
        if role == "w" and use == "dgrad" and self.weight_dgrad_granularity is not None:
            name = self.weight_dgrad_granularity
        layout = GRANULARITIES.get(name).of(role)
        return replace(layout, powers_of_two=True) if self.scale_rounding == "power_of_two" else layout

    def high_precision(self, use: str) -> bool:
        """GEMM ``use`` stays in BF16."""
        return not self.scaled or use in self.exceptions.gemms

    def idle_axes(self) -> frozenset[str]:
        """Axes, with dots, that make no difference to this recipe whatever they say."""
        idle: set[str] = set()
        if not self.keeps_state:
            idle |= {"interval_steps", "history_steps", "history_rule", "amax.kernel", "amax.sampling"}
        elif self.interval_steps is None:
            idle |= {"amax.kernel", "amax.sampling"}
        if self.timing in ("direct", "static"):  # no scale is computed
            idle |= {"scale_rounding", "margin_bits"}
        elif all(GRANULARITIES.get(name).of(role).powers_of_two for _, role, name, _ in self._layouts()):
            idle.add("scale_rounding")
        return frozenset(idle)

    def canonical(self) -> Recipe:
        """The same recipe with every axis that cannot matter at its default, so that equal points compare equal."""
        if not self.scaled:
            return Recipe(preset="", formats=self.formats)
        idle = self.idle_axes()
        plain = {name: _DEFAULTS[name] for name in idle if name in _DEFAULTS}
        amax = AmaxAxes() if "amax.kernel" in idle else self.amax
        return replace(self, preset="", amax=amax, **plain)

    def as_current(self) -> Recipe:
        """The recipe of the first step, which has no history: the same scales from the tensors' own amax."""
        return replace(self, timing="current", amax=AmaxAxes())


_DEFAULTS: Mapping[str, Any] = {field.name: field.default for field in fields(Recipe)}


def _contradiction(number_format: str, granularity: str, layout: ScaleLayout) -> str:
    """Why a format cannot have its scales in these blocks, '' if it can."""
    columns = FORMATS.get(number_format).shared_scale_columns
    if columns and (layout.columns, layout.scale_format) != (columns, _SHARED):
        return (
            f"'{number_format}' shares one scale per {columns} elements, granularity '{granularity}' does not; use "
            "granularity 'mx'"
        )
    shared = [(name, spec.rate_as) for name, spec in FORMATS.items() if spec.shared_scale_columns]
    known = sorted({name for names in shared for name in names})
    if layout.scale_format == _SHARED and number_format not in (UNCAST, *known):
        return (
            f"'{number_format}' with granularity '{granularity}': no matrix unit takes E8M0 block scales with it, only "
            f"with {', '.join(known)}; use granularity 'tensor'"
        )
    return ""


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
