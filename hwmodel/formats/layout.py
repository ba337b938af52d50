"""What shares one scale: the one record behind every granularity."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.formats.catalogue import FORMATS
from hwmodel.units import ceil_div


@dataclass(frozen=True, slots=True)
class ScaleLayout:
    """Block of a two-dimensional tensor that shares one decode_scale.

    ``None`` for an extent means "all of that axis". The block is written for a tensor whose *last* axis is the
    contraction axis of the GEMM that reads it; for the other direction use `turned`.
    """

    rows: int | None
    """Rows in a block; None is all of them."""
    columns: int | None
    """Columns (along the contraction axis) in a block; None is all of them."""
    scale_format: str = "fp32"
    powers_of_two: bool = False

    def __post_init__(self) -> None:
        for field, extent in (("rows", self.rows), ("columns", self.columns)):
            if extent is not None and extent < 1:
                raise ParameterError(field, f"must be >= 1 or all, got {extent}")
        FORMATS.get(self.scale_format)

    @property
    def per_tensor(self) -> bool:
        """One scale for the whole tensor."""
        return self.rows is None and self.columns is None

    @property
    def serves_both_directions(self) -> bool:
        """A square or whole block transposes exactly, so one copy's scales fit both contraction axes."""
        return self.rows == self.columns

    def breaks_contraction(self, k: int) -> bool:
        """The scale changes along a contraction of ``k`` elements."""
        return self.columns is not None and self.columns < k

    def scale_shape(self, rows: int, columns: int) -> tuple[int, int]:
        """(row blocks, column blocks) of a (rows, columns) tensor; a partial last block has a scale of its own."""
        per_row_axis = 1 if self.rows is None else ceil_div(rows, self.rows)
        per_column_axis = 1 if self.columns is None else ceil_div(columns, self.columns)
        return per_row_axis, per_column_axis

    def scale_count(self, rows: int, columns: int) -> int:
        """Scales of a (rows, columns) tensor."""
        per_row_axis, per_column_axis = self.scale_shape(rows, columns)
        return per_row_axis * per_column_axis

    def scale_bytes(self, rows: int, columns: int) -> int:
        """Bytes of the scale table of a (rows, columns) tensor."""
        return ceil_div(self.scale_count(rows, columns) * FORMATS.get(self.scale_format).bits, 8)

    def turned(self) -> ScaleLayout:
        """The same blocks seen from the transposed tensor."""
        return ScaleLayout(self.columns, self.rows, self.scale_format, self.powers_of_two)

    def crosses_shard(self, *, rows_sharded: bool, columns_sharded: bool) -> bool:
        """A block reaches over a shard's edge, so its amax needs a collective."""
        return (self.rows is None and rows_sharded) or (self.columns is None and columns_sharded)
