"""Blocks that share a scale, on arrays: the largest magnitude of each, and a table spread over its elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hwmodel.formats.layout import ScaleLayout

Array = np.ndarray[Any, np.dtype[Any]]


def flat(x: Array) -> Array:
    """The array with all extents but the last joined.

    Shapes:
        x: (..., columns) -> result: (rows, columns)
    """
    return x.reshape(-1, x.shape[-1])


def block_amax(x: Array, layout: ScaleLayout) -> Array:
    """Largest magnitude in each block; NaN where a block holds one.

    Shapes:
        x: (rows, columns) -> result: (row blocks, column blocks), float32
    """
    rows, columns = x.shape
    table = np.abs(np.asarray(x, dtype=np.float32))
    table = np.maximum.reduceat(table, np.arange(0, rows, layout.rows or rows), axis=0)
    return np.asarray(np.maximum.reduceat(table, np.arange(0, columns, layout.columns or columns), axis=1))


def spread(table: Array, layout: ScaleLayout, shape: tuple[int, ...]) -> Array:
    """Each block's entry repeated over its elements; the last block may be partial.

    Shapes:
        table: (row blocks, column blocks), or any shape with as many elements in that order -> result: ``shape``
    """
    rows, columns = shape
    entries = table.reshape(layout.scale_shape(rows, columns))
    entries = np.repeat(entries, layout.rows or rows, axis=0)[:rows]
    return np.asarray(np.repeat(entries, layout.columns or columns, axis=1)[:, :columns])


def scaled(x: Array, factors: Array) -> Array:
    """The float32 product; Inf where it is too large for float32."""
    with np.errstate(over="ignore"):
        return np.asarray(np.asarray(x, dtype=np.float32) * np.asarray(factors, dtype=np.float32))
