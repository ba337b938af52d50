"""The Python side: presets replace a file's recipe, 'own' keeps it, comparisons are sequences."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hwmodel.api import compare, simulate
from hwmodel.config.device import load_device
from hwmodel.errors import ConfigError, HwModelError, ParameterError, RegistryError

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


def test_a_comparison_is_indexed_by_recipe_and_by_place(mapped: str) -> None:
    comparison = compare(mapped, "gpu", ["bf16", "current"])
    assert comparison["current"] is comparison[1] is comparison.rows[1]
    with pytest.raises(RegistryError, match="unknown recipe of this comparison 'delayed'"):
        comparison["delayed"]


@pytest.mark.parametrize("edit", ["recipe=current", "recipe.preset = current"])
def test_a_recipe_that_is_given_twice_is_refused(mapped: str, edit: str) -> None:
    with pytest.raises(ParameterError, match=r"^--set: the recipe is given already, 'bf16', got 'recipe"):
        simulate(mapped, "gpu", recipe="bf16", sets=[edit])
    with pytest.raises(ParameterError, match=r"^--set: the recipe is given already"):
        compare(mapped, "gpu", "own,bf16", sets=[edit])
    assert simulate(mapped, "gpu", sets=[edit]).recipe.preset == "current"


def test_a_rate_that_the_device_does_not_state_is_a_default_that_was_used(mapped: str) -> None:
    gpu = load_device("gpu")
    shares = {name: share for name, share in gpu.matrix.sustained_fraction.items() if name != "fp8_e4m3fn"}
    bare = replace(gpu, matrix=replace(gpu.matrix, sustained_fraction=shares))
    line = "device.calibration.sustained_fraction.fp8_e4m3fn: 1.0"
    assert line in simulate(mapped, bare).data["defaults_used"]
    assert line not in simulate(mapped, gpu).data["defaults_used"]
    assert line not in simulate(mapped, bare, recipe="bf16").data["defaults_used"]


def test_mistakes_in_workload_and_device_edits_come_together(mapped: str) -> None:
    with pytest.raises(HwModelError) as caught:
        simulate(mapped, "gpu", sets=["recipe.nope=1", "device.clock_hz=-1"])
    first, second = str(caught.value).splitlines()
    assert first.startswith("--set: recipe: unknown key 'nope'")
    assert second == "--set: device.clock_hz: must be > 0, got -1"


def test_every_unknown_preset_of_a_comparison_is_named_and_none_may_be_empty(mapped: str) -> None:
    with pytest.raises(HwModelError) as caught:
        compare(mapped, "gpu", "bf16,delaid,foo")
    assert [line.partition(";")[0] for line in str(caught.value).splitlines()] == [
        "unknown preset 'delaid'",
        "unknown preset 'foo'",
    ]
    for name in ("", "a\nb"):
        with pytest.raises(ConfigError, match=r"^--recipe: must name a preset, got '"):
            simulate(mapped, "gpu", recipe=name)


def test_notes_of_a_workload_reach_its_results(mapped: str) -> None:
    assert "read this" in simulate(mapped, "gpu").data["warnings"]


def test_an_unknown_preset_is_refused_without_a_line(mapped: str) -> None:
    with pytest.raises(ConfigError, match=r"^--recipe: recipe.preset: unknown preset 'fp8'"):
        simulate(mapped, "gpu", recipe="fp8")
