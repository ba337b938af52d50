"""Output files appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwmodel.errors import ParameterError
from hwmodel.report.files import atomic_file, check_destination, write_bytes, write_text


def test_text_is_written_in_utf_8_with_its_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "ä\r\n\u2028")
    assert path.read_bytes() == "ä\r\n\u2028".encode()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.txt"
    write_bytes(path, b"old")

    def write_half() -> None:
        with atomic_file(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        write_half()
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("a.txt", b"old")]


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"^--json: must be a file, but '.*' is a folder$"):
        write_text(tmp_path, "x", option="--json")


def test_a_missing_parent_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"folder '.*nowhere' does not exist"):
        check_destination(tmp_path / "nowhere" / "a.json")
    assert list(tmp_path.iterdir()) == []


def test_a_parent_that_is_a_file_is_refused(tmp_path: Path) -> None:
    write_text(tmp_path / "file", "x")
    with pytest.raises(ParameterError, match="is not a folder"):
        check_destination(tmp_path / "file" / "a.json")


@pytest.mark.parametrize("name", ["x" * 300, "nul\0character"])
def test_a_name_the_system_refuses_is_an_error_of_ours(tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError, match="cannot write"):
        write_text(tmp_path / name, "x")


def test_a_link_is_written_through_and_permissions_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    write_text(target, "old")
    target.chmod(0o600)
    link.symlink_to(target)
    write_text(link, "new")
    assert (link.is_symlink(), target.read_text(), target.stat().st_mode & 0o777) == (True, "new", 0o600)


def test_a_file_that_is_write_protected_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "kept.json"
    write_text(target, "old")
    target.chmod(0o444)
    with pytest.raises(ParameterError, match=r"^--json: cannot write '.*kept.json': the file is write-protected$"):
        write_text(target, "new", option="--json")
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("kept.json", "old")]


def test_a_device_is_written_directly() -> None:
    write_text(Path("/dev/null"), "x")
    assert Path("/dev/null").is_char_device()
