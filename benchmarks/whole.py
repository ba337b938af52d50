"""How long whole commands take: a comparison of five recipes for 405B, and ``--help`` beside importing typer.

Run ``python benchmarks/whole.py [ROUNDS]``. It prints medians and ratios, and ends with 1 where a target is missed. The
two sides of a ratio alternate in one run, so that a busy machine slows both.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
COMMAND = (sys.executable, str(ROOT / "cli.py"))
COMPARE = (
    *COMMAND,
    *("compare", "llama3_405b", "--device", "npu", "--recipes", "bf16,delayed,current,mxfp8,hif8_delayed"),
)
HELP = (*COMMAND, "--help")
IMPORT = (sys.executable, "-c", "import typer")
COMPARE_TARGET_SECONDS = 5.0
COMPARE_TARGET_BYTES = 500_000_000
HELP_TARGET_RATIO = 3.0
_KIBIBYTE = 1024


def seconds(command: Sequence[str]) -> float:
    """Wall time of one run."""
    start = time.perf_counter()
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def peak_bytes() -> int:
    """The most memory that any child so far held."""
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak if sys.platform == "darwin" else peak * _KIBIBYTE


def main(rounds: int) -> int:
    """Measure and print; 1 if a target is missed."""
    for command in (HELP, IMPORT):  # the first run reads files from disk and may compile them
        seconds(command)
    pairs = [(seconds(HELP), seconds(IMPORT)) for _ in range(rounds)]
    shown, imported = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    compared = statistics.median(seconds(COMPARE) for _ in range(max(1, rounds // 5)))
    peak = peak_bytes()
    lines = (
        f"hwmodel --help      {1000 * shown:8.1f} ms   median of {rounds}",
        f"import typer        {1000 * imported:8.1f} ms   median of {rounds}",
        f"  ratio             {ratio:8.2f}      target under {HELP_TARGET_RATIO}",
        f"compare 405B        {compared:8.2f} s    target under {COMPARE_TARGET_SECONDS} s",
        f"  memory            {peak / 1e6:8.1f} MB   target under {COMPARE_TARGET_BYTES / 1e6:.0f} MB",
    )
    sys.stdout.write("\n".join(lines) + "\n")
    met = ratio < HELP_TARGET_RATIO and compared < COMPARE_TARGET_SECONDS and peak < COMPARE_TARGET_BYTES
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
