"""What ``list`` and ``show`` say about each family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Final

from rich.console import Console

from hwmodel.cli import show
from hwmodel.config.device import CONFIDENCE, load_device, load_software
from hwmodel.config.locate import names
from hwmodel.config.workload import load_model, load_workload, presets
from hwmodel.device.software import COUNTS, KERNELS, OVERLAPS, SWITCHES
from hwmodel.errors import RegistryError
from hwmodel.formats import FORMATS
from hwmodel.recipes.recipe import Recipe
from hwmodel.workload import HandGraph, Training

_ROUNDINGS: Final = {"rne": "to nearest, ties to even", "ta": "to nearest, ties away from zero"}
_TIMINGS: Final = {
    "current": "current: scales from the amax at hand",
    "delayed": "delayed: scales from the amax of past steps",
    "static": "static: fixed scale, no amax",
    "direct": "direct: plain cast, no scale",
}
_BATCH_KEYS: Final = {"batch.global_sequences": "batch.global", "batch.micro_sequences": "batch.micro"}
"""Fields of a batch -> their keys in a file and in --set."""

Lines = list[list[str]]
Listing = tuple[tuple[str, ...], Lines]


def _devices() -> Listing:
    return ("device", "what it is"), [[name, load_device(name).title] for name in names("devices")]


def _workloads() -> Listing:
    lines = []
    for name in names("workloads"):
        workload = load_workload(name).workload
        lines.append([name, _kind(workload), workload.name])
    return ("workload", "kind", "what it is"), lines


def _models() -> Listing:
    lines = []
    for name in names("models"):
        model = load_model(name)
        lines.append([name, model.name, f"{model.parameters / 1e9:,.1f} billion"])
    return ("model", "what it is", "parameters"), lines


def _recipes() -> Listing:
    lines = []
    for name, recipe in presets().items():
        formats = dict.fromkeys((recipe.formats.x, recipe.formats.w, recipe.formats.g))
        lines.append([name, ", ".join(formats), _recipe_words(recipe)])
    return ("recipe", "X, W, G", "what it is"), lines


def _formats() -> Listing:
    lines = []
    for name, spec in FORMATS.items():
        rounding = _ROUNDINGS.get(spec.rounding, spec.rounding)
        lines.append([name, str(spec.bits), f"{spec.max_finite:.10g}", rounding])
    return ("format", "bits", "largest finite", "rounding"), lines


def _software() -> Listing:
    return ("software", "what it is"), [[name, load_software(name).title] for name in names("software")]


def _show_device(out: Console, name: str) -> None:
    device = load_device(name)
    show.heading(out, f"{name}: {device.title}")
    show.explained(
        out, [(f"{note.path}: {note.value}", f"{note.confidence}: {note.source}") for note in device.sources]
    )
    used = {note.confidence for note in device.sources}
    show.bullets(out, "Confidence", [f"{letter}: {text}" for letter, text in CONFIDENCE.items() if letter in used])
    show.bullets(out, "Keep in mind", list(device.notes))


def _show_workload(out: Console, name: str) -> None:
    loaded = load_workload(name)
    workload = loaded.workload
    show.heading(out, f"{name}: {workload.name}")
    lines = [("kind", _kind(workload))]
    if isinstance(workload, Training):
        batch = [(_BATCH_KEYS.get(path, path), value) for path, value in _record("batch", workload.batch)]
        lines += [("model", workload.model.name), *batch]
        lines += _record("parallel", workload.layout)
        lines += [
            ("devices", f"{workload.layout.ranks:,}"),
            ("microbatches", f"{workload.microbatches:,}"),
            *_record("optimizer", workload.optimizer),
        ]
    if isinstance(workload, HandGraph):
        lines += [(tensor.name, f"{_shape(tensor.shape)} {tensor.format}") for tensor in workload.tensors]
        lines += [
            (op.name or op.op, f"{op.op}: {', '.join(op.inputs)} -> {', '.join(op.outputs)}") for op in workload.ops
        ]
    lines += [
        ("recipe", workload.recipe.preset),
        *_own_axes(workload.recipe),
        ("schedule", workload.schedule),
        ("software", workload.software),
        ("steps", str(workload.steps)),
    ]
    show.pairs(out, lines)
    show.together(out, "Defaults used", [f"{path}: {value}" for path, value in loaded.defaults])
    show.bullets(out, "Keep in mind", list(workload.notes))


def _show_model(out: Console, name: str) -> None:
    model = load_model(name)
    show.heading(out, f"{name}: {model.name}")
    show.pairs(
        out,
        [
            *[pair for pair in _record("", model) if pair[0] != "name"],
            ("parameters", f"{model.parameters:,}"),
            ("key and value cache", f"{model.key_value_bytes_per_token():,} bytes per token in BF16"),
        ],
    )


def _show_recipe(out: Console, name: str) -> None:
    known = presets()
    if name not in known:
        raise RegistryError("recipe", name, tuple(known))
    show.heading(out, name)
    show.pairs(out, [pair for pair in _record("", known[name]) if pair[0] != "preset"])


def _show_format(out: Console, name: str) -> None:
    spec = FORMATS.get(name)
    show.heading(out, name)
    show.pairs(out, [pair for pair in _record("", spec) if pair[0] != "name"])


def _show_software(out: Console, name: str) -> None:
    software = load_software(name)
    show.heading(out, f"{name}: {software.title}")
    since = {note.path: note.since for note in software.since}
    sections: tuple[tuple[str, Mapping[str, object], Mapping[str, str]], ...] = (
        ("switches", software.switches, SWITCHES),
        ("counts", software.counts, COUNTS),
        ("kernels", software.kernels, KERNELS),
        ("overlap", {key: sorted(value) for key, value in software.overlaps.items()}, OVERLAPS),
        ("fused", dict.fromkeys(sorted(software.fused), ""), {}),
    )
    for section, entries, texts in sections:
        lines = []
        for entry, value in entries.items():
            meaning = f"{texts[entry]}; " if entry in texts else ""
            said = since.get(f"{section}.{entry}", "not stated")
            lines.append((f"{entry}: {_value(value)}" if value != "" else entry, f"{meaning}since {said}"))
        if lines:
            show.heading(out, section)
            show.explained(out, lines)


def _kind(workload: Training | HandGraph) -> str:
    return "training" if isinstance(workload, Training) else "graph"


def _record(prefix: str, item: object) -> list[tuple[str, str]]:
    """(path, value) of every field of a record and of the records in it."""
    assert is_dataclass(item)
    assert not isinstance(item, type)
    found: list[tuple[str, str]] = []
    for entry in fields(item):
        path = f"{prefix}.{entry.name}" if prefix else entry.name
        value = getattr(item, entry.name)
        found += _record(path, value) if is_dataclass(value) else [(path, _value(value))]
    return found


def _value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | frozenset):
        return ", ".join(str(item) for item in value) or "-"
    return f"{value:.10g}" if isinstance(value, float) else str(value) or "-"


def _own_axes(recipe: Recipe) -> list[tuple[str, str]]:
    """Axes that are not as the recipe's preset has them."""
    preset = presets().get(recipe.preset, Recipe())
    pairs = zip(_record("recipe", recipe), _record("recipe", preset), strict=True)
    return [here for here, there in pairs if here != there and here[0] != "recipe.preset"]


def _recipe_words(recipe: Recipe) -> str:
    """What a recipe is, in a few words."""
    if not recipe.scaled:
        return "no scaling"
    words = [f"{recipe.granularity} granularity", _TIMINGS.get(recipe.timing, recipe.timing)]
    if recipe.keeps_state:
        steps = recipe.interval_steps
        every = "step" if steps == 1 else f"{steps} steps"
        words.append("never refreshed" if steps is None else f"refreshed every {every}")
    if recipe.exceptions.gemms:
        words.append(f"{' and '.join(recipe.exceptions.gemms)} in BF16")
    return ", ".join(words)


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{size:,}" for size in shape) or "scalar"


LISTS: Final[Mapping[str, Callable[[], Listing]]] = {
    "devices": _devices,
    "workloads": _workloads,
    "models": _models,
    "recipes": _recipes,
    "formats": _formats,
    "software": _software,
}
"""Family -> columns and lines of its list."""
SHOWS: Final[Mapping[str, Callable[[Console, str], None]]] = {
    "devices": _show_device,
    "workloads": _show_workload,
    "models": _show_model,
    "recipes": _show_recipe,
    "formats": _show_format,
    "software": _show_software,
}
"""Family -> what shows one of it."""
