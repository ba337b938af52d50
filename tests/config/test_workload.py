"""Workload files: what they say, what edits change, which defaults were used, and every mistake with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hwmodel.config.locate import names
from hwmodel.config.software import load_software
from hwmodel.config.workload import LoadedWorkload, load_workload, presets, schema_workload
from hwmodel.errors import ConfigError, RegistryError
from hwmodel.formats import ScaleLayout
from hwmodel.graph import Layout
from hwmodel.ops.quantise import QuantiseParams
from hwmodel.recipes.recipe import AmaxAxes, Exceptions, Formats
from hwmodel.workload import Batch, HandGraph, Optimizer, Training, mistakes

if TYPE_CHECKING:
    from pathlib import Path

MINIMAL = """\
kind: training
model: llama3.1-8b
batch: {global: 8, sequence: 4096}
"""
GRAPH = """\
kind: graph
tensors:
  x: {shape: [256, 512], format: bf16}
  w: {shape: [384, 512], format: bf16}
ops:
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(folder: Path, text: str, *edits: str | tuple[str, object], recipe: str | None = None) -> LoadedWorkload:
    (folder / "w.yaml").write_text(text)
    return load_workload("w.yaml", edits, recipe)


def training(folder: Path, text: str, *edits: str | tuple[str, object], recipe: str | None = None) -> Training:
    workload = load(folder, text, *edits, recipe=recipe).workload
    assert isinstance(workload, Training)
    return workload


def hand(folder: Path, text: str, *edits: str) -> HandGraph:
    workload = load(folder, text, *edits).workload
    assert isinstance(workload, HandGraph)
    return workload


def refusal(folder: Path, text: str, *edits: str | tuple[str, object], recipe: str | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, text, *edits, recipe=recipe)
    return str(caught.value).splitlines()


# --------------------------------------------------------------------------------------------------------- what is said


def test_every_shipped_workload_loads() -> None:
    shipped = {name: load_workload(name).workload for name in names("workloads")}
    assert {"quickstart", "linear", "llama3_70b", "llama3_405b"} <= shipped.keys()


def test_the_published_layout_is_on_128_devices() -> None:
    workload = load_workload("llama3_405b").workload
    assert isinstance(workload, Training)
    assert workload.layout == Layout(tp=4, pp=8, cp=2, vp=8, dp=2)
    assert (workload.layout.ranks, workload.microbatches, workload.tokens_per_step) == (128, 32, 64 * 8192)
    assert workload.model.parameters == 405_853_388_800


def test_a_training_file_becomes_its_records(folder: Path) -> None:
    text = """\
kind: training
name: mine
model:
  {name: tiny, layers: 4, hidden: 64, heads: 4, key_value_heads: 2, head_size: 16, feed_forward: 128, vocabulary: 96}
batch: {global: 16, micro: 2, sequence: 1e3}
parallel: {tp: 2, sp: false, cp: 1, pp: 2, vp: 2, dp: 2}
recipe:
  preset: delayed
  formats: {x: hif8}
  interval_steps: 5
  amax: {kernel: separate}
  exceptions: {first_layers: 1, gemms: [wgrad]}
schedule: {streams: serial}
software: {set: early, amax_launches: 1, gather_fprop: [plain, block_scaled]}
optimizer: {sharded: false, gradient_format: bf16, master_bytes: 0, moment_bytes: 2}
steps: 3
notes: [one, two]
"""
    loaded = load(folder, text)
    workload = loaded.workload
    assert isinstance(workload, Training)
    assert (workload.name, workload.model.name, workload.model.layers) == ("mine", "tiny", 4)
    assert workload.batch == Batch(16, 2, 1000)
    assert workload.layout == Layout(tp=2, sp=False, pp=2, vp=2, dp=2)
    assert workload.recipe.formats == Formats("hif8", "fp8_e4m3fn", "fp8_e5m2")
    assert (workload.recipe.preset, workload.recipe.interval_steps) == ("delayed", 5)
    assert workload.recipe.amax == AmaxAxes("separate", "full")
    assert workload.recipe.exceptions == Exceptions(first_layers=1, gemms=("wgrad",))
    assert (workload.schedule, workload.software, workload.steps) == ("serial", "early", 3)
    assert workload.optimizer == Optimizer(sharded=False, gradient_format="bf16", master_bytes=0, moment_bytes=2)
    assert workload.notes == ("one", "two")
    assert loaded.software_edits == (("amax_launches", 1), ("gather_fprop", ("plain", "block_scaled")))


