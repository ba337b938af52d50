"""Measured GEMMs as demands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.errors import nearest
from hwmodel.formats import FORMATS
from hwmodel.graph.demand import Gemm
from hwmodel.measured.case import Case, Skip
from hwmodel.units import ceil_div

if TYPE_CHECKING:
    from hwmodel.config.measured import Sources
    from hwmodel.device import Device
    from hwmodel.measured.rows import Row

TIME = "time_us"
SCALE_BYTES = 4
"""Scales that vector lanes apply are fp32."""


def case(row: Row, device: Device, sources: Sources) -> Case | Skip:
    """What ``row`` asks of ``device``."""
    reading = sources.reading(row.text)
    a, b, out = (sources.formats.get(name, name) for name in _formats(row))
    a, b = (reading.format or name for name in (a, b))
    for name in (a, b, out):
        if name not in FORMATS:
            close = nearest(name, FORMATS.names())
            return Skip(f"format '{name}' is not known" + (f"; did you mean {close!r}?" if close else ""))
    missing = sorted({a, b} - device.matrix_formats)
    if missing:
        return Skip(f"device has no matrix rate for {', '.join(missing)}")
    m, n, k, batch = (row.counts[name] for name in ("m", "n", "k", "batch"))
    blocks = [_blocks(name, k) for name in (a, b)]
    outer = reading.promote_every
    demand = Gemm(
        m,
        n,
        k,
        a,
        b,
        out,
        batch=batch,
        a_scale_bytes=batch * m * (SCALE_BYTES * ceil_div(k, outer) if outer else blocks[0]),
        b_scale_bytes=batch * (SCALE_BYTES * ceil_div(n, outer) * ceil_div(k, outer) if outer else n * blocks[1]),
        native_block_scales=any(blocks),
        promote_every=outer,
        epilogue_scale_vectors=1 if outer else 0,
    )
    label = (a if a == b else f"{a} by {b}") + (f", {outer}-blocks" if outer else "")
    return Case(demand, label, f"{batch} of {m}x{n}x{k}" if batch > 1 else f"{m}x{n}x{k}")


def _formats(row: Row) -> tuple[str, str, str]:
    """Of the operands and the output; where a source does not say, the output is as wide as half precision."""
    a, b = row.text["dtype_a"], row.text["dtype_b"]
    return a, b, row.text["dtype_out"] or "bf16"


def _blocks(name: str, k: int) -> int:
    """Shared scales of one byte along ``k`` elements of a format that has them."""
    columns = FORMATS.get(name).shared_scale_columns
    return ceil_div(k, columns) if columns else 0
