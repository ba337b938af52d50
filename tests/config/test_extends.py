"""A variant is its base with its own keys on top, and each value knows its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hwmodel.config import locate
from hwmodel.config.extends import load_extended
from hwmodel.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Variants beside a package that ships one device."""
    shipped = tmp_path / "hwmodel" / "_data" / "devices"
    shipped.mkdir(parents=True)
    (shipped / "npu.yaml").write_text("hbm:\n  rate: 1\n  size: 2\ncores: 24\n")
    monkeypatch.setattr(locate, "_PACKAGE", tmp_path / "hwmodel")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_extended("devices", path)
    return str(caught.value)


def test_a_variant_of_a_variant_of_a_named_device(folder: Path) -> None:
    write(folder / "sub" / "wide.yaml", "extends: npu\nhbm: {rate: 5}\n")
    top = write(folder / "top.yaml", "# mine\nextends: sub/wide.yaml\ncores: 48\n")
    document = load_extended("devices", top)
    assert document.data == {"hbm": {"rate": 5, "size": 2}, "cores": 48}
    assert document.source == "top.yaml"
    assert document.where(("cores",)) == ("top.yaml", 3)
    assert document.where(("hbm", "rate")) == ("sub/wide.yaml", 2)
    assert document.where(("hbm", "size")) == ("npu.yaml", 3)


def test_a_file_that_extends_nothing_is_itself(folder: Path) -> None:
    assert load_extended("devices", write(folder / "a.yaml", "x: 1\n"), source="a").source == "a"


def test_a_base_path_starts_from_the_file_that_names_it(folder: Path) -> None:
    write(folder / "sub" / "base.yaml", "x: 1\n")
    variant = write(folder / "sub" / "variant.yaml", "extends: base.yaml\n")
    assert load_extended("devices", variant).data == {"x": 1}


def test_a_circle_is_refused_with_the_files_in_it(folder: Path) -> None:
    write(folder / "a.yaml", "extends: b.yaml\n")
    write(folder / "b.yaml", "x: 1\nextends: ./a.yaml\n")
    start = write(folder / "start.yaml", "extends: a.yaml\n")
    assert refusal(start) == "b.yaml:2: extends: files extend each other in a circle: a.yaml -> b.yaml -> a.yaml"
    own = write(folder / "own.yaml", "extends: own.yaml\n")
    assert refusal(own) == "own.yaml:1: extends: files extend each other in a circle: own.yaml -> own.yaml"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("extends: npv\n", "a.yaml:1: extends: unknown device 'npv'; did you mean 'npu'? known: npu"),
        ("x: 1\nextends: none.yaml\n", "a.yaml:2: extends: none.yaml: no such file"),
        ("extends: [npu]\n", "a.yaml:1: extends: must be a name or a path, got a sequence"),
        ("extends:\n", "a.yaml:1: extends: must be a name or a path, got null"),
        ("extends: ''\n", "a.yaml:1: extends: must be a name or a path, got ''"),
    ],
)
def test_a_base_that_is_none_is_refused(folder: Path, text: str, said: str) -> None:
    assert refusal(write(folder / "a.yaml", text)) == said


def test_a_mistake_in_a_base_names_the_base(folder: Path) -> None:
    write(folder / "base.yaml", "x: 1\nx: 2\n")
    assert refusal(write(folder / "a.yaml", "extends: base.yaml\n")) == "base.yaml:2: x: written twice, first at line 1"
