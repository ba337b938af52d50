"""The Python side: presets replace a file's recipe, 'own' keeps it, comparisons are sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hwmodel.api import compare, simulate
from hwmodel.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """kind: training
model: {base: llama3.1-8b, layers: 4}
batch: {global: 8, sequence: 2048}
parallel: {dp: 8}
notes: [read this]
recipe: {preset: current, granularity: row, exceptions: {first_layers: 1}, fusion: none}
"""


@pytest.fixture
def mapped(tmp_path: Path) -> str:
    file = tmp_path / "w.yaml"
    file.write_text(TEXT, encoding="utf-8")
    return str(file)


def test_a_preset_replaces_the_recipe_of_the_file_but_for_fusion_and_exceptions(mapped: str) -> None:
    own, mx = simulate(mapped, "gpu").recipe, simulate(mapped, "gpu", recipe="mxfp8").recipe
    assert (own.preset, own.granularity, own.fusion, own.exceptions.first_layers) == ("current", "row", "none", 1)
    assert (mx.preset, mx.granularity, mx.fusion, mx.exceptions.first_layers) == ("mxfp8", "mx", "none", 1)


def test_an_edit_overrides_the_preset_that_replaced_the_file(mapped: str) -> None:
    recipe = simulate(mapped, "gpu", recipe="delayed", sets=["recipe.margin_bits=2", "recipe.fusion=ideal"]).recipe
    assert (recipe.preset, recipe.granularity, recipe.margin_bits, recipe.fusion) == ("delayed", "tensor", 2, "ideal")


def test_own_is_the_recipe_of_the_file(mapped: str) -> None:
    comparison = compare(mapped, "gpu", "bf16, own, current")
    assert [row.recipe.preset for row in comparison] == ["bf16", "own", "current"]
    assert [row.recipe.granularity for row in comparison] == ["tensor", "row", "tensor"]
    assert comparison.rows[1].step_seconds == simulate(mapped, "gpu").step_seconds
    assert len(comparison) == 3
    assert comparison.table()["recipe"] == ["bf16", "own", "current"]
    assert comparison.table()["gemm"][1] == comparison.rows[1].data["breakdown_seconds"]["gemm"]


def test_notes_of_a_workload_reach_its_results(mapped: str) -> None:
    assert "read this" in simulate(mapped, "gpu").data["warnings"]


def test_an_unknown_preset_is_refused_without_a_line(mapped: str) -> None:
    with pytest.raises(ConfigError, match=r"^--recipe: recipe.preset: unknown preset 'fp8'"):
        simulate(mapped, "gpu", recipe="fp8")
