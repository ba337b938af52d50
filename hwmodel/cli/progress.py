"""What goes on, on standard error, and only where a person looks at it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hwmodel.cli.guard import printable


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that says what is being done; silent where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text("loading")) as status:
        yield lambda text: status.update(Text(printable(text)))
