"""Cuts a decoder over pipeline stages: which layers, and whether embedding and head, each stage holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hwmodel.graph import Layout

EMBEDDING = -1
HEAD = -2


@dataclass(frozen=True, slots=True)
class Stage:
    """The model pieces of one pipeline rank, first to last; a piece is a run of layer numbers, EMBEDDING or HEAD."""

    index: int
    pieces: tuple[tuple[int, ...], ...]

    @property
    def layers(self) -> tuple[int, ...]:
        """Layer numbers this stage holds."""
        return tuple(unit for piece in self.pieces for unit in piece if unit >= 0)

    @property
    def embeds(self) -> bool:
        """Holds the token embedding."""
        return any(EMBEDDING in piece for piece in self.pieces)

    @property
    def heads(self) -> bool:
        """Holds the output head."""
        return any(HEAD in piece for piece in self.pieces)


def piece_sizes(units: int, pieces: int) -> tuple[int, ...]:
    """Units per piece, as even as can be; the ends, where embedding and head sit, are the smaller, last first."""
    base, extra = divmod(units, pieces)
    sizes = [base + 1] * pieces if extra else [base] * pieces
    short = pieces - extra if extra else 0
    ends = [index for pair in zip(range(pieces - 1, -1, -1), range(pieces), strict=True) for index in pair]
    for index in list(dict.fromkeys(ends))[:short]:
        sizes[index] = base
    return tuple(sizes)


def stages(layers: int, layout: Layout) -> tuple[Stage, ...]:
    """Every pipeline rank's pieces: piece v of rank r is piece v * pp + r of the model (interleaved order)."""
    units = (EMBEDDING, *range(layers), HEAD)
    sizes = piece_sizes(len(units), layout.pp * layout.vp)
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    pieces = tuple(units[start : start + size] for start, size in zip(starts, sizes, strict=True))
    return tuple(
        Stage(rank, tuple(pieces[turn * layout.pp + rank] for turn in range(layout.vp))) for rank in range(layout.pp)
    )