def test_the_changes_to_a_software_set_are_what_its_loader_takes(folder: Path) -> None:
    text = (
        MINIMAL
        + "software: {set: early, amax_launches: 1, gather_fprop: [plain, block_scaled], promotion: two_group}\n"
    )
    loaded = load(folder, text, "software.scales_in_gemm_order=true")
    software = load_software(loaded.workload.software, loaded.software_edits)
    assert software.counts["amax_launches"] == 1
    assert software.overlaps["gather_fprop"] == {"plain", "block_scaled"}
    assert (software.kernels["promotion"], software.switches["scales_in_gemm_order"]) == ("two_group", True)


@pytest.mark.parametrize("name", list(presets()))
def test_a_preset_by_name_alone_is_the_preset(folder: Path, name: str) -> None:
    assert training(folder, MINIMAL + f"recipe: {name}\n").recipe == presets()[name]
    assert training(folder, MINIMAL + f"recipe: {{preset: {name}}}\n").recipe == presets()[name]


def test_an_interval_of_none_never_measures(folder: Path) -> None:
    assert training(folder, MINIMAL + "recipe: {preset: delayed, interval_steps: none}\n").recipe.interval_steps is None


def test_a_model_is_a_name_a_path_or_a_change_to_one(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "base.yaml").write_text(
        "name: base\nlayers: 2\nhidden: 64\nheads: 4\nkey_value_heads: 2\nhead_size: 16\n"
        "feed_forward: 96\nvocabulary: 80\n"
    )
    rest = "batch: {global: 8, sequence: 4096}\nkind: training\n"
    (folder / "sub" / "w.yaml").write_text(f"model: {{base: ./base.yaml, layers: 5}}\n{rest}")
    workload = load_workload("sub/w.yaml").workload
    assert isinstance(workload, Training)
    assert (workload.model.layers, workload.model.hidden) == (5, 64)
    assert training(folder, MINIMAL).model.parameters == 8_030_261_248


def test_every_default_that_was_used_is_listed(folder: Path) -> None:
    defaults = dict(load(folder, MINIMAL).defaults)
    assert defaults == {
        "batch.micro": "1",
        **dict.fromkeys(("parallel.tp", "parallel.cp", "parallel.dp", "parallel.pp", "parallel.vp"), "1"),
        "parallel.sp": "true",
        "recipe.preset": "bf16",
        "schedule.streams": "overlap",
        "software.set": "mature",
        "optimizer.sharded": "true",
        "optimizer.gradient_format": "fp32",
        "optimizer.master_bytes": "4",
        "optimizer.moment_bytes": "8",
        "steps": "0",
    }


def test_axes_that_neither_file_nor_preset_states_are_defaults_where_they_matter(folder: Path) -> None:
    def listed(recipe: str) -> set[str]:
        loaded = load(folder, MINIMAL + f"recipe: {recipe}\n")
        return {path.removeprefix("recipe.") for path, _ in loaded.defaults if path.startswith("recipe.")}

    always = {"scale_rounding", "fusion", "exceptions.first_layers", "exceptions.last_layers"}
    assert listed("delayed") == always | {"amax.kernel", "amax.sampling"}
    block_scaled = (always - {"scale_rounding"}) | {"margin_bits"}  # E8M0 is a power of two whatever the axis says
    assert listed("mxfp8") == block_scaled
    assert listed("{preset: mxfp8, fusion: none}") == block_scaled - {"fusion"}
    assert listed("bf16") == set()


