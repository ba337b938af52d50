"""A software set: which kernels, fusions and overlaps a release offers. It holds no rate and no time, ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hwmodel.errors import ParameterError, suggestion

SWITCHES: Final[Mapping[str, str]] = {
    "one_kernel_for_both_directions": "one quantise kernel writes the row copy and the column copy of block scales",
    "scales_in_gemm_order": "the quantiser writes block scales in the order the matrix unit reads, unless they travel",
}
"""Name -> what is true where it is on. Absent is off."""
COUNTS: Final[Mapping[str, str]] = {
    "amax_launches": "kernels that one amax of a whole tensor launches (clearing the result counts as one)",
}
KERNELS: Final[Mapping[str, str]] = {
    "promotion": "K loop where block scales are applied outside the matrix unit: 'serial' or 'two_group'",
    "block_scaled": "GEMM variant of the device for block scales the matrix unit applies itself",
}
OVERLAPS: Final[Mapping[str, str]] = {
    "gather_fprop": "gather of activations under the forward GEMM that reads them",
    "gather_dgrad": "gather of gradients under the data-gradient GEMM",
    "bulk_gather_wgrad": "gather of an operand of the weight-gradient GEMM, all under another GEMM",
    "fprop_reduce_scatter": "reduction of a forward GEMM's output under the GEMM",
    "dgrad_reduce_scatter": "reduction of a data-gradient GEMM's output, under the next GEMM",
    "context_gather": "keys and values of other context-parallel ranks under attention",
    "amax_reduction": "reduction of amax values beside compute that does not need them",
    "pipeline": "transfers between pipeline stages",
    "gradient_reduce": "reduction of weight gradients over data-parallel ranks under backward",
    "parameter_gather": "gather of sharded parameters under the compute before them",
}
PAYLOADS: Final = ("plain", "block_scaled")
"""Families of what a collective carries: with one scale or none, or with a table of scales."""
FUSED: Final = tuple(
    f"{producer}+{consumer}{family}"
    for producer in ("rmsnorm", "rmsnorm_backward", "swiglu", "swiglu_backward")
    for consumer in ("quantise", "amax")
    for family in ("", ".row", ".block")
)
"""Fused kernels a set may list: producer, what is fused behind it, and the family of the scales."""


@dataclass(frozen=True, slots=True)
class SinceNote:
    """The release or change that introduced one entry."""

    path: str
    since: str


@dataclass(frozen=True, slots=True)
class Software:
    """Booleans, counts and names of one release. Applies to every recipe alike."""

    name: str
    title: str = ""
    switches: Mapping[str, bool] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    kernels: Mapping[str, str] = field(default_factory=dict)
    fused: frozenset[str] = frozenset()
    overlaps: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Named collective -> payload families whose transfer may run beside compute."""
    since: tuple[SinceNote, ...] = ()

    def __post_init__(self) -> None:
        for section, names, known in (
            ("switches", self.switches, SWITCHES),
            ("counts", self.counts, COUNTS),
            ("kernels", self.kernels, KERNELS),
            ("fused", self.fused, FUSED),
            ("overlap", self.overlaps, OVERLAPS),
        ):
            for name in sorted(set(names) - set(known)):
                raise ParameterError(section, f"unknown name {name!r}{suggestion(name, known)}")
        for name, payloads in self.overlaps.items():
            for payload in sorted(payloads - set(PAYLOADS)):
                raise ParameterError(f"overlap.{name}", f"must be of {', '.join(PAYLOADS)}, got {payload!r}")
