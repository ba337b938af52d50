"""Output files: checked before anything is computed, and pure."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

import hwmodel.api

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Run = Callable[..., Result]


@pytest.fixture
def never_simulates(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> None:
        pytest.fail("simulated before the output was checked")

    monkeypatch.setattr(hwmodel.api, "run", run)


@pytest.mark.usefixtures("never_simulates")
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("--json nowhere/x.json", "--json: cannot write '{}': folder '{parent}' does not exist"),
        ("--json x.txt", "--json: must end in .json, got '{}'"),
        ("--timeline x.json", "--timeline: must end in .html, got '{}'"),
        ("--trace x.gz", "--trace: must end in .json or .json.gz, got '{}'"),
        ("--json folder.json", "--json: must be a file, but '{}' is a folder"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_first(
    run: Run, small: Path, tmp_path: Path, written: str, said: str
) -> None:
    (tmp_path / "folder.json").mkdir()
    option, name = written.split()
    path = tmp_path / name
    result = run("simulate", small, "--device", "npu", option, path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == said.format(path, parent=path.parent) + "\n"


@pytest.mark.usefixtures("never_simulates")
def test_one_path_for_two_outputs_is_refused(run: Run, small: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    other = tmp_path / "sub" / ".." / "x.json"
    result = run("simulate", small, "--device", "npu", "--json", tmp_path / "x.json", "--trace", other)
    assert result.exit_code == 2
    assert result.stderr == f"--trace: {str(other)!r} is what --json writes; give each its own file\n"


@pytest.mark.usefixtures("never_simulates")
@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_an_input_is_not_overwritten(run: Run, small: Path, tmp_path: Path, command: str) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(small)
    before = small.read_text()
    result = run(command, small, "--device", "npu", "--json", link)
    assert result.exit_code == 2
    assert "is an input of this command and would be overwritten" in result.stderr
    assert small.read_text() == before


def test_a_result_compared_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    result = run("diff", path, path, "--json", path)
    assert result.exit_code == 2
    assert "would be overwritten" in result.stderr


def test_json_on_standard_output_is_one_object_and_nothing_else(run: Run, small: Path, tmp_path: Path) -> None:
    outputs = ["--timeline", tmp_path / "t.html", "--trace", tmp_path / "t.json.gz"]
    result = run("simulate", small, "--device", "npu", "--json", "-", *outputs)
    assert (result.exit_code, result.stderr) == (0, "")
    data = json.loads(result.stdout)
    assert data["workload"] == "small layer"
    assert result.stdout.startswith("{")
    assert result.stdout.endswith("}\n")
    assert (tmp_path / "t.html").read_text().startswith("<!DOCTYPE html>")
    assert json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))["traceEvents"]


def test_compare_and_diff_keep_standard_output_pure_too(run: Run, small: Path, tmp_path: Path) -> None:
    compared = run("compare", small, "--device", "npu", "--recipes", "bf16,current", "--json", "-")
    assert [row["recipe"] for row in json.loads(compared.stdout)["rows"]] == ["bf16", "current"]
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, recipe in zip(paths, ("current", "delayed"), strict=True):
        assert run("simulate", small, "--device", "npu", "--recipe", recipe, "--json", path).exit_code == 0
    changes = json.loads(run("diff", *paths, "--json", "-").stdout)["changes"]
    assert "recipe.timing" in [change["path"] for change in changes]


def test_a_file_beside_the_tables_is_the_same_as_standard_output(run: Run, small: Path, tmp_path: Path) -> None:
    beside = run("simulate", small, "--device", "npu", "--json", tmp_path / "x.json")
    alone = run("simulate", small, "--device", "npu", "--json", "-")
    assert (tmp_path / "x.json").read_text() == alone.stdout
    assert "Where the time of a step goes" in beside.stdout


def test_output_files_carry_no_absolute_path_and_no_date(run: Run, small: Path, tmp_path: Path) -> None:
    for part in ("first", "second"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "w.yaml").write_text(small.read_text())
        outputs = {"--json": "r.json", "--timeline": "t.html", "--trace": "t.json"}
        options = [piece for option, name in outputs.items() for piece in (option, tmp_path / part / name)]
        assert run("simulate", tmp_path / part / "w.yaml", "--device", "npu", *options).exit_code == 0
    for name in ("r.json", "t.html", "t.json"):
        first, second = ((tmp_path / part / name).read_bytes() for part in ("first", "second"))
        assert first == second
        assert str(tmp_path).encode() not in first


def test_a_failed_run_leaves_the_file_as_it_was(run: Run, small: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("before")
    assert run("simulate", small, "--device", "npu", "--recipe", "nope", "--json", path).exit_code == 2
    assert path.read_text() == "before"


def test_hostile_names_are_only_text(run: Run, small: Path, tmp_path: Path) -> None:
    hostile = "[red]</script><script>alert(1)</script><img src=x onerror=alert(1)>\\e[31m\\u2028"
    small.write_text(
        small.read_text().replace("small layer", f'"{hostile}"').replace("name: fc", f'name: "{hostile}"'),
        encoding="utf-8",
    )
    result = run("simulate", small, "--device", "npu", "--timeline", tmp_path / "t.html")
    if result.exit_code == 2:  # control characters may be refused; then nothing was printed
        assert result.stdout == ""
        small.write_text(small.read_text().replace("\\e", "").replace("\\u2028", ""), encoding="utf-8")
        result = run("simulate", small, "--device", "npu", "--timeline", tmp_path / "t.html")
    assert result.exit_code == 0, result.output
    assert "[red]" in result.stdout
    assert "\x1b" not in result.stdout
    assert "\u2028" not in result.stdout
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert "<script>alert(1)" not in page


MODEL = """\
name: tiny
layers: 2
hidden: 256
heads: 4
key_value_heads: 2
head_size: 64
feed_forward: 512
vocabulary: 1024
"""


@pytest.mark.parametrize("command", ["simulate", "compare", "sweep"])
def test_a_file_that_only_another_file_names_is_not_overwritten(run: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "base.yaml").symlink_to(tmp_path / "model.json")  # an input under an ending that is written
    (tmp_path / "model.json").write_text(MODEL)
    workload = tmp_path / "w.yaml"
    workload.write_text("kind: training\nmodel: ./base.yaml\nbatch: {global: 4, micro: 1, sequence: 256}\n")
    option = "--out" if command == "sweep" else "--json"
    result = run(command, workload, "--device", "npu", option, tmp_path / "model.json")
    assert result.exit_code == 2
    assert "is an input of this command and would be overwritten" in result.stderr
    assert (tmp_path / "model.json").read_text() == MODEL


def test_a_device_that_is_extended_is_not_overwritten(run: Run, small: Path, tmp_path: Path) -> None:
    (tmp_path / "parent.json").write_text("extends: npu\n")
    (tmp_path / "parent.yaml").symlink_to(tmp_path / "parent.json")
    (tmp_path / "child.yaml").write_text("extends: ./parent.yaml\n")
    result = run("simulate", small, "--device", tmp_path / "child.yaml", "--json", tmp_path / "parent.json")
    assert result.exit_code == 2
    assert "is an input of this command" in result.stderr
