"""Where files called by name lie: the checkout's folders first, then the copy packed in the wheel."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final, Literal

from hwmodel.config.loader import shown
from hwmodel.errors import ConfigError, Problem, RegistryError

Kind = Literal["devices", "workloads", "models", "software", "studies"]

_PACKAGE = Path(__file__).resolve().parent.parent
_FOLDERS: Final[dict[Kind, str]] = {
    "devices": "devices",
    "workloads": "workloads",
    "models": "workloads/models",
    "software": "workloads/software",
    "studies": "workloads/studies",
}
_FAMILIES: Final[dict[Kind, str]] = {
    "devices": "device",
    "workloads": "workload",
    "models": "model",
    "software": "software set",
    "studies": "study",
}


def is_path(name_or_path: str) -> bool:
    """Whether the text is a path (it has a slash or ends in .yaml or .yml), not a name."""
    return "/" in name_or_path or "\\" in name_or_path or name_or_path.endswith((".yaml", ".yml"))


def locate(kind: Kind, name_or_path: str | Path, *, relative_to: Path | None = None) -> Path:
    """The file that a name or a path stands for.

    Args:
        kind: the family that names are looked up in.
        name_or_path: a name such as ``npu``, or a path such as ``./npu.yaml``; a ``Path`` is always a path.
        relative_to: folder that relative paths start from, if not the current one.

    Raises:
        RegistryError: a name the family does not know.
        ConfigError: a path that leads to no file.
    """
    if isinstance(name_or_path, str) and not is_path(name_or_path):
        return _named(kind, name_or_path)
    path = Path(name_or_path) if relative_to is None else relative_to / name_or_path
    try:
        found, folder = path.exists(), path.is_dir()
    except (OSError, ValueError) as error:
        raise _error(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not found:
        raise _error(path, "no such file")
    if folder:
        raise _error(path, "is a folder, must be a YAML file")
    return path


def names(kind: Kind) -> tuple[str, ...]:
    """All names of a family, sorted."""
    return tuple(sorted({path.stem for folder in folders(kind) for path in folder.glob("*.yaml")}))


def folders(kind: Kind) -> tuple[Path, ...]:
    """The folders that names of a family are looked up in, first match first."""
    checkout = _PACKAGE.parent
    roots = [checkout, _PACKAGE / "_data"] if _is_checkout(checkout) else [_PACKAGE / "_data"]
    return tuple(folder for root in roots if (folder := root / _FOLDERS[kind]).is_dir())


def _named(kind: Kind, name: str) -> Path:
    """The file of a name."""
    known = names(kind)
    if name not in known:
        raise RegistryError(_FAMILIES[kind], name, known)
    return next(path for folder in folders(kind) if (path := folder / f"{name}.yaml").is_file())


def data_folder(name: str) -> Path:
    """A folder of shipped data that is not looked up by name, such as the measured rows."""
    checkout = _PACKAGE.parent
    return (checkout if _is_checkout(checkout) else _PACKAGE / "_data") / name


def _is_checkout(folder: Path) -> bool:
    """Whether ``folder`` is a source checkout of this project."""
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8")).get("project", {})
    except (OSError, ValueError):
        return False
    return isinstance(project, dict) and project.get("name") == "hwmodel"


def _error(path: Path, message: str) -> ConfigError:
    """One problem with a path."""
    return ConfigError(shown(path), (Problem("", None, message),))
