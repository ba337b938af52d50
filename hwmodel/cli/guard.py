"""How a command ends: which exit code, and what it says on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from hwmodel.errors import HwModelError

BAD_INPUT = 2
INTERRUPTED = 130


class Commands(TyperGroup):
    """The commands, with our exit codes: 0 done, 2 bad input, 130 after Ctrl-C. A bug keeps its traceback and 1."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        """Read the arguments; ``--help`` is printed here."""
        with _exits():
            return super().make_context(info_name, args, *rest, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _exits():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Commands in the order they were written."""
        return list(self.commands)


def printable(text: str) -> str:
    """``text`` with characters that could steer a terminal written as escapes; line ends stay."""
    return "".join(
        character
        if character.isprintable() or character == "\n"
        else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )


def note(text: str) -> None:
    """Say something beside the results."""
    typer.echo(printable(text), err=True)


def fail(messages: Sequence[str]) -> typer.Exit:
    """Say what is wrong with the input; raise what this gives."""
    for message in messages:
        note(message)
    return typer.Exit(BAD_INPUT)


@contextmanager
def _exits() -> Iterator[None]:
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # a reader that went away is noticed here, not when Python shuts down
    except HwModelError as error:
        raise fail([str(error)]) from None
    except KeyboardInterrupt:
        note("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        _leave_quietly()
        raise typer.Exit(0) from None


def _leave_quietly() -> None:
    """Give what is still to be written to nobody, so that nothing complains while Python shuts down."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(nowhere, stream.fileno())
        except (OSError, ValueError):  # not a file of the system, as in tests
            continue
    os.close(nowhere)
