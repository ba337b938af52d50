"""Names of the rules that scaling and rounding offer; no arrays, so that descriptions can be checked without numpy."""

from __future__ import annotations

OVERFLOWS = ("saturate", "inf")
"""Beyond max_finite: clamp to it, or give Inf (NaN in a format without Inf)."""
SCALE_ROUNDINGS = ("round_up", "floor")
"""How an E8M0 shared scale is found: the least that never saturates, or the exponent of amax less the format's."""
HISTORY_RULES = ("max", "latest", "mean")
"""Which amax a history stands for."""
