"""What ``compare`` and ``diff`` say."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from hwmodel.api import compare
from hwmodel.cli.show import stage_notes
from hwmodel.report.published import PUBLISHED, has_published_step, published_speedups

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Run = Callable[..., Result]

RECIPES = "bf16,delayed,current,mxfp8,hif8_delayed"


def test_differences_of_neighbours_add_up_to_the_picosecond(run: Run, training: Path) -> None:
    result = run("compare", training, "--device", "npu", "--recipes", RECIPES, "--json", "-")
    data = json.loads(result.stdout)
    names = RECIPES.split(",")
    assert [(entry["before"], entry["after"]) for entry in data["differences"]] == list(itertools.pairwise(names))
    for entry in data["differences"]:
        assert sum(entry["breakdown_picoseconds"].values()) == entry["step_picoseconds"]


def test_differences_shown_add_up_to_the_last_digit(run: Run, training: Path) -> None:
    lines = run("compare", training, "--device", "npu", "--recipes", "delayed,current").stdout.splitlines()
    start = lines.index("From delayed to current")
    cells = [line.split() for line in lines[start:] if line.split()[1:2] == ["ms"]]
    *keys, step = [cell for cell in cells if len(cell) == 5]
    assert step[0] == "step"
    for column in (2, 3, 4):
        assert sum(Fraction(cell[column]) for cell in keys) == Fraction(step[column])


def test_rows_have_the_keys_of_simulate(run: Run, training: Path) -> None:
    compared = json.loads(run("compare", training, "--device", "npu", "--json", "-").stdout)
    alone = json.loads(run("simulate", training, "--device", "npu", "--recipe", "current", "--json", "-").stdout)
    row = next(row for row in compared["rows"] if row["recipe"] == "current")
    assert row["axes"] == alone["recipe"]
    shared = set(alone) - {"recipe", "defaults_used"}
    assert {key: row[key] for key in shared} == {key: alone[key] for key in shared}


def test_ratios_of_all_pairs_are_printed(run: Run, training: Path) -> None:
    data = json.loads(run("compare", training, "--device", "npu", "--json", "-").stdout)
    steps = {row["recipe"]: row["step_seconds"] for row in data["rows"]}
    lines = run("compare", training, "--device", "npu").stdout.splitlines()
    cells = next(line.split() for line in lines if line.startswith(" / current"))
    assert cells[2:] == [f"{steps[name] / steps['current']:.3f}" for name in steps]


@pytest.mark.parametrize("columns", [80, 120])
def test_a_comparison_reads_well_at_its_width(
    run: Run, training: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    result = run("compare", training, "--device", "npu", "--recipes", RECIPES)
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= columns


def test_published_speedups_stand_beside_405b_and_are_not_used(run: Run, training: Path) -> None:
    named = training.read_text().replace("name: tiny", "name: Llama 3.1 405B")
    training.write_text(named, encoding="utf-8")
    result = run("compare", training, "--device", "npu", "--recipes", "bf16,current")
    text = " ".join(result.stdout.split())
    assert "nothing is fitted to these" in text
    for speedup in (
        "1.62x claim",
        "1.58x claim",
        "1.52x claim",
        "1.36x claim",
        "1.52-1.53x measured",
        "1.52-1.60x measured",
    ):
        assert speedup in text
    assert "no published step of Llama 3.1 405B to compare with" in text
    data = json.loads(run("compare", training, "--device", "npu", "--recipes", "bf16,current", "--json", "-").stdout)
    assert data["published"]["used_for_fitting"] is False
    assert len(data["published"]["speedups"]) == 6


def test_no_other_model_has_published_speedups(run: Run, training: Path) -> None:
    text = " ".join(run("compare", training, "--device", "npu").stdout.split())
    assert "claim" not in text
    assert "no published step of tiny to compare with" in text


def test_published_facts_name_their_sources() -> None:
    assert has_published_step("Llama 3.1 405B", "h100")
    assert not has_published_step("Llama 3.1 405B", "npu")
    assert published_speedups("Llama 3.1 8B") == ()
    for entries in PUBLISHED.values():
        assert all(entry.source and entry.conditions and entry.low <= entry.high for entry in entries)


def test_a_timeline_of_a_comparison_has_a_section_for_each_recipe(run: Run, training: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.html"
    result = run("compare", training, "--device", "npu", "--recipes", RECIPES, "--timeline", path)
    assert result.exit_code == 0
    page = path.read_text(encoding="utf-8")
    assert all(recipe in page for recipe in RECIPES.split(","))


def test_equal_results_differ_in_nothing(run: Run, small: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert run("simulate", small, "--device", "npu", "--json", path).exit_code == 0
    result = run("diff", path, path)
    assert (result.exit_code, result.stdout) == (0, "no differences\n")


def test_a_difference_names_its_key(run: Run, tmp_path: Path) -> None:
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    before.write_text('{"step_seconds": 2.0, "old": 1}')
    after.write_text('{"step_seconds": 1.5, "new": [1]}')
    result = run("diff", before, after)
    assert result.exit_code == 0
    assert "step_seconds" in result.stdout
    changes = json.loads(run("diff", before, after, "--json", "-").stdout)["changes"]
    assert changes == [
        {"path": "step_seconds", "status": "changed", "before": 2.0, "after": 1.5, "delta": -0.5},
        {"path": "old", "status": "removed", "before": 1},
        {"path": "new[0]", "status": "added", "after": 1},
    ]


def test_recipes_whose_slowest_stage_differs_are_pointed_out() -> None:
    rows = compare("llama3_405b", "npu", ["bf16", "current", "row"]).rows
    assert stage_notes(rows[:1]) == []
    (text,) = stage_notes(rows)
    assert "those of pipeline rank 1; " in text
    assert "is rank 1 under bf16, rank 7 under current and row, and" in text
    assert {row.data["layout"]["reporting_stage"] for row in rows} == {1}
    assert len({row.totals.breakdown["attention"] for row in rows}) == 1
