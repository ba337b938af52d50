"""What a delivery leaves on a rank: copies of a tensor with their scales, and operands made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hwmodel.formats import ScaleLayout

ROW_USES = frozenset((("x", "fprop"), ("g", "dgrad"), ("w", "fprop")))
"""(role, use) whose contraction axis is the tensor's last axis; the other use contracts over its rows."""


@dataclass(frozen=True, slots=True)
class Gather:
    """A tensor is sharded along its rows over a group and the GEMM needs all of it."""

    group: str
    ranks: int
    stride: int
    overlaps: Mapping[str, str]
    """GEMM use -> name of the overlap this transfer can have there ('' for none)."""
    ring: frozenset[str] = frozenset()
    """Uses whose GEMM is cut in as many pieces as there are ranks, each starting when its piece has come."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the model a tensor stands."""

    label: str
    layer: int | None
    gather: Gather | None
    """How its rows are sharded, if they are."""


@dataclass(frozen=True, slots=True)
class LocalCopy:
    """One copy of a tensor as it lies on this rank: data, scale table and how it is turned."""

    data: str
    scale: str = ""
    layout: ScaleLayout | None = None
    turned: bool = False
    """Stored with the rows (the other contraction axis) last."""
    in_gemm_order: bool = True
    """The scale table is in the order the GEMM reads."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What `Lowering.deliver` left behind for the uses of one tensor."""

    name: str
    role: str
    copies: Mapping[str, LocalCopy]
    """use -> copy."""
    gather: Gather | None
    label: str
    layer: int | None


@dataclass(frozen=True, slots=True)
class Operand:
    """A GEMM operand: its pieces (one, or one per ring step), each with the scale table that belongs to it."""

    pieces: tuple[LocalCopy, ...]

    @property
    def copy(self) -> LocalCopy:
        """The whole operand; only meaningful with one piece."""
        return self.pieces[0]


def payload(copy: LocalCopy) -> str:
    """Family of a transfer that overlap support is stated for."""
    return "block_scaled" if copy.layout is not None and not copy.layout.per_tensor else "plain"


def travelling(copy: LocalCopy) -> tuple[str, ...]:
    """What travels: the data, and the scale table where each shard has its own."""
    if copy.layout is None or copy.layout.per_tensor:
        return (copy.data,)
    # A per-column scale of a row-sharded tensor was agreed over the shards and is the same on all of them.
    if copy.layout.columns is None and copy.turned:
        return (copy.data,)
    return (copy.data, copy.scale)
