"""A tensor as the graph knows it: name, shape and format, no values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.formats import FORMATS
from hwmodel.units import ceil_div


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, shape (of this rank's part) and number format of one tensor."""

    name: str
    shape: tuple[int, ...]
    format: str

    def __post_init__(self) -> None:
        if any(extent < 1 for extent in self.shape):
            raise ParameterError("shape", f"tensor '{self.name}': every extent must be >= 1, got {self.shape}")
        FORMATS.get(self.format)

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of the data, sub-byte formats rounded up once per tensor."""
        return ceil_div(self.elements * FORMATS.get(self.format).bits, 8)

    @property
    def rows(self) -> int:
        """Product of all extents but the last."""
        return math.prod(self.shape[:-1])

    @property
    def columns(self) -> int:
        """The last extent."""
        return self.shape[-1] if self.shape else 1
