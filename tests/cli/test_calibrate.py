"""``hwmodel calibrate`` as somebody with ten timings meets it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hwmodel.config.device import load_device
from hwmodel.config.locate import data_folder
from hwmodel.device.kernel import time_alone
from hwmodel.graph.demand import Gemm
from hwmodel.measured import constants

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

HEADER = "source,device,dtype_a,dtype_b,m,n,k,time_us\n"
SIZES = [(4096, 4096, 4096), (128, 8192, 8192), (512, 8192, 8192), (8192, 8192, 1024), (64, 4096, 16384)]
SHAPES = [*SIZES, *((2 * m, n, k) for m, n, k in SIZES)]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Ten timings of an NPU that sustains 70 % in BF16."""
    made = constants.with_values(load_device("npu"), {"calibration.sustained_fraction.bf16": 0.7})
    lines = [HEADER]
    for m, n, k in SHAPES:
        seconds = time_alone(Gemm(m, n, k, "bf16", "bf16", "bf16"), made).picoseconds / 1e12
        lines.append(f"me,prototype,bf16,bf16,{m},{n},{k},{1e6 * seconds:.3f}\n")
    path = tmp_path / "rows.csv"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_ten_timings_give_a_device_that_runs(run: Callable[..., Result], rows: Path, tmp_path: Path) -> None:
    device, out = tmp_path / "mine.yaml", tmp_path / "fit.json"
    done = run("calibrate", "npu", device, "--data", rows, "--json", out)
    assert done.exit_code == 0, done.stderr
    assert "Fitted constants" in done.stdout
    fit = json.loads(out.read_text())
    assert fit["errors_percent"]["after"]["mean"] < 1 < fit["errors_percent"]["before"]["mean"]
    assert load_device(device).matrix.sustained_fraction["bf16"] == pytest.approx(0.7, rel=0.02)
    assert "confidence: F" in device.read_text()
    written = device.read_bytes()
    assert run("calibrate", "npu", device, "--data", rows).exit_code == 0
    assert device.read_bytes() == written
    judged = run("validate", "gemm", "--data", rows, "--device", device)
    assert judged.exit_code == 0, judged.stderr


