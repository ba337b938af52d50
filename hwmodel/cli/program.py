"""The commands, put together. They import what they need when they run, so that ``--help`` is quick."""

from __future__ import annotations

import signal
from typing import Annotated

import typer

from hwmodel import __version__
from hwmodel.cli import calibrate, catalogue, compare, diff, schema, simulate, sweep, validate
from hwmodel.cli.guard import Commands, end_tidily
from hwmodel.cli.streams import guard_streams, tidy_environment

app = typer.Typer(
    name="hwmodel",
    cls=Commands,
    help="hwmodel predicts training steps: how fast an 8-bit scaling recipe trains a model on an accelerator, and why.",
    epilog="Exit codes: 0 done; 2 bad input or a combination that cannot exist; 130 stopped with Ctrl-C, 143 by the "
    "system; 1 a bug.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help: it needs no import, and reads the same in a pipe
    pretty_exceptions_enable=False,  # an unexpected error is our bug and keeps its traceback
)
app.command("simulate")(simulate.simulate)
app.command("compare")(compare.compare)
app.command("sweep")(sweep.sweep)
app.command("diff")(diff.diff)
app.command("validate")(validate.validate)
app.command("calibrate")(calibrate.calibrate)
app.command("schema")(schema.schema)
for _family in catalogue.FAMILIES:
    app.add_typer(catalogue.commands(_family))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hwmodel {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def run() -> None:
    """Run the command that the process's arguments name; ends the process."""
    guard_streams()
    tidy_environment()
    end_tidily()
    try:
        app(prog_name="hwmodel")
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to stop, only Python shutting down
