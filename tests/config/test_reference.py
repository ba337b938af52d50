"""The page of file keys is what the schemas say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hwmodel.config.device import CONFIDENCE, load_device, schema_device
from hwmodel.config.extends import load_extended
from hwmodel.config.reference import device_reference, file_reference, software_reference, workload_reference
from hwmodel.config.software import load_software, schema_software
from hwmodel.config.workload import presets, schema_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE = Path(__file__).parents[2] / "docs" / "files.md"


def rows(text: str) -> dict[str, list[str]]:
    """Key -> what it holds, its default and its meaning."""
    cells = [line.replace("\\|", "/").strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    return {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in cells}


def properties(schema: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every property at every depth: under definitions, in sequences, mappings and alternatives."""
    if isinstance(schema, dict):
        for name, item in schema.items():
            if name == "properties":
                yield from ((f"{path}.{key}", value) for key, value in item.items())
                for key, value in item.items():
                    yield from properties(value, f"{path}.{key}")
            else:
                yield from properties(item, f"{path}.{name}")
    elif isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from properties(item, f"{path}.{index}")


@pytest.mark.parametrize(
    ("schema", "least"), [(schema_device, 300), (schema_software, 40), (schema_workload, 150)], ids=lambda value: ""
)
def test_every_property_at_every_depth_is_described(schema: Callable[[], dict[str, Any]], least: int) -> None:
    found = list(properties(schema()))
    assert len(found) >= least
    assert not [path for path, item in found if not str(item.get("description", "")).strip()]
    assert not [name for name, item in schema().get("$defs", {}).items() if not item.get("description")]


def test_the_walk_over_properties_goes_everywhere() -> None:
    inner: dict[str, Any] = {"properties": {"b": {}}}
    schema = {
        "properties": {"a": {"items": inner}, "properties": {"anyOf": [inner]}},
        "$defs": {"D": {"additionalProperties": inner}},
    }
    assert [path for path, _ in properties(schema)] == [
        ".a",
        ".properties",
        ".a.items.b",
        ".properties.anyOf.0.b",
        ".$defs.D.additionalProperties.b",
    ]


@pytest.mark.parametrize("reference", [workload_reference, device_reference, software_reference])
def test_no_row_of_a_table_is_without_a_meaning(reference: Callable[[], str]) -> None:
    table = [line for line in reference().splitlines() if line.startswith("|")]
    assert len(table) > 10
    assert not [line for line in table if not line.replace("\\|", "/").strip("|").split("|")[-1].strip()]


def example(text: str, start: str) -> str:
    """The example of a page that starts so."""
    (found,) = (block for block in text.split("```yaml\n")[1:] if block.startswith(start))
    return found.partition("```")[0]


def test_the_page_explains_facts_by_an_example_that_loads(tmp_path: Path) -> None:
    text = device_reference()
    assert all(f"| {letter} | {meaning} |" in text for letter, meaning in CONFIDENCE.items())
    path = tmp_path / "mine.yaml"
    path.write_text(f"extends: npu\n{example(text, 'clock_hz')}", encoding="utf-8")
    device = load_device(path)
    notes = {note.path: note for note in device.sources}
    assert (device.clock_hz, device.cache_bytes) == (1_650_000_000, 128_000_000)
    assert (notes["cache_bytes"].source, notes["cache_bytes"].confidence) == ("vendor's platform table", "V")
    assert notes["clock_hz"].confidence == "U"


def test_the_page_explains_extends_by_examples_that_load(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(example(device_reference(), "extends"), encoding="utf-8")
    assert load_device(path).clock_hz == 1_800_000_000
    path.write_text(example(software_reference(), "extends"), encoding="utf-8")
    assert load_software(path).counts == {"amax_launches": 1}
    path.write_text(f"extends: mature\n{example(software_reference(), 'switches')}", encoding="utf-8")
    (note,) = [note for note in load_software(path).since if note.path == "switches.scales_in_gemm_order"]
    assert note.since == "release or change"


def test_mappings_of_a_base_merge_and_sequences_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("a: {x: 1, y: 2}\nb: [1, 2]\n", encoding="utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text("extends: base.yaml\na: {y: 3}\nb: [4]\n", encoding="utf-8")
    assert load_extended("devices", path).data == {"a": {"x": 1, "y": 3}, "b": (4,)}


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
    assert found["extends"][0] == "text"
    found = rows(software_reference())
    assert {"extends", "switches", "fused", "overlap", "overlap.gather_fprop"} <= set(found)
    assert found["switches.scales_in_gemm_order"][0] == "true or false"
    assert found["counts.amax_launches"][0] == "whole number >= 0, <= 64"


def test_every_preset_and_every_op_is_named() -> None:
    text = workload_reference()
    assert all(f"`{name}`" in text for name in presets())
    assert "\n| `quantise` |" in text
    assert "\n| `fused` |" not in text
