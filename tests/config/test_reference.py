"""The page of file keys is what the schemas say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hwmodel.config.reference import device_reference, file_reference, software_reference, workload_reference
from hwmodel.config.workload import presets

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[2] / "docs" / "files.md"


def rows(text: str) -> dict[str, list[str]]:
    """Key -> what it holds, its default and its meaning."""
    cells = [line.replace("\\|", "/").strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    return {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in cells}


def test_the_page_is_the_generated_one(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        PAGE.write_text(file_reference(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == file_reference(), "write it anew with pytest --update-golden"


def test_every_workload_key_says_what_it_means() -> None:
    found = rows(workload_reference())
    assert {
        "recipe.amax.kernel",
        "batch.global",
        "parallel.tp",
        "software.set",
        "ops.0.op",
        "tensors.NAME.shape",
    } <= set(found)
    assert not [key for key, cells in found.items() if not cells[-1]]
    assert found["batch.micro"] == ["whole number >= 1", "`1`", "sequences of one microbatch"]
    assert found["batch.sequence"][1] == "required"


def test_device_and_software_keys_are_listed_with_their_units() -> None:
    found = rows(device_reference())
    assert found["resources.NAME.bytes_per_second"][0] == "bytes/s > 0"
    assert found["calibration.launch_seconds"][0].startswith("seconds")
    assert {"switches", "fused", "overlap"} <= set(rows(software_reference()))


def test_every_preset_and_every_op_is_named() -> None:
    text = workload_reference()
    assert all(f"`{name}`" in text for name in presets())
    assert "\n| `quantise` |" in text
    assert "\n| `fused` |" not in text
