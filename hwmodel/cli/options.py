"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Workload = Annotated[
    str,
    typer.Argument(metavar="WORKLOAD", help="Name of a ready workload, or a path (./mine.yaml).", show_default=False),
]
Device = Annotated[
    str, typer.Option("--device", metavar="NAME|PATH", help="Name of a device, or a path.", show_default=False)
]
Sets = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Change one value, such as batch.sequence=4096 or 'device.resources.hbm.bytes_per_second=2 TB/s'. "
        "May be repeated.",
        show_default=False,
    ),
]
Json = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="FILE|-", help="Write the result as JSON; - is standard output.", show_default=False
    ),
]
Timeline = Annotated[
    Path | None,
    typer.Option("--timeline", metavar="FILE.html", help="Draw the timeline as a web page.", show_default=False),
]
MinMicroseconds = Annotated[
    float, typer.Option("--min-microseconds", metavar="T", help="Leave out measured rows that took less.")
]
DEFAULT_MIN_MICROSECONDS = 10.0
"""Below it resolution and launches are what was measured."""
PRESET = (
    "replaces the preset of the file; other axes of the file's recipe section other than exceptions and fusion are not "
    "kept; --set recipe.AXIS still overrides"
)
"""What a preset on the command line does, in the help of the options that take one."""


def shortest_seconds(min_microseconds: float) -> float:
    """What ``--min-microseconds`` means, in seconds.

    Raises:
        ParameterError: not a number, or below 0.
    """
    from hwmodel.errors import ParameterError
    from hwmodel.measured.rows import MICROSECOND

    if not 0 <= min_microseconds < float("inf"):
        raise ParameterError("--min-microseconds", f"must be a number >= 0, got {min_microseconds}")
    return min_microseconds * MICROSECOND


def names(text: str | None, option: str) -> list[str]:
    """Names parted by commas.

    Raises:
        ParameterError: an empty name.
    """
    from hwmodel.sweeps.points import split_values

    return [] if text is None else list(split_values(text, option))