# ---------------------------------------------------------------------------------------------------------------- edits


def test_edits_reach_into_sections_written_as_a_text_alone(folder: Path) -> None:
    text = MINIMAL + "recipe: delayed\nsoftware: mature\nschedule: overlap\n"
    edits = ("recipe.fusion=none", "model.layers=124", "schedule.streams=serial", "recipe.interval_steps=none")
    workload = training(folder, text, *edits)
    assert (workload.recipe.fusion, workload.recipe.preset, workload.recipe.interval_steps) == ("none", "delayed", None)
    assert (workload.model.layers, workload.model.hidden, workload.schedule) == (124, 4096, "serial")


@pytest.mark.parametrize(
    ("edit", "value"),
    [
        ("batch.sequence=2048", 2048),
        ("batch.micro=2", 2),
        ("batch.global=32", 32),
        ("parallel.tp=2", 2),
        ("parallel.dp=4", 4),
        ("recipe.granularity=tensor", "tensor"),
        ("recipe.timing=static", "static"),
        ("recipe.history_steps=16", 16),
        ("recipe.margin_bits=2", 2),
        ("recipe.amax.kernel=separate", "separate"),
        ("steps=4", 4),
    ],
)
def test_a_fixed_path_sets_its_field(folder: Path, edit: str, value: object) -> None:
    found: Any = training(folder, MINIMAL + "recipe: delayed\n", edit)
    aliases = {"global": "global_sequences", "micro": "micro_sequences", "parallel": "layout"}
    for step in edit.partition("=")[0].split("."):
        found = getattr(found, aliases.get(step, step))
    assert found == value


def test_the_name_of_a_set_keeps_the_changes_beside_it(folder: Path) -> None:
    text = MINIMAL + "software: {set: mature, amax_launches: 3}\n"
    loaded = load(folder, text, "software=early", "software.scales_in_gemm_order=true")
    assert loaded.workload.software == "early"
    assert loaded.software_edits == (("scales_in_gemm_order", True), ("amax_launches", 3))


def test_python_values_are_edits_too(folder: Path) -> None:
    workload = training(folder, MINIMAL, ("batch.sequence", 1024), ("recipe.preset", "delayed"), ("notes", ["a"]))
    assert (workload.batch.sequence, workload.recipe.preset, workload.notes) == (1024, "delayed", ("a",))


def test_a_preset_given_apart_replaces_the_name_and_keeps_other_axes(folder: Path) -> None:
    text = MINIMAL + "recipe: {preset: delayed, fusion: ideal}\n"
    recipe = training(folder, text, "recipe.margin_bits=3", "recipe=current", recipe="hif8_delayed").recipe
    assert (recipe.preset, recipe.fusion, recipe.margin_bits, recipe.interval_steps) == ("hif8_delayed", "ideal", 3, 5)
    assert training(folder, MINIMAL, recipe="mxfp8").recipe == presets()["mxfp8"]


def test_another_model_replaces_all_of_the_file_s(folder: Path) -> None:
    text = MINIMAL.replace("llama3.1-8b", "{base: llama3.1-8b, layers: 3}")
    assert training(folder, text, "model=llama3.1-70b").model.layers == 80


# ------------------------------------------------------------------------------------------------------------- mistakes


