"""Output files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from hwmodel.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_PERMISSIONS = 0o666  # less what the process's umask takes away, as for any new file


def check_destination(path: Path, *, option: str = "output") -> None:
    """Refuse a path that cannot be written, before time is spent on what would go there.

    Args:
        path: where a file is to be written.
        option: what the user wrote the path after, for the message.

    Raises:
        ParameterError: a folder, a missing or forbidden parent folder, or a file that may not be replaced.
    """
    try:
        if path.is_dir():
            raise ParameterError(option, f"must be a file, but {str(path)!r} is a folder")
        if not path.parent.exists():
            raise ParameterError(option, f"cannot write {str(path)!r}: folder {str(path.parent)!r} does not exist")
        if not path.parent.is_dir():
            raise ParameterError(option, f"cannot write {str(path)!r}: {str(path.parent)!r} is not a folder")
        if path.is_file() and not path.stat().st_mode & _WRITABLE:
            raise ParameterError(option, f"cannot write {str(path)!r}: the file is write-protected")
        needed = path if _is_special(path) else path.resolve().parent
    except (OSError, ValueError, RuntimeError) as error:  # a name too long, a null character, a loop of links
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(option, f"cannot write {str(path)!r}: {_reason(error)}") from None
    if not os.access(needed, os.W_OK):
        raise ParameterError(option, f"cannot write {str(path)!r}: permission denied for {str(needed)!r}")


def write_text(path: Path, text: str, *, option: str = "output") -> None:
    """`write_bytes` of text in UTF-8 with its line ends as they are; what is no character is written as an escape."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"), option=option)


def write_bytes(path: Path, data: bytes, *, option: str = "output") -> None:
    """Write a file whole or not at all; see `atomic_file`."""
    with atomic_file(path, option=option) as file:
        file.write(data)


@contextmanager
def atomic_file(path: Path, *, option: str = "output") -> Iterator[BinaryIO]:
    """A binary file that takes ``path``'s place when the block ends well.

    On any exception, Ctrl-C included, ``path`` stays as it was and nothing is left beside it. A link is written
    through; something that is no ordinary file (``/dev/stdout``, a pipe) is written directly.

    Raises:
        ParameterError: as `check_destination`, or the system refuses (disk full, read-only).
    """
    check_destination(path, option=option)
    try:
        if _is_special(path):
            with path.open("wb") as special:
                yield special
            return
        target = path.resolve()
        temporary = target.with_name(f".hwmodel-{secrets.token_hex(8)}.tmp")
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PERMISSIONS), "wb") as file:
                yield file
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ParameterError(option, f"cannot write {str(path)!r}: {_reason(error)}") from None


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) else None
    return (text or str(error)).lower()
