"""``hwmodel validate`` as a user meets it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

HEADER = "source,device,dtype_a,dtype_b,m,n,k,time_us\n"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(HEADER + "me,prototype,bf16,bf16,4096,4096,4096,100\n", encoding="utf-8")
    return path


def test_own_rows_on_an_own_device_find_their_suite(run: Callable[..., Result], rows: Path, tmp_path: Path) -> None:
    device, out = tmp_path / "mine.yaml", tmp_path / "out.json"
    device.write_text("extends: gpu\n", encoding="utf-8")
    done = run("validate", "--data", rows, "--device", device, "--json", out)
    assert done.exit_code == 0, done.stderr
    assert "Furthest off" in done.stdout
    assert "of sources that are not the product's" in done.stdout
    assert "never fitted" not in done.stdout
    (suite,) = json.loads(out.read_text())["suites"]
    assert (suite["suite"], suite["groups"][0]["rows"], suite["rows"][0]["simulated"]) == ("gemm", 1, "mine")
    assert suite["rows"][0]["predicted_seconds"] > 0


def test_rows_of_an_unknown_device_are_counted(run: Callable[..., Result], rows: Path) -> None:
    done = run("validate", "gemm", "--data", rows)
    assert done.exit_code == 0
    assert "no device file for 'prototype'" in done.stdout
    assert "nothing could be compared; --device predicts all rows" in done.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gem"], "SUITE: unknown suite 'gem'; did you mean 'gemm'?"),
        (["--min-microseconds", "-1"], "--min-microseconds: must be a number >= 0, got -1.0"),
        (["--data", "nothing.csv"], "nothing.csv: cannot be read: No such file or directory"),
        (["--device", "gpuu"], "unknown device 'gpuu'"),
        (["--json", "out.txt"], "--json: must end in .json"),
    ],
)
def test_bad_input_is_named(run: Callable[..., Result], arguments: list[str], message: str) -> None:
    done = run("validate", *arguments)
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr


def test_a_file_of_no_suite_is_refused(run: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    done = run("validate", "--data", path)
    assert (done.exit_code, "has the columns of no suite; known: gemm" in done.stderr) == (2, True)