def test_every_mistake_of_a_file_comes_at_once_with_its_line(folder: Path) -> None:
    text = """\
kind: training
model: {base: llama3.1-9b, layers: 0}
batch: {global: 017, sequence: 12:30, mikro: 2}
parallel: {tp: 0, ep: 4}
recipe:
  preset: delaid
  interval_steps: 0
  margin_bits: 99
  granularity: tensr
  amax: {kernel: fuzed}
schedule: overlapp
software: {set: matur, amax_launches: -1}
optimizer: {gradient_format: fp8}
steps: -1
notes: hello
wokload: 1
"""
    found = refusal(folder, text)
    assert [line.partition("; known: ")[0] for line in found] == [
        "w.yaml:2: model.layers: must be >= 1, got 0",
        "w.yaml:2: model.base: unknown model 'llama3.1-9b'; did you mean 'llama3.1-8b'? known: llama3.1-405b, "
        "llama3.1-70b, llama3.1-8b",
        "w.yaml:3: batch.global: must be a whole number, got '017'",
        "w.yaml:3: batch.sequence: must be a whole number, got '12:30'",
        "w.yaml:3: batch: unknown key 'mikro'; did you mean 'micro'? known: global, micro, sequence",
        "w.yaml:4: parallel.tp: must be >= 1, got 0",
        "w.yaml:4: parallel: unknown key 'ep'",
        "w.yaml:6: recipe.preset: unknown preset 'delaid'; did you mean 'delayed'? known: bf16, block, current, "
        "delayed, direct, hif8_current, hif8_delayed, hif8_direct, mxfp8, row, row_bf16_wgrad, static, subchannel",
        "w.yaml:7: recipe.interval_steps: must be >= 1 and <= 10000, or none, got 0",
        "w.yaml:8: recipe.margin_bits: must be between 0 and 32, got 99",
        "w.yaml:9: recipe.granularity: unknown granularity 'tensr'; did you mean 'tensor'? known: block, mx, row, "
        "subchannel, tensor",
        "w.yaml:10: recipe.amax.kernel: must be one of fused, fused_producer, separate, got 'fuzed'; did you mean "
        "'fused'?",
        "w.yaml:11: schedule: unknown schedule 'overlapp'; did you mean 'overlap'? known: overlap, serial",
        "w.yaml:12: software.amax_launches: must be >= 0, got -1",
        "w.yaml:12: software.set: unknown software set 'matur'; did you mean 'mature'? known: early, mature",
        "w.yaml:13: optimizer.gradient_format: must be one of fp32, bf16, got 'fp8'",
        "w.yaml:14: steps: must be >= 0, got -1",
        "w.yaml:15: notes: must be a sequence, got 'hello'",
        "w.yaml:16: unknown key 'wokload'",
    ]


def test_an_op_with_a_mistake_shows_those_of_its_params_too(folder: Path) -> None:
    text = (
        "kind: graph\ntensors: {x: {shape: [4, 4], format: bf16}}\nops:\n"
        "- {op: rope, inputs: x, params: {rotated_columns: many}}\n"
        "- {op: linear, inputs: x, params: {a: 1}}\n"
        "- {op: rope, inputs: x, params: 3}\n"
    )
    assert refusal(folder, text) == [
        "w.yaml:4: ops.0.inputs: must be a sequence, got 'x'",
        "w.yaml:4: ops.0.params.rotated_columns: must be a whole number, got 'many'",
        "w.yaml:5: ops.1.inputs: must be a sequence, got 'x'",
        "w.yaml:5: ops.1.params: op 'linear' has none: the recipe decides",
        "w.yaml:6: ops.2.inputs: must be a sequence, got 'x'",
        "w.yaml:6: ops.2.params: must be a mapping, got 3",
    ]


@pytest.mark.parametrize(
    ("edit", "recipe", "start"),
    [
        (None, "nonsense", "--recipe: recipe.preset: unknown preset 'nonsense'"),
        ("recipe=nonsense", None, "--set: recipe.preset: unknown preset 'nonsense'"),
        ("recipe.preset=nonsense", None, "--set: recipe.preset: unknown preset 'nonsense'"),
        ("recipe.interval_steps=0", None, "--set: recipe.interval_steps: must be >= 1"),
        ("schedule=odd", None, "--set: schedule.streams: unknown schedule 'odd'"),
        ("software=odd", None, "--set: software.set: unknown software set 'odd'"),
        ("model.base=odd", None, "--set: model.base: unknown model 'odd'"),
        ("batch=3", None, "--set: batch: must be a mapping, got 3"),
    ],
)
def test_a_mistake_from_the_command_line_has_no_line(
    folder: Path, edit: str | None, recipe: str | None, start: str
) -> None:
    text = (
        "kind: training\nmodel: llama3.1-8b\nbatch: {global: 8, sequence: 64}\n"
        "recipe: delayed\nschedule: overlap\nsoftware: mature\n"
    )
    (line,) = refusal(folder, text, *([] if edit is None else [edit]), recipe=recipe)
    assert line.startswith(start)


