"""Values as people read them, and names as plain text in places that would take them for markup."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from hwmodel.units import PICOSECONDS_PER_SECOND, format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

PICOSECONDS_PER_MILLISECOND = PICOSECONDS_PER_SECOND // 1000
_LONGEST = 160


def plain(text: str) -> str:
    """Text that Plotly, which reads a little HTML in every label, and a browser show as it is; very long is cut."""
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return html.escape(shown)


def duration(picoseconds: int) -> str:
    """A time in the unit that fits: ``1.230 ms``."""
    return format_seconds(picoseconds / PICOSECONDS_PER_SECOND)


def count(amount: float) -> str:
    """A count with thousands apart; a mean that is no whole number to two decimals."""
    return f"{amount:,}" if isinstance(amount, int) else f"{amount:,.2f}"


def milliseconds(picoseconds: int) -> str:
    """Milliseconds to three decimals with thousands apart, no unit: ``1,234.568``."""
    return f"{picoseconds / PICOSECONDS_PER_MILLISECOND:,.3f}"


def exact_decimal(amount: int, decimals: int) -> str:
    """``amount`` / 10**decimals as decimal text, every digit exact."""
    sign = "-" if amount < 0 else ""
    whole, rest = divmod(abs(amount), 10**decimals)
    return f"{sign}{whole}.{rest:0{decimals}d}"


def exact_milliseconds(picoseconds: int) -> str:
    """Milliseconds with every digit and thousands apart, no unit: ``1,234.567890123``."""
    whole, point, rest = exact_decimal(picoseconds, 9).partition(".")
    sign = "-" if whole.startswith("-") else ""
    return f"{sign}{int(whole.removeprefix('-')):,}{point}{rest}"


def flops(count: float) -> str:
    """Floating-point operations: ``1.23 TFLOP``."""
    return _scaled(count, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"))


def percent(part: int, whole: int) -> str:
    """A share in percent with one decimal and its sign: ``12.3 %``; a whole of 0 gives ``0.0 %``."""
    return f"{100 * part / whole if whole else 0:.1f} %"


def times(factor: float | None) -> str:
    """A speedup: ``1.62x``, or a dash where there is none."""
    return "-" if factor is None else f"{factor:.2f}x"


def _scaled(count: float, names: Sequence[str]) -> str:
    power = 0
    while power < len(names) - 1 and round(abs(count) / 1000**power, 2) >= 1000:
        power += 1
    return f"{count / 1000**power:.2f} {names[power]}" if power else f"{count:.0f} {names[0]}"
