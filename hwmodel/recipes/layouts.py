"""The granularities as data: which elements of an operand share one scale, per role. A new one is one line here."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.formats import ScaleLayout
from hwmodel.registry import Registry

ALL = None
"""Extent of a block that reaches over the whole axis."""


@dataclass(frozen=True, slots=True)
class Granularity:
    """Blocks of activations (x), weights (w) and gradients (g), each seen along the contraction axis."""

    x: ScaleLayout
    w: ScaleLayout
    g: ScaleLayout

    def of(self, role: str) -> ScaleLayout:
        """The layout of role 'x', 'w' or 'g'."""
        return {"x": self.x, "w": self.w, "g": self.g}[role]


def _same(layout: ScaleLayout) -> Granularity:
    return Granularity(layout, layout, layout)


GRANULARITIES: Registry[Granularity] = Registry("granularity")
GRANULARITIES.register("tensor", _same(ScaleLayout(ALL, ALL)))
GRANULARITIES.register("row", _same(ScaleLayout(1, ALL)))
GRANULARITIES.register("block", Granularity(ScaleLayout(1, 128), ScaleLayout(128, 128), ScaleLayout(1, 128)))
GRANULARITIES.register("subchannel", _same(ScaleLayout(1, 128)))
GRANULARITIES.register("mx", _same(ScaleLayout(1, 32, "e8m0", powers_of_two=True)))
