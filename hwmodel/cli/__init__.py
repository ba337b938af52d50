"""The command line. Light, so that Ctrl-C is met before anything heavy loads; the commands are in `program`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hwmodel.cli.program import app as app

__all__ = ["INTERRUPTED", "app", "main"]

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def main() -> None:
    """Run the command line with the process's arguments; ends the process."""
    try:
        from hwmodel.cli.program import run

        run()
    except KeyboardInterrupt:  # while loading; a command that has begun says that it was interrupted
        sys.exit(INTERRUPTED)


def __getattr__(name: str) -> object:
    """``app``, loaded when it is first asked for (PEP 562)."""
    if name == "app":
        from hwmodel.cli.program import app

        return app
    raise AttributeError(f"module 'hwmodel.cli' has no attribute {name!r}")