def test_a_section_written_as_a_text_alone_is_named_without_a_key(folder: Path) -> None:
    text = "kind: training\nmodel: llama3.1-8c\nbatch: {global: 8, sequence: 64}\nrecipe: delaid\nsoftware: ~x\n"
    assert [line.partition(";")[0] for line in refusal(folder, text)] == [
        "w.yaml:2: model: unknown model 'llama3.1-8c'",
        "w.yaml:4: recipe: unknown preset 'delaid'",
        "w.yaml:5: software: unknown software set '~x'",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\n", "w.yaml:1: kind: is missing; known: graph, training"),
        ("kind: prefill\n", "w.yaml:1: kind: unknown kind 'prefill'; known: graph, training"),
        ("kind: trainin\n", "w.yaml:1: kind: unknown kind 'trainin'; did you mean 'training'? known: graph, training"),
        ("kind: 5\n", "w.yaml:1: kind: must be one of graph, training, got 5"),
    ],
)
def test_a_kind_that_is_not_there_is_refused_with_those_that_are(folder: Path, text: str, message: str) -> None:
    assert refusal(folder, text) == [message]


def test_what_must_be_written_is_asked_for(folder: Path) -> None:
    assert refusal(folder, "kind: training\n") == ["w.yaml:1: model: is missing", "w.yaml:1: batch: is missing"]
    found = refusal(folder, "kind: training\nmodel: {layers: 2, hidden: 64}\nbatch:\n  global: 8\n")
    assert found == [
        *(f"w.yaml:2: model.{name}: is missing" for name in ("heads", "key_value_heads", "head_size")),
        *("w.yaml:2: model.feed_forward: is missing", "w.yaml:2: model.vocabulary: is missing"),
        "w.yaml:3: batch.sequence: is missing",
    ]


def test_a_mistake_in_another_file_has_that_file_s_name(folder: Path) -> None:
    (folder / "m.yaml").write_text("name: m\nlayers: 0\nhiden: 3\n")
    found = refusal(folder, MINIMAL.replace("llama3.1-8b", "./m.yaml"))
    assert {"m.yaml:1: hidden: is missing", "m.yaml:2: layers: must be >= 1, got 0"} <= set(found)
    assert any(line.startswith("m.yaml:3: unknown key 'hiden'; did you mean 'hidden'?") for line in found)
    assert all(line.startswith("m.yaml:") for line in found)
    assert refusal(folder, MINIMAL.replace("llama3.1-8b", "./no.yaml")) == [
        "w.yaml:2: model: no such file, got './no.yaml'"
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("parallel: {dp: 3}\n", "w.yaml:3: batch.global: must be a multiple of parallel.dp x batch.micro = 3, got 8"),
        ("parallel: {cp: 3}\n", "w.yaml:3: batch.sequence: must be a multiple of parallel.cp=3, got 4096"),
        ("parallel: {vp: 2}\n", "w.yaml:4: parallel.vp: virtual stages need pp > 1, got vp=2 with pp=1"),
        ("parallel: {pp: 8, vp: 8}\n", "w.yaml:4: parallel.vp: pp x vp must be <= layers + 2 = 34, got 64"),
        ("parallel: {tp: 3}\n", "w.yaml:4: parallel.tp: must divide the model's heads=32, got 3"),
    ],
)
def test_what_does_not_fit_together_is_refused_at_the_line_of_the_number(
    folder: Path, lines: str, message: str
) -> None:
    assert refusal(folder, MINIMAL + lines) == [message]


