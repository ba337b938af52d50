"""Speedups over BF16 that others published, to read beside a result. No computation uses them.

Nothing is fitted to these numbers and no prediction looks at them; they are printed and written as they stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CLAIM: Final = "claim"
MEASURED: Final = "measured"


@dataclass(frozen=True, slots=True)
class PublishedSpeedup:
    """One published speedup of a training step over BF16, or the range of several runs."""

    recipe: str
    kind: str
    """``claim``: printed without machine and layout; ``measured``: step times or rates of both precisions printed."""
    low: float
    high: float
    conditions: str
    """Machine and layout."""
    source: str
    device: str = ""
    """Name of our device file for the machine; empty where there is none."""

    @property
    def text(self) -> str:
        """``1.52-1.60x``, or one number."""
        return f"{self.low:.2f}x" if self.low == self.high else f"{self.low:.2f}-{self.high:.2f}x"


_CLAIM_SOURCE = "headline figures; no report of the runs behind them"
_UNSTATED = "machine and layout unstated"
_BENCHMARKS = "NVIDIA/dgxc-benchmarking"

PUBLISHED: Final[Mapping[str, tuple[PublishedSpeedup, ...]]] = {
    "Llama 3.1 405B": (
        PublishedSpeedup("delayed", CLAIM, 1.62, 1.62, _UNSTATED, _CLAIM_SOURCE),
        PublishedSpeedup("current", CLAIM, 1.58, 1.58, _UNSTATED, _CLAIM_SOURCE),
        PublishedSpeedup("mxfp8", CLAIM, 1.52, 1.52, f"{_UNSTATED}; projected after software work", _CLAIM_SOURCE),
        PublishedSpeedup("mxfp8", CLAIM, 1.36, 1.36, f"{_UNSTATED}; today", _CLAIM_SOURCE),
        PublishedSpeedup(
            "delayed",
            MEASURED,
            1.52,
            1.53,
            "GB200, 128 and 256 GPUs; sequence 8192, tp 4, pp 8, cp 2, vp 8",
            f"{_BENCHMARKS} v25.05, llama3.1/README.md",
        ),
        PublishedSpeedup(
            "delayed",
            MEASURED,
            1.52,
            1.60,
            "H100, 512 to 2304 GPUs; sequence 8192, tp 8, pp 8 or 9, cp 2, vp 7 or 8",
            f"{_BENCHMARKS} v24.11.1 to v25.05.01, llama3.1/README.md and README_405b.md",
            device="h100",
        ),
    ),
}
"""By name of the model."""


def published_speedups(model: str) -> tuple[PublishedSpeedup, ...]:
    """What was published for training a model, claims first."""
    return PUBLISHED.get(model, ())


def has_published_step(model: str, device: str) -> bool:
    """Whether somebody published a measured step of this model on this device."""
    return any(entry.device == device for entry in published_speedups(model) if entry.kind == MEASURED)