def test_a_base_given_by_path_is_found_from_the_new_file(
    run: Callable[..., Result], rows: Path, tmp_path: Path
) -> None:
    base, out = tmp_path / "base.yaml", tmp_path / "inner" / "new.yaml"
    base.write_text("extends: npu\n", encoding="utf-8")
    out.parent.mkdir()
    done = run("calibrate", base, out, "--data", rows, "--constants", "sustained_fraction.bf16,overhead_seconds")
    assert done.exit_code == 0, done.stderr
    assert "not of the device (not written)" in done.stdout or "Not determined" in done.stdout
    assert 'extends: "../base.yaml"' in out.read_text()
    assert load_device(out).matrix.sustained_fraction["bf16"] == pytest.approx(0.7, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--constants", "sustained_fraction.bf61"], "unknown constant 'sustained_fraction.bf61'"),
        (["--constants", "a,,b"], "--constants"),
        (["--min-microseconds", "nan"], "--min-microseconds: must be a number >= 0"),
        (["--machine", "other"], "--machine: no row is of 'other'; known: prototype"),
        (["--format", "fp8_e4m3fn"], "got none (10 in bf16)"),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(
    run: Callable[..., Result], rows: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    out = tmp_path / "new.yaml"
    done = run("calibrate", "npu", out, "--data", rows, *arguments)
    assert (done.exit_code, message in done.stderr, out.exists()) == (2, True, False), done.stderr


def test_a_data_file_of_any_name_gives_a_device_that_loads(
    run: Callable[..., Result], rows: Path, tmp_path: Path
) -> None:
    odd = rows.rename(tmp_path / 'a"b: {x} \\ y.csv')
    done = run("calibrate", "npu", tmp_path / "new.yaml", "--data", odd, "--constants", "sustained_fraction.bf16")
    assert done.exit_code == 0, done.stderr
    notes = load_device(tmp_path / "new.yaml").sources
    assert any(odd.name in note.source for note in notes)


@pytest.mark.parametrize("name", ["tab\tnl\n.yaml", "nb\u00a0sp\u200b\u2028.yaml", 'q"uo\\te #{}[].yaml'])
def test_a_base_of_any_name_is_found_again(run: Callable[..., Result], rows: Path, tmp_path: Path, name: str) -> None:
    base = tmp_path / name
    base.write_text("extends: npu\n", encoding="utf-8")
    done = run("calibrate", base, tmp_path / "new.yaml", "--data", rows, "--constants", "sustained_fraction.bf16")
    assert done.exit_code == 0, done.stderr
    assert load_device(tmp_path / "new.yaml").matrix.sustained_fraction["bf16"] == pytest.approx(0.7, rel=0.02)


def test_links_of_base_and_output_stay_what_they_mean(run: Callable[..., Result], rows: Path, tmp_path: Path) -> None:
    for folder, launch in (("a", "9 us"), ("b", "1 us")):
        (tmp_path / folder).mkdir()
        text = f"extends: npu\ncalibration: {{launch_seconds: {launch}}}\n"
        (tmp_path / folder / "parent.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "b" / "real.yaml").write_text("extends: ./parent.yaml\n", encoding="utf-8")
    link, out = tmp_path / "a" / "link.yaml", tmp_path / "out.yaml"
    link.symlink_to(tmp_path / "b" / "real.yaml")
    out.symlink_to(tmp_path / "b" / "target.yaml")
    for target in (tmp_path / "new.yaml", out):
        done = run("calibrate", link, target, "--data", rows, "--constants", "sustained_fraction.bf16")
        assert done.exit_code == 0, done.stderr
        assert load_device(target).launch_seconds == load_device(link).launch_seconds == 9e-6


def test_a_constant_named_twice_in_two_ways_is_one(run: Callable[..., Result], rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "fit.json"
    names = "sustained_fraction.bf16, calibration.sustained_fraction.bf16"
    done = run("calibrate", "npu", tmp_path / "new.yaml", "--data", rows, "--constants", names, "--json", out)
    assert done.exit_code == 0, done.stderr
    fit = json.loads(out.read_text())
    assert (len(fit["fitted"]), fit["not_determined"]) == (1, [])


def test_the_shipped_sources_are_an_input(run: Callable[..., Result], rows: Path, tmp_path: Path) -> None:
    link = tmp_path / "sources.yaml"
    link.symlink_to(data_folder("measured") / "sources.yaml")
    done = run("calibrate", "npu", link, "--data", rows)
    assert (done.exit_code, "is an input" in done.stderr) == (2, True), done.stderr


def test_where_only_the_clock_is_fitted_the_device_stays(
    run: Callable[..., Result], rows: Path, tmp_path: Path
) -> None:
    done = run("calibrate", "npu", tmp_path / "new.yaml", "--data", rows, "--constants", "rate_fraction")
    assert done.exit_code == 0, done.stderr
    assert "the device as it was" in done.stdout
    assert load_device(tmp_path / "new.yaml").matrix == load_device("npu").matrix


def test_one_row_is_refused(run: Callable[..., Result], rows: Path, tmp_path: Path) -> None:
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:2]), encoding="utf-8")
    done = run("calibrate", "npu", tmp_path / "new.yaml", "--data", rows)
    assert (done.exit_code, "at least 3 different kernels to fit a constant, got 1" in done.stderr) == (2, True), (
        done.stderr
    )


def test_an_input_is_not_overwritten_and_the_ending_is_checked(
    run: Callable[..., Result], rows: Path, tmp_path: Path
) -> None:
    base = tmp_path / "base.yaml"
    base.write_text("extends: npu\n", encoding="utf-8")
    done = run("calibrate", base, base, "--data", rows)
    assert (done.exit_code, "is an input" in done.stderr) == (2, True), done.stderr
    done = run("calibrate", "npu", tmp_path / "new.txt", "--data", rows)
    assert (done.exit_code, "must end in .yaml" in done.stderr) == (2, True), done.stderr