def test_axes_that_cannot_be_together_are_refused_with_the_reason(folder: Path) -> None:
    (found,) = refusal(folder, MINIMAL + "recipe:\n  preset: delayed\n  granularity: block\n")
    assert found.startswith("w.yaml:5: recipe.timing: 'delayed' with granularity 'block': a scale kept across steps")
    (found,) = refusal(folder, MINIMAL + "recipe:\n  preset: mxfp8\n  granularity: tensor\n")
    assert found.startswith("w.yaml:5: recipe.formats.x: 'mxfp8_e4m3fn' shares one scale per 32 elements")


def test_an_edit_that_is_wrong_says_so(folder: Path) -> None:
    found = refusal(folder, MINIMAL, "parallel.ep=4", "recipe.timing=dela", "steps=x", "batch.sequenc=1")
    assert [line.partition("; known")[0] for line in found] == [
        "--set: recipe.timing: unknown timing 'dela'; did you mean 'delayed'? known: current, delayed, direct, static",
        "--set: steps: must be a whole number, got 'x'",
        "--set: batch: unknown key 'sequenc'; did you mean 'sequence'? known: global, micro, sequence",
        "--set: parallel: unknown key 'ep'",
    ]
    assert refusal(folder, MINIMAL, "foo", "model.layers.x=1") == [
        "--set: must be path=value, got 'foo'",
    ]
    assert refusal(folder, MINIMAL, recipe="nope")[0].startswith(
        "--recipe: recipe.preset: unknown preset 'nope'; known:"
    )


def test_a_software_entry_that_is_unknown_is_refused(folder: Path) -> None:
    (found,) = refusal(folder, MINIMAL + "software: {set: mature, scales_in_gemm_orde: true}\n")
    assert found.startswith(
        "w.yaml:4: software: unknown key 'scales_in_gemm_orde'; did you mean 'scales_in_gemm_order'?"
    )
    (found,) = refusal(folder, MINIMAL, "software.gather_fprop=[plain,odd]")
    assert found == "--set: software.gather_fprop.1: must be one of plain, block_scaled, got 'odd'"


def test_a_name_that_no_workload_has_is_refused() -> None:
    with pytest.raises(RegistryError, match=r"^unknown workload 'quickstat'; did you mean 'quickstart'\? known: "):
        load_workload("quickstat")


@pytest.mark.parametrize("number", ["1e3", "1e+3", "1.0e3", "1.0e+3", "1000", "'1000'"])
def test_a_number_is_the_same_however_it_is_written(folder: Path, number: str) -> None:
    assert training(folder, MINIMAL.replace("4096", number)).batch.sequence == 1000


def test_a_text_that_looks_like_a_number_stays_as_written(folder: Path) -> None:
    assert training(folder, MINIMAL + "name: 695e0514\nnotes: [1e12]\n").name == "695e0514"


# --------------------------------------------------------------------------------------------------------------- graphs


def test_a_graph_file_becomes_its_records(folder: Path) -> None:
    text = GRAPH + (
        "  - {op: linear, name: fc, inputs: [x, w], outputs: [y], backward: false}\n"
        "  - op: quantise\n"
        "    inputs: [y]\n"
        "    outputs: [q, s]\n"
        "    params: {format: fp8_e4m3fn, layout: {rows: 1, columns: all, powers_of_two: true}}\n"
        "recipe: row\n"
    )
    workload = hand(folder, text)
    layer, cast = workload.ops
    assert (layer.op, layer.name, layer.inputs, layer.backward) == ("linear", "fc", ("x", "w"), False)
    assert cast.params == QuantiseParams("fp8_e4m3fn", ScaleLayout(1, None, powers_of_two=True))
    assert [(tensor.name, tensor.shape) for tensor in workload.tensors] == [("x", (256, 512)), ("w", (384, 512))]
    assert workload.recipe == presets()["row"]


