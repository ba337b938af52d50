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
PRESET = (
    "replaces the preset of the file; other axes of the file's recipe section other than exceptions and fusion are not "
    "kept; --set recipe.AXIS still overrides"
)
"""What a preset on the command line does, in the help of the options that take one."""


def names(text: str | None, option: str) -> list[str]:
    """Names parted by commas.

    Raises:
        ParameterError: an empty name.
    """
    from hwmodel.sweeps.points import split_values

    return [] if text is None else list(split_values(text, option))
