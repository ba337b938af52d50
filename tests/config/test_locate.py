"""Names lead to shipped files, paths to the user's own; what leads nowhere says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwmodel.config import locate as module
from hwmodel.config.locate import folders, is_path, locate, names
from hwmodel.errors import ConfigError, RegistryError


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with its package, and a packed copy inside."""
    root = tmp_path / "checkout"
    for path, text in {
        "pyproject.toml": '[project]\nname = "hwmodel"\n',
        "devices/npu.yaml": "from: checkout",
        "devices/gpu.yaml": "from: checkout",
        "devices/notes.txt": "",
        "workloads/llama.yaml": "",
        "workloads/models/llama3_8b.yaml": "",
        "workloads/software/mature.yaml": "",
        "workloads/studies/guard.yaml": "",
        "hwmodel/_data/devices/npu.yaml": "from: package",
        "hwmodel/_data/devices/old.yaml": "from: package",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    monkeypatch.setattr(module, "_PACKAGE", root / "hwmodel")
    return root


def test_names_have_no_slash_and_no_ending() -> None:
    assert [is_path(text) for text in ("npu", "npu.v2", "./npu", "a/b", "npu.yaml", "npu.yml", "a\\b")] == [
        False
    ] * 2 + [True] * 5


def test_a_name_is_looked_up_in_the_checkout_and_then_in_the_package(checkout: Path) -> None:
    assert locate("devices", "npu") == checkout / "devices" / "npu.yaml"
    assert locate("devices", "old") == checkout / "hwmodel" / "_data" / "devices" / "old.yaml"
    assert names("devices") == ("gpu", "npu", "old")
    assert len(folders("devices")) == 2


def test_each_kind_has_its_folder(checkout: Path) -> None:
    assert locate("models", "llama3_8b") == checkout / "workloads" / "models" / "llama3_8b.yaml"
    assert (names("workloads"), names("software"), names("studies")) == (("llama",), ("mature",), ("guard",))


@pytest.mark.parametrize("content", [None, '[project]\nname = "other"\n', "not toml", "project = 3\n"])
def test_a_folder_above_the_package_that_is_not_ours_is_not_looked_into(checkout: Path, content: str | None) -> None:
    pyproject = checkout / "pyproject.toml"
    pyproject.unlink()
    if content is not None:
        pyproject.write_text(content)
    assert names("devices") == ("npu", "old")
    assert names("models") == ()


def test_an_unknown_name_names_the_nearest_and_the_known(checkout: Path) -> None:
    with pytest.raises(RegistryError) as caught:
        locate("devices", "npv")
    assert str(caught.value) == "unknown device 'npv'; did you mean 'npu'? known: gpu, npu, old"
    with pytest.raises(RegistryError, match=r"^unknown software set ''; known: mature$"):
        locate("software", "")
    with pytest.raises(RegistryError, match=r"^unknown device '"):
        locate("devices", "a\0b")


def test_a_path_is_taken_from_here_or_from_the_folder_asked_for(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    assert locate("devices", "./devices/npu.yaml") == Path("devices/npu.yaml")
    assert locate("devices", Path("devices/npu.yaml")) == Path("devices/npu.yaml")
    assert locate("devices", "npu.yaml", relative_to=checkout / "devices") == checkout / "devices" / "npu.yaml"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("none.yaml", "none.yaml: no such file"),
        ("./npu", "npu: no such file"),
        ("devices/", "devices: is a folder, must be a YAML file"),
        ("devices/notes.txt/x.yaml", "devices/notes.txt/x.yaml: no such file"),
        ("x" * 300 + ".yaml", "x" * 300 + ".yaml: cannot be read: File name too long"),
    ],
)
def test_a_path_to_no_file_is_refused(checkout: Path, monkeypatch: pytest.MonkeyPatch, path: str, text: str) -> None:
    monkeypatch.chdir(checkout)
    with pytest.raises(ConfigError) as caught:
        locate("devices", path)
    assert str(caught.value) == text
