"""What ``list``, ``show`` and ``schema`` say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hwmodel.config.device import load_device
from hwmodel.config.locate import names
from hwmodel.config.workload import presets
from hwmodel.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from typer.testing import Result

    Run = Callable[..., Result]

FAMILIES: dict[str, Sequence[str]] = {
    "devices": names("devices"),
    "workloads": names("workloads"),
    "models": names("models"),
    "recipes": tuple(presets()),
    "formats": FORMATS.names(),
    "software": names("software"),
}
ENTRIES = [(family, name) for family, known in FAMILIES.items() for name in known]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("columns", [80, 120])
def test_list_names_every_one(run: Run, family: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    result = run(family, "list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert set(FAMILIES[family]) <= {line.split()[0] for line in lines if line.split()}
    assert max(map(len, lines)) <= columns


@pytest.mark.parametrize(("family", "name"), ENTRIES)
def test_show_shows_it(run: Run, family: str, name: str) -> None:
    result = run(family, "show", name)
    assert result.exit_code == 0
    assert name in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_device_shows_where_each_number_comes_from(run: Run) -> None:
    text = " ".join(run("devices", "show", "npu").stdout.split())
    for note in load_device("npu").sources:
        assert note.path in text
        assert f"{note.confidence}: {' '.join(note.source.split())}" in text


def test_a_workload_shows_keys_as_its_file_has_them_and_its_own_axes(run: Run, training: Path) -> None:
    text = training.read_text(encoding="utf-8")
    recipe = "recipe: {preset: delayed, interval_steps: 7, exceptions: {first_layers: 1, gemms: [wgrad]}}"
    training.write_text(text.replace("recipe: current", recipe), encoding="utf-8")
    lines = run("workloads", "show", training).stdout.partition("  kind ")[2].partition("Defaults used")[0].splitlines()
    shown = {words[0]: words[1] for line in lines if len(words := line.split(maxsplit=1)) == 2}
    assert (shown["batch.global"], shown["batch.micro"], shown["parallel.dp"]) == ("4", "1", "2")
    axes = {"recipe": "delayed", "recipe.interval_steps": "7", "recipe.exceptions.gemms": "wgrad"}
    assert axes | {"recipe.exceptions.first_layers": "1"} == {
        key: value for key, value in shown.items() if key.startswith("recipe")
    }


@pytest.mark.parametrize("kind", ["workload", "software"])
def test_every_key_of_a_file_is_described(run: Run, kind: str) -> None:
    result = run("schema", kind)
    assert result.exit_code == 0
    assert list(without_description(json.loads(result.stdout), ())) == []


def test_every_key_of_a_device_file_is_in_its_schema(run: Run) -> None:
    schema = json.loads(run("schema", "device").stdout)
    parts = [schema, *schema["$defs"].values()]
    known = {key for part in parts for key in part.get("properties", {})}
    own = {"npu", *load_device("npu").resources, *load_device("npu").paths}
    for note in load_device("npu").sources:
        head = note.path.split(".")[0]
        assert head in schema["properties"], note.path
    assert {"bytes_per_second", "macs_per_cycle", "calibration"} <= known - own
    assert all(part.get("description") for part in parts)
    assert list(without_description(schema, ())) == []


def without_description(schema: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Paths of properties that say nothing about themselves; a fact's own keys and references are left out."""
    if isinstance(schema, list):
        for item in schema:
            yield from without_description(item, path)
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties", {})
    if set(properties) != {"value", "source", "confidence"}:
        for key, value in properties.items():
            if not value.get("description") and "$ref" not in value:
                yield ".".join((*path, key))
    for key, value in schema.items():
        yield from without_description(value, (*path, key))