def test_every_mistake_of_a_graph_comes_at_once(folder: Path) -> None:
    text = GRAPH.replace("[384, 512], format: bf16", "[384, 0], format: bf17") + (
        "  - {op: gem, inputs: [x], outputs: [y]}\n"
        "  - {op: linear, inputs: [x], outputs: [y], params: {a: 1}}\n"
        "  - op: rope\n"
        "    inputs: [x]\n"
        "    outputs: [r]\n"
        "    params: {rotated_column: 4}\n"
        "  - {op: rope, inputs: [x], outputs: [s]}\n"
        "  - {op: amax, inputs: [x], outputs: [m], backward: true, params: {layout: {rows: every, columns: 0}}}\n"
        "  - {op: amax, inputs: [x], outputs: [m], params: {layout: {rows: all, columns: 0}}}\n"
        "  - {op: amax, inputs: [x], outputs: [m], params: {layout: {rows: all, columns: 8}, launches: 0}}\n"
    )
    found = refusal(folder, text)
    assert [line.partition("; known: ")[0].partition("? known: ")[0] for line in found] == [
        "w.yaml:4: tensors.w.shape.1: must be >= 1, got 0",
        "w.yaml:4: tensors.w.format: unknown format 'bf17'; did you mean 'bf16'",
        "w.yaml:6: ops.0.op: unknown op 'gem'; did you mean 'gemm'",
        "w.yaml:7: ops.1.params: op 'linear' has none: the recipe decides",
        "w.yaml:7: ops.1.inputs: op 'linear' has 2 (x and w), got 1",
        "w.yaml:7: ops.1.outputs.0: tensor 'y' is written twice, by node 'y' and by node 'y'",
        "w.yaml:11: ops.2.params.rotated_columns: is missing",
        "w.yaml:11: ops.2.params: unknown key 'rotated_column'; did you mean 'rotated_columns'",
        "w.yaml:12: ops.3.params.rotated_columns: is missing",
        "w.yaml:13: ops.4.backward: only op 'linear' has it, got op 'amax'; see params.backward",
        "w.yaml:13: ops.4.params.layout.rows: must be a whole number or all, got 'every'",
        "w.yaml:13: ops.4.params.layout.columns: must be >= 1 or all, got 0",
        "w.yaml:14: ops.5.params.layout.columns: must be >= 1 or all, got 0",
        "w.yaml:14: ops.5.outputs.0: tensor 'm' is written twice, by node 'm' and by node 'm'",
        "w.yaml:15: ops.6.params.launches: must be >= 1, got 0",
        "w.yaml:15: ops.6.outputs.0: tensor 'm' is written twice, by node 'm' and by node 'm'",
    ]


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        (
            "  - {op: transpose, inputs: [b], outputs: [a]}\n  - {op: transpose, inputs: [a], outputs: [b]}\n",
            "w.yaml:6: ops.0: cycle: 'a' -> 'b' -> 'a'",
        ),
        (
            "  - {op: transpose, inputs: [x], outputs: [a]}\n  - {op: transpose, inputs: [nothing], outputs: [b]}\n",
            "w.yaml:7: ops.1.inputs.0: node 'b' reads 'nothing', which no node writes and which is not a graph input",
        ),
        (
            "  - {op: transpose, inputs: [x], outputs: [a]}\n"
            "  - {op: transpose, name: again, inputs: [x], outputs: [a]}\n",
            "w.yaml:7: ops.1.outputs.0: tensor 'a' is written twice, by node 'a' and by node 'again'",
        ),
        ("  []\n", "w.yaml:5: ops: has no ops"),
        (
            "  - {op: transpose, inputs: [x, x], outputs: [a]}\n",
            "w.yaml:6: ops.0.inputs: op 'transpose' reads 1 tensors, got 2 ('x', 'x')",
        ),
        (
            "  - {op: rope, inputs: [x], outputs: [a],\n     params: {rotated_columns: 600}}\n",
            "w.yaml:7: ops.0.params.rotated_columns: must be at most the columns of 'x' (256, 512), got 600",
        ),
        (
            "  - {op: linear, inputs: [x, w], outputs: [y]}\n  - {op: linear, inputs: [x, w], outputs: [z]}\n",
            "w.yaml:7: ops.1: tensor 'x.grad' is written twice, by node 'z.backward' and by node 'y.backward'",
        ),
        (
            "  - {op: linear, inputs: [w, x], outputs: [y]}\n"
            "  - {op: linear, inputs: [y, w], outputs: [z], backward: false}\n",
            "w.yaml:7: ops.1.inputs: 'y' (384, 256) and 'w' (384, 512) must share the contraction extent "
            "(transpose_a=False, transpose_b=True), got 256 and 512",
        ),
    ],
)
def test_a_graph_that_cannot_run_is_refused_by_name(folder: Path, ops: str, message: str) -> None:
    assert refusal(folder, GRAPH + ops) == [message]


