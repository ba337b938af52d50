"""Every file that a workload and devices are read from, also those that only another file names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.config.extends import bases
from hwmodel.config.loader import load
from hwmodel.config.locate import locate
from hwmodel.config.shorthand import edited, expanded
from hwmodel.config.workload_schema import DEFAULT_SOFTWARE
from hwmodel.errors import HwModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hwmodel.config.facts import Edit
    from hwmodel.config.locate import Kind


def files_read(workload: str, devices: Iterable[str], edits: Iterable[Iterable[Edit]]) -> Iterator[Path]:
    """The files of a workload under each of several sets of edits, and of devices, as far as they can be followed.

    These are the files themselves, those they extend, the file of the workload's model and that of its software set. A
    mistake in a file or an edit ends its own trail and is left to whoever loads it.
    """
    for device in devices:
        yield from _followed(_with_bases("devices", device))
    for changes in edits:
        yield from _followed(_of_workload(workload, changes))


def _of_workload(name_or_path: str, edits: Iterable[Edit]) -> Iterator[Path]:
    file = locate("workloads", name_or_path)
    yield file
    document, _ = expanded(edited(load(file), edits, None))
    software = document.get(("software", "set"))
    yield from _followed(_with_bases("software", software if isinstance(software, str) else DEFAULT_SOFTWARE))
    model = document.get(("model", "base"))
    if isinstance(model, str):
        yield locate("models", model, relative_to=file.parent)


def _with_bases(kind: Kind, name_or_path: str) -> Iterator[Path]:
    file = locate(kind, name_or_path)
    yield file
    yield from bases(kind, file)


def _followed(trail: Iterator[Path]) -> Iterator[Path]:
    """A trail up to its first mistake."""
    try:
        yield from trail
    except HwModelError:
        return
