"""Output files, checked before anything is computed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import typer

from hwmodel.errors import ParameterError
from hwmodel.report.files import check_destination, write_text

STANDARD_OUTPUT = "-"
SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "--json": (".json",),
    "--timeline": (".html",),
    "--trace": (".json", ".json.gz"),
    "--out": (".csv", ".json"),
    "OUT": (".yaml", ".yml"),
}
"""Endings of the file each option writes."""


def check_outputs(outputs: Mapping[str, str | Path | None], inputs: Iterable[Path] = ()) -> None:
    """Refuse output files that could not be written or would replace something they should not.

    Args:
        outputs: option -> what stood behind it; None where the option was not given, and ``-`` is standard output.
        inputs: files that are read; asked for only if an output is there already.

    Raises:
        ParameterError: an unknown ending, a folder that does not exist, a path written twice, or an input.
    """
    taken: dict[Path, str] = {}
    replaced: dict[str, Path] = {}
    for option, given in outputs.items():
        if given is None or given == STANDARD_OUTPUT:
            continue
        path = Path(given)
        if not path.name.lower().endswith(SUFFIXES[option]) and not _is_special(path):
            raise ParameterError(option, f"must end in {' or '.join(SUFFIXES[option])}, got {str(path)!r}")
        check_destination(path, option=option)
        if _is_special(path):
            continue
        real = path.resolve()
        if real in taken:
            raise ParameterError(option, f"{str(path)!r} is what {taken[real]} writes; give each its own file")
        taken[real] = option
        if path.exists():
            replaced[option] = path
    for read in inputs if replaced else ():
        for option, path in replaced.items():
            if _is_same(path, read):
                raise ParameterError(option, f"{str(path)!r} is an input of this command and would be overwritten")


def inputs(workload: str, device: str, sets: Sequence[str]) -> Iterator[Path]:
    """Files that a workload with edits and a device are read from, as far as they can be followed."""
    from hwmodel.config.inputs import files_read

    return files_read(workload, [device], [[text for text in sets if not text.startswith("device.")]])


def write_json(target: str, data: Mapping[str, object]) -> None:
    """One JSON object to a file or to standard output."""
    text = json_text(data)
    if target == STANDARD_OUTPUT:
        typer.echo(text, nl=False)
    else:
        write_text(Path(target), text, option="--json")


def json_text(data: Mapping[str, object]) -> str:
    """JSON of plain values, in ASCII, the same for equal values."""
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _is_special(path: Path) -> bool:
    """Whether this is a pipe or a device, which may have any name."""
    try:
        return path.exists() and not path.is_file() and not path.is_dir()
    except (OSError, ValueError):
        return False


def _is_same(path: Path, read: Path) -> bool:
    try:
        return path.exists() and read.exists() and path.samefile(read)
    except OSError:
        return False