def test_a_recipe_that_does_not_fit_a_shape_is_refused_with_its_line(folder: Path) -> None:
    text = GRAPH.replace("512", "500") + "  - {op: linear, inputs: [x, w], outputs: [y]}\nrecipe: mxfp8\n"
    found = refusal(folder, text)
    assert [line.partition(" columns")[0] for line in found] == [
        "w.yaml:7: recipe.granularity: tensor 'x' has 500",
        "w.yaml:7: recipe.granularity: tensor 'w' has 500",
    ]


def test_an_overlap_that_no_software_set_knows_is_refused(folder: Path) -> None:
    path = folder / "w.yaml"
    path.write_text(
        "kind: graph\nname: g\ntensors:\n  x: {shape: [64, 64], format: bf16}\nops:\n  - op: all_gather\n"
        "    inputs: [x]\n    outputs: [y]\n    params: {group: tp, ranks: 8, overlapped: true,\n"
        "      overlap_name: gather_fpro}\n",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError) as caught:
        load_workload(path)
    (line,) = str(caught.value).splitlines()
    start = "w.yaml:10: ops.0.params.overlap_name: unknown name 'gather_fpro'; did you mean 'gather_fprop'? known: "
    assert line.startswith(start), line


def test_thousands_of_names_that_nobody_makes_are_named_without_looking_for_each(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(mistakes, "nearest", lambda name, known: looked.append(name))
    path = folder / "w.yaml"
    ops = "".join(f"  - {{op: residual_add, inputs: [x, n{place}], outputs: [y{place}]}}\n" for place in range(500))
    path.write_text(
        f"kind: graph\nname: g\ntensors:\n  x: {{shape: [64, 64], format: bf16}}\nops:\n{ops}", encoding="utf-8"
    )
    with pytest.raises(ConfigError) as caught:
        load_workload(path)
    assert len(str(caught.value).splitlines()) == 500
    assert len(looked) == 20


def test_an_op_that_only_lowering_writes_is_unknown(folder: Path) -> None:
    (found,) = refusal(folder, GRAPH + "  - {op: fused, inputs: [x], outputs: [y]}\n")
    assert found.startswith("w.yaml:6: ops.0.op: unknown op 'fused'")


# --------------------------------------------------------------------------------------------------------------- schema


def keys(schema: object, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every property in a JSON schema."""
    found: list[tuple[str, dict[str, Any]]] = []
    if isinstance(schema, dict):
        for name, item in schema.get("properties", {}).items():
            found.append((f"{path}.{name}", item))
        for name, item in schema.items():
            found += keys(item, f"{path}.{name}")
    elif isinstance(schema, list):
        for item in schema:
            found += keys(item, path)
    return found


def test_every_key_of_the_schema_is_described() -> None:
    listed = keys(schema_workload())
    assert len(listed) > 100
    assert not [path for path, item in listed if not item.get("description")]


def test_the_schema_s_references_lead_somewhere() -> None:
    schema = schema_workload()

    def references(value: object) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(references, value.values()))
        return set().union(*map(references, value)) if isinstance(value, list) else set()

    assert references(schema) <= {f"#/$defs/{name}" for name in schema["$defs"]}
    assert [entry["$ref"] for entry in schema["oneOf"]] == ["#/$defs/training", "#/$defs/graph"]
