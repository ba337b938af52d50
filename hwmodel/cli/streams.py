"""The process's own streams and what the environment says of the terminal, made safe to use."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING

from hwmodel.errors import ParameterError

if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer

_LARGEST = 10_000
"""Columns and lines beyond which a terminal is not believed."""


class _Results(io.FileIO):
    """Standard output. A write that fails raises; later ones are dropped: Python flushes once more at exit."""

    failed = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some of ``data``, waiting for a reader where the stream itself would not.

        Raises:
            BrokenPipeError: the reader went away.
            ParameterError: the system refuses: disk full, stream closed.
        """
        try:
            while not self.failed:
                written: int | None = super().write(data)
                if written is not None:
                    return written
                select.select([], [self], [])
        except BrokenPipeError:
            self.failed = True
            raise
        except OSError as error:
            self.failed = True
            reason = "it is closed" if error.errno == errno.EBADF else (error.strerror or str(error)).lower()
            raise ParameterError("standard output", f"cannot be written: {reason}") from None
        return memoryview(data).nbytes


class _Notes(io.FileIO):
    """Standard error: what cannot be written is dropped, as there is nowhere to say so."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write ``data`` if the system takes it."""
        try:
            written: int | None = super().write(data)
        except OSError:
            written = None
        return memoryview(data).nbytes if written is None else written


def guard_streams() -> None:
    """Replace standard output and error by streams that fail in a way a command can end well after.

    Either may be closed, full or a pipe without a reader. Characters that a stream cannot hold become escapes.
    """
    sys.stdout = _guarded(sys.stdout, _Results)
    sys.stderr = _guarded(sys.stderr, _Notes)


def tidy_environment() -> None:
    """Forget what COLUMNS and LINES say unless it is the size of a terminal, as libraries take it at its word."""
    for name in ("COLUMNS", "LINES"):
        text = os.environ.get(name, "")
        if text and not (text.isascii() and text.isdigit() and len(text) < 10 and 0 < int(text) <= _LARGEST):
            del os.environ[name]


def _guarded(stream: TextIO | None, kind: type[io.FileIO]) -> TextIO:
    """``stream`` over a raw file of ``kind``; one that is no file of the system stays as it is."""
    if stream is None:  # closed before Python started; reading is all this descriptor can do
        return io.TextIOWrapper(io.BufferedWriter(_raw(kind, os.open(os.devnull, os.O_RDONLY))), encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    if type(getattr(stream.buffer, "raw", stream.buffer)) is not io.FileIO:  # a console of Windows
        stream.reconfigure(errors="backslashreplace")
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(_raw(kind, stream.fileno())),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _raw(kind: type[io.FileIO], descriptor: int) -> io.FileIO:
    return kind(descriptor, "w", closefd=False)
