"""``hwmodel devices|workloads|models|recipes|formats|software list|show NAME``: what there is to choose from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import typer

from hwmodel.cli.guard import Commands

FAMILIES: Final = {
    "devices": ("device", "Devices there are, and where each number of one comes from."),
    "workloads": ("workload", "Ready workloads."),
    "models": ("model", "Model architectures."),
    "recipes": ("recipe", "Scaling recipes: the presets and their axes."),
    "formats": ("number format", "Number formats."),
    "software": ("software set", "Software sets, and since when each entry exists."),
}
"""Family -> what one of it is called, help."""
_FILES: Final = ("devices", "workloads")
"""Families of which one may be a file of the user's."""


def commands(family: str) -> typer.Typer:
    """``list`` and ``show`` of one family."""
    one, text = FAMILIES[family]
    app = typer.Typer(name=family, cls=Commands, help=text, no_args_is_help=True, rich_markup_mode=None)
    app.command("list", help=f"List every {one} by name.")(_list_command(family))
    app.command("show", help=f"Show one {one}.")(_show_command(family))
    return app


def _list_command(family: str) -> Callable[[], None]:
    def run() -> None:
        from hwmodel.cli.entries import LISTS
        from hwmodel.cli.guard import printable
        from hwmodel.cli.show import console, folding, put
        from hwmodel.report.tables import list_table

        columns, lines = LISTS[family]()
        cells = [[printable(cell) for cell in line] for line in lines]
        texts = [name for place, name in enumerate(columns) if place and any(" " in line[place] for line in cells)]
        put(console(), folding(list_table(columns, cells, left=columns), *texts))

    return run


def _show_command(family: str) -> Callable[[str], None]:
    path = family in _FILES
    metavar = "NAME|PATH" if path else "NAME"
    text = "One of the names that list prints" + (", or a path." if path else ".")

    def run(
        name: str = typer.Argument(metavar=metavar, help=text, show_default=False),
    ) -> None:
        from hwmodel.cli.entries import SHOWS
        from hwmodel.cli.show import console

        SHOWS[family](console(), name)

    return run
