"""How a command ends: which exit code, and what it says on standard error."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from hwmodel.cli import INTERRUPTED
from hwmodel.errors import HwModelError

BAD_INPUT = 2


class Terminated(KeyboardInterrupt):
    """The system asks the process to end. What is met on Ctrl-C is met here: no half file, rows done so far kept.

    Attributes:
        exit_code: 128 and the number of the signal, as shells report it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def end_tidily() -> None:
    """Let SIGTERM and SIGHUP end the command as Ctrl-C does. A signal that is ignored (``nohup``) stays ignored."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # the second is not on Windows
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _terminate)


def _terminate(number: int, _: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough
    raise Terminated(number)


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
            sys.stdout.flush()  # a stream that takes no more is noticed here, not when Python shuts down
    except HwModelError as error:
        raise fail([str(error)]) from None
    except Terminated as error:
        note("terminated")
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        note("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # whoever read this has seen enough
        raise typer.Exit(0) from None
