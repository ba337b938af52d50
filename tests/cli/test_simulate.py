"""What ``simulate`` says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hwmodel.cli.show import per_step
from hwmodel.simulation.result import Totals

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Run = Callable[..., Result]


@pytest.mark.parametrize("columns", [80, 120])
def test_a_result_reads_well_at_its_width(
    run: Run, training: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    result = run("simulate", training, "--device", "npu")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= columns
    assert "\x1b" not in result.stdout


def test_the_headline_and_every_part_are_there(run: Run, training: Path) -> None:
    text = run("simulate", training, "--device", "npu", "--recipe", "delayed").stdout
    for part in ("Huawei Ascend 950DT", "two layers", "delayed (tensor granularity", "over BF16", "causal-exact"):
        assert part in " ".join(text.split())
    for part in ("tokens ", "MFU ", "memory ", "% of step", "BF16 ms", "difference ms", "counts ", "Slowest kernels"):
        assert part in text
    assert "Defaults used" in text
    assert "Keep in mind" in text
    assert "no published" in " ".join(text.split())


def test_memory_is_given_in_both_units_and_says_which(run: Run, training: Path) -> None:
    result = run("simulate", training, "--device", "npu", "--set", "device.memory.bytes=83 GB")
    assert "of 83.00 GB (77.30 GiB): fits" in " ".join(result.stdout.split())


def test_the_ceiling_of_the_speedup_is_stated_with_the_share_of_gemms(run: Run, training: Path) -> None:
    result = run("simulate", training, "--device", "npu", "--json", "-")
    data = json.loads(result.stdout)
    baseline = data["baseline"]["breakdown_seconds"]
    share = baseline["gemm"] / sum(baseline.values())
    text = " ".join(run("simulate", training, "--device", "npu").stdout.split())
    assert (
        f"GEMMs are {100 * share:.1f} % of the BF16 step: at most {1 / (1 - share):.2f}x if they took no time" in text
    )


def test_a_padded_microbatch_is_said(run: Run, training: Path) -> None:
    result = run("simulate", training, "--device", "npu", "--recipe", "mxfp8", "--set", "batch.sequence=250")
    assert result.exit_code == 0
    assert "padded from 250 to 256 rows" in " ".join(result.stdout.split())


def test_the_interval_changes_the_amax_work(run: Run, training: Path) -> None:
    passes = []
    for interval in ("1", "4"):
        sets = [
            "--set",
            f"recipe.interval_steps={interval}",
            "--set",
            "recipe.amax.kernel=separate",
            "--set",
            "steps=100",
        ]
        result = run("simulate", training, "--device", "npu", "--recipe", "delayed", *sets, "--json", "-")
        data = json.loads(result.stdout)
        assert len(data["steps_seconds"]) == 100
        passes.append(data["counts"]["amax_passes"])
    assert passes[0] == 4 * passes[1]


def test_the_mean_step_of_a_period_is_shown_exactly() -> None:
    sums = Totals(3, 10, breakdown={"gemm": 5, "amax": 1, "scale": 4}, busy={}, critical={}, counts={})
    shown = per_step(sums)
    assert sum(shown.values()) == 10 // 3
    assert all(abs(shown[key] - sums.breakdown[key] / 3) <= 1 for key in shown)


def test_exceptions_stand_in_the_recipe_and_a_warning_when_they_leave_nothing(run: Run, training: Path) -> None:
    def said(*sets: str) -> str:
        arguments = [part for text in sets for part in ("--set", f"recipe.{text}")]
        return " ".join(run("simulate", training, "--device", "npu", *arguments).stdout.split())

    text = said("exceptions.first_layers=1", "exceptions.gemms=[wgrad]", "fusion=none")
    assert "fusion none; first 1 layer and wgrad in BF16)" in text
    assert "nothing runs in 8 bits" not in text
    none = "in BF16, so nothing runs in 8 bits under current"
    assert f"keep all 2 layers {none}" in said("exceptions.first_layers=1", "exceptions.last_layers=1")
    assert f"keep every GEMM {none}" in said("exceptions.gemms=[fprop,dgrad,wgrad]")
