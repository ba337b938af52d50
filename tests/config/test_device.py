"""Device files and software sets: what is shipped loads with its sources, and every refusal says where and what."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hwmodel.config.device import CONFIDENCE, load_device, schema_device
from hwmodel.config.extends import load_extended
from hwmodel.config.facts import unwrap
from hwmodel.config.loader import parse
from hwmodel.config.locate import locate, names
from hwmodel.config.software import SECTIONS, load_software, schema_software
from hwmodel.device.kernel import time_alone
from hwmodel.device.software import FUSED, OVERLAPS, SWITCHES
from hwmodel.errors import ConfigError, RegistryError
from hwmodel.formats import FORMATS
from hwmodel.graph.demand import INSTRUCTION_CLASSES, Gemm, Stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from hwmodel.config.document import Document, KeyPath
    from hwmodel.device.device import Device

DEVICES = names("devices")
SOFTWARE = names("software")
TINY = Path(__file__).parent.parent / "devices" / "tiny_shared_port.yaml"


def refused(device: str | Path, *edits: str | tuple[str, object]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_device(device, edits)
    return str(caught.value).splitlines()


def changed(folder: Path, old: str, new: str, *, name: str = "mine.yaml") -> Path:
    """The tiny device with one text replaced."""
    text = TINY.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path = folder / name
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), start=1) if text in line)


# ----------------------------------------------------------------------------------------------------- what is shipped


def test_three_devices_and_two_software_sets_are_shipped() -> None:
    assert set(DEVICES) >= {"gpu", "h100", "npu"}
    assert set(SOFTWARE) >= {"early", "mature"}


@pytest.mark.parametrize("name", DEVICES)
def test_a_shipped_device_is_whole(name: str) -> None:
    device = load_device(name)
    assert device.name == name
    assert device.title
    assert pickle.loads(pickle.dumps(device)) == device
    assert set(device.vector.elements_per_cycle) == set(INSTRUCTION_CLASSES)
    assert set(device.matrix.sustained_fraction) == set(device.matrix.macs_per_cycle)
    assert set(device.attention_fraction) == {"forward", "backward"}
    assert device.resources[device.memory_resource].achieved_fraction["contiguous"] < 1
    assert [level.ranks for level in device.levels] == sorted(level.ranks for level in device.levels)
    rates = device.matrix.macs_per_cycle
    assert all({listed, FORMATS.get(listed).rate_as} & set(rates) for listed in device.matrix_formats)


@pytest.mark.parametrize("name", DEVICES)
def test_every_number_of_a_shipped_device_says_where_it_comes_from(name: str) -> None:
    document = load_extended("devices", locate("devices", name))
    bare = [path for path, value in numbers(document.data) if not below_a_source(document, path)]
    assert not bare, f"numbers without {{value, source, confidence}}: {bare}"
    notes = load_device(name).sources
    assert len(notes) > 90
    assert all(note.source and note.confidence in CONFIDENCE for note in notes)
    assert not [note.path for note in notes if note.source == "source not stated"]


def numbers(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    """Numbers, and texts that begin like one."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, (*path, key)) if key not in {"source", "title", "notes"} else ()
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from numbers(item, (*path, index))
    elif isinstance(value, bool | int | float) or (isinstance(value, str) and value[:1].isdigit()):
        yield path, value


def below_a_source(document: Document, path: KeyPath) -> bool:
    above = (document.get(path[:length]) for length in range(len(path)))
    return any(isinstance(item, dict) and {"value", "source", "confidence"} <= item.keys() for item in above)


@pytest.mark.parametrize("name", DEVICES)
def test_every_policy_of_a_shipped_device_has_its_sentence(name: str) -> None:
    device = load_device(name)
    said = {note.path for note in device.sources}
    assert {f"resources.{resource}.policy" for resource in device.resources} <= said


@pytest.mark.parametrize("name", DEVICES)
def test_facts_and_calibration_stay_apart(name: str) -> None:
    data = load_extended("devices", locate("devices", name)).data
    fitted = {"achieved_fraction", "sustained_fraction", "attention_fraction"}
    outside = {str(path) for path in keys({key: item for key, item in data.items() if key != "calibration"})}
    assert not fitted & outside
    assert list(data)[-1] == "calibration"


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from keys(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from keys(item)


@pytest.mark.parametrize(
    ("name", "teraflops"), [("npu", 432.5), ("gpu", 2250.2), ("h100", 989.4)], ids=["npu", "gpu", "h100"]
)
def test_cores_clock_and_rate_give_the_printed_peak(name: str, teraflops: float) -> None:
    device = load_device(name)
    peak = 2 * device.matrix.cores * device.matrix.macs_per_cycle["bf16"] * device.clock_hz
    assert peak / 1e12 == pytest.approx(teraflops, abs=0.05)
    assert device.matrix.macs_per_cycle["fp8_e4m3fn"] == 2 * device.matrix.macs_per_cycle["bf16"]


@pytest.mark.parametrize(
    ("name", "shape", "number_format", "teraflops"),
    [
        ("gpu", (1792, 16128, 3072), "bf16", 1745.0),
        ("gpu", (15360, 4096, 3072), "fp8_e4m3fn", 3432.5),
        ("h100", (2048, 2048, 13312), "bf16", 794.5),
        ("h100", (1024, 9216, 14336), "fp8_e4m3fn", 1402.6),
        ("npu", (4096, 32768, 512), "bf16", 0.97 * 432.5),
    ],
)
def test_long_gemms_reach_what_was_measured(
    name: str, shape: tuple[int, int, int], number_format: str, teraflops: float
) -> None:
    # Rows the sustained fractions are taken from (stas00/ml-engineering 744d01e; DeepGEMM-Ascend README for the NPU).
    m, n, k = shape
    gemm = Gemm(m=m, n=n, k=k, a_format=number_format, b_format=number_format, out_format="bf16")
    time = time_alone(gemm, load_device(name))
    assert gemm.flops / time.picoseconds == pytest.approx(teraflops, rel=0.02)


@pytest.mark.parametrize("name", DEVICES)
def test_a_large_cast_runs_at_the_achieved_share_of_memory(name: str) -> None:
    device = load_device(name)
    count = 2**28
    cast = Stream(2 * count, count, count, (("binary", count), ("cast", count)))
    memory = device.resources[device.memory_resource]
    achieved = memory.achieved_fraction["contiguous"] * memory.bytes_per_second
    assert cast.bytes / time_alone(cast, device).picoseconds == pytest.approx(achieved / 1e12, rel=0.03)


def test_only_the_npu_multiplies_hif8_and_only_hopper_needs_k_contiguous_operands() -> None:
    devices = {name: load_device(name) for name in ("npu", "gpu", "h100")}
    assert [name for name, device in devices.items() if "hif8" in device.matrix_formats] == ["npu"]
    assert [name for name, device in devices.items() if not device.any_operand_layout] == ["h100"]
    assert devices["h100"].native_scaling == ()
    assert devices["npu"].native_scaling == ((32, "e8m0"),)
    assert devices["gpu"].native_scaling == ((32, "e8m0"), (128, "e8m0"))
    assert devices["gpu"].matrix.scales_share_accumulator
    assert any("no published training step" in note for note in devices["npu"].notes)


def test_a_device_whose_vector_unit_shares_a_port_with_the_cube_is_yaml_only() -> None:
    device = load_device(TINY)
    takers = [name for name, path in device.paths.items() if "ub_port" in path.resources]
    assert takers == ["l1_to_l0", "gm_to_ub", "ub_to_gm"]
    assert device.resources["ub_port"].policy == "proportional"
    gemm = Gemm(m=1024, n=1024, k=1024, a_format="bf16", b_format="bf16", out_format="bf16")
    assert "ub_port" in dict(time_alone(gemm, device).demands)
    assert "ub_port" in dict(time_alone(Stream(2**24, 2**23, 2**23), device).demands)


# -------------------------------------------------------------------------------------------------------------- sources


def test_a_bare_number_is_accepted_and_recorded_as_such() -> None:
    notes = {note.path: note for note in load_device(TINY).sources}
    assert notes["resources.hbm.bytes_per_second"].value == "100 GB/s"
    assert notes["resources.hbm.bytes_per_second"].source == "source not stated"
    assert notes["resources.ub_port.policy"].source == "one arbiter"
    assert notes["matrix.tiles.0.cores"].source == "default of the schema"


def test_a_fact_keeps_value_source_and_confidence() -> None:
    (note,) = [note for note in load_device("h100").sources if note.path == "resources.hbm.bytes_per_second"]
    assert (note.value, note.confidence) == ("3.35 TB/s", "D")
    assert "ml-engineering" in note.source


def test_what_a_fact_says_is_checked(tmp_path: Path) -> None:
    def lines(fact: str) -> list[str]:
        return refused(changed(tmp_path, "clock_hz: 1 GHz", f"clock_hz: {fact}"))

    assert lines("{value: 1 GHz, sorce: table 3}") == [
        "mine.yaml:3: clock_hz: unknown key 'sorce'; did you mean 'source'? known: confidence, source, value"
    ]
    assert lines("{value: 1 GHz, source: table 3, confidence: X}") == [
        "mine.yaml:3: clock_hz.confidence: must be one of D, V, M, T, I, U, A, F, got 'X'"
    ]
    assert "mine.yaml:3: clock_hz.value: is missing" in lines("{source: table 3}")
    assert lines("{value: 1 GHz, source: 3}") == ["mine.yaml:3: clock_hz.source: must be text, got 3"]


def test_a_fact_on_several_lines_is_located_at_its_value(tmp_path: Path) -> None:
    path = changed(tmp_path, "clock_hz: 1 GHz", "clock_hz:\n  source: table 3\n  value: -1 GHz")
    assert refused(path) == ["mine.yaml:5: clock_hz: must be > 0, got -1000000000"]


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "hbm: {bytes_per_second: 100 GB/s",
            "hbm: {bytes_per_second: -1.6 TB/s",
            "resources.hbm.bytes_per_second: must be > 0, got -1600000000000.0",
        ),
        (
            "hbm: {bytes_per_second: 100 GB/s",
            "hbm: {bytes_per_second: 100 GB",
            "resources.hbm.bytes_per_second: must be a number of bytes/s, or text such as '1.6 TB/s', got '100 GB': "
            "that is bytes, not bytes/s",
        ),
        (
            "link: {bytes_per_second: 10 GB/s",
            "link: {bytes_per_second: 80 Gb/s",
            "resources.link.bytes_per_second: must be a number of bytes/s, or text such as '1.6 TB/s', got '80 Gb/s': "
            "that is bits/s, not bytes/s (8 bits are 1 byte)",
        ),
        (
            "{bytes: 1 GiB",
            "{bytes: 1 GIB",
            "memory.bytes: must be a number of bytes, or text such as '64 GiB', got '1 GIB'; did you mean GiB?",
        ),
        (
            "issue_cycles: 4",
            "issue_cycles: four",
            "matrix.issue_cycles: must be a whole number, got 'four'",
        ),
        (
            "issue_cycles: 4",
            "issue_cycles: 017",
            "matrix.issue_cycles: must be a whole number, got '017'",
        ),
        (
            "reduction_cycles: 500",
            "reduction_cycles: 12:30",
            "calibration.reduction_cycles: must be a whole number, got '12:30'",
        ),
        (
            "cache_bytes: 1 MiB",
            "cache_bytes: .inf",
            "cache_bytes: must be a number of bytes, or text such as '64 GiB', got '.inf'",
        ),
        (
            "scales_share_accumulator: false",
            "scales_share_accumulator: no",
            "matrix.scales_share_accumulator: must be true or false, got 'no'",
        ),
        (
            "resources: [hbm, l2]}",
            "resources: [hbn, l2]}",
            "paths.gm_to_l1.resources.0: unknown resource with a rate 'hbn'; did you mean 'hbm'? "
            "known: hbm, l2, link, ub_port",
        ),
        (
            "path: l0_to_gm}",
            "path: l0_to_mg}",
            "stages.gemm.3.path: unknown path 'l0_to_mg'; did you mean 'l0_to_gm'? "
            "known: gm_to_l1, gm_to_ub, l0_to_gm, l1_to_l0, ub_to_gm",
        ),
        (
            "moves: [matrix], unit: cube}",
            "moves: [matrix], unit: cube, path: l1_to_l0}",
            "stages.gemm.2.unit: a stage has a path or a unit, not both; got path 'l1_to_l0' and unit 'cube'",
        ),
        (
            "moves: [matrix], unit: cube}",
            "moves: [matrix]}",
            "stages.gemm.2: must have path or unit, got neither",
        ),
        (
            "moves: [output], path",
            "moves: [output, a], path",
            "stages.gemm.3.moves: a stage is in the K loop or in the epilogue, got output, a",
        ),
        (
            "moves: [output], path",
            "moves: [vector], path",
            "stages.gemm.3.moves.0: 'vector' is not for the path 'l0_to_gm': a unit works, a path moves bytes",
        ),
        (
            "holds: {gemm: [cube]",
            "holds: {gemm: [hbm]",
            "holds.gemm.0: unknown resource with units 'hbm'; known: cube, vector",
        ),
        (
            "l2: {bytes_per_second: 400 GB/s, policy: fair}",
            "l2: {bytes_per_second: 400 GB/s, policy: fare}",
            "resources.l2.policy: must be 'fair' or 'proportional', got 'fare'; did you mean 'fair'?",
        ),
        (
            "l2: {bytes_per_second: 400 GB/s,",
            "l2: {bytes_per_second: 400 GB/s, units: 4,",
            "resources.l2.units: a resource has bytes_per_second or units, not both",
        ),
        (
            "vector:\n  elements",
            "vector:\n  lanes: 3\n  elements",
            "vector: unknown key 'lanes'; known: elements_per_cycle, piece_bytes",
        ),
        (
            "largest_tile_elements: 4096",
            "largest_tile_element: 4096",
            "promotion: unknown key 'largest_tile_element'; did you mean 'largest_tile_elements'? "
            "known: fma_elements_per_cycle, kernel, largest_tile_elements, outer_scale_elements_per_cycle, path, units",
        ),
        (
            "formats: [bf16,",
            "formats: [bf16, fp16,",
            "matrix.formats.1: 'fp16' has no rate: matrix.macs_per_cycle needs 'fp16'",
        ),
        (
            "formats: [bf16,",
            "formats: [bf61,",
            "matrix.formats.0: unknown format 'bf61'; did you mean 'bf16'? known: " + ", ".join(FORMATS.names()),
        ),
        (
            "{m: 128, n: 128,",
            "{m: 256, n: 128,",
            "matrix.tiles.1: 256x128 needs 131072 bytes of accumulator per core, there are 65536",
        ),
        (
            "hbm: {contiguous: 0.8",
            "hbm: {contiguous: 1.2",
            "calibration.achieved_fraction.hbm.contiguous: must be <= 1, got 1.2",
        ),
        (
            "board: {achieved_fraction",
            "bord: {achieved_fraction",
            "calibration.levels.bord: unknown level 'bord'; did you mean 'board'? known: board",
        ),
        (
            "reduce: 32}",
            "redcue: 32}",
            "vector.elements_per_cycle: unknown key 'redcue'; did you mean 'reduce'? "
            "known: binary, cast, divide, exp, reduce, rsqrt, simple",
        ),
    ],
)
def test_a_mistake_is_named_with_file_line_path_rule_and_value(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = changed(tmp_path, old, new)
    shown = next(line for line in new.splitlines() if line.strip() not in {"vector:"})
    expected = f"mine.yaml:{line_of(path, shown)}: {message}"
    assert expected in refused(path)


def test_all_mistakes_come_at_once_by_line(tmp_path: Path) -> None:
    path = changed(tmp_path, "clock_hz: 1 GHz", "clock_hz: 0 Hz\nclock: 3")
    text = path.read_text().replace("resources: [ub_port]}", "resources: [port]}").replace("simple: 64", "simple: x")
    path.write_text(text)
    lines = refused(path)
    assert [line.split(": ")[1] for line in lines] == [
        "clock_hz",
        "unknown key 'clock'; did you mean 'clock_hz'? known",
        "paths.l1_to_l0.resources.0",
        "vector.elements_per_cycle.simple",
    ]
    assert lines[0] == "mine.yaml:3: clock_hz: must be > 0, got 0"


def test_levels_grow_outwards(tmp_path: Path) -> None:
    level = "  board: {ranks: 8, resource: link, cores_held: 0, memory_bytes_per_link_byte: 2}\n"
    path = changed(tmp_path, level, level + level.replace("board", "rack"))
    text = path.read_text() + "    rack: {achieved_fraction: 0.8, latency_seconds: 1 us}\n"
    path.write_text(text)
    at = line_of(path, "  rack: {ranks")
    assert refused(path) == [
        f"mine.yaml:{at}: levels.rack.ranks: must be > 8, the ranks of the level inside, got 8",
    ]


def test_gb_and_gib_are_different(tmp_path: Path) -> None:
    assert load_device(changed(tmp_path, "bytes: 1 GiB", "bytes: 80 GB")).memory_bytes == 80_000_000_000
    assert load_device(changed(tmp_path, "bytes: 1 GiB", "bytes: 80 GiB")).memory_bytes == 85_899_345_920


@pytest.mark.parametrize("text", ["1e12", "1e+12", "1.0e12", "1.0e+12", "1 TB/s", "'1e12'"])
def test_the_same_number_in_every_spelling(tmp_path: Path, text: str) -> None:
    device = load_device(changed(tmp_path, "hbm: {bytes_per_second: 100 GB/s", f"hbm: {{bytes_per_second: {text}"))
    assert device.resources["hbm"].bytes_per_second == 1e12


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(RegistryError, match=r"unknown device 'h10'; did you mean 'h100'\?"):
        load_device("h10")


# ---------------------------------------------------------------------------------------------------------------- edits


def test_an_edit_replaces_the_value_and_what_was_said_about_it() -> None:
    device = load_device("gpu", ["resources.hbm.bytes_per_second=16 TB/s"])
    assert device.resources["hbm"].bytes_per_second == 16e12
    (note,) = [note for note in device.sources if note.path == "resources.hbm.bytes_per_second"]
    assert (note.value, note.source) == ("16 TB/s", "set on the command line")


@pytest.mark.parametrize("path", ["matrix.tiles.0.m", "matrix.tiles.value.0.m"])
def test_an_edit_reaches_inside_a_fact(path: str) -> None:
    device = load_device("npu", [(path, 128)])
    assert device.matrix.tiles[0].m == 128
    notes = {note.path: note.source for note in device.sources}
    assert notes["matrix.tiles.0.m"] == "set on the command line"
    assert notes["matrix.tiles.0.n"].startswith("multiples")


def test_an_edit_of_a_facts_value_drops_its_source() -> None:
    device = load_device("npu", [("resources.hbm.bytes_per_second.value", "1 TB/s")])
    (note,) = [note for note in device.sources if note.path == "resources.hbm.bytes_per_second"]
    assert note.source == "set on the command line"


def test_cores_are_the_units_of_their_resource() -> None:
    device = load_device("npu", ["resources.vector.units=128"])
    assert (device.matrix.cores, device.vector.cores) == (32, 128)


def test_ten_mistakes_of_a_file_come_at_once_each_with_line_path_rule_and_value(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "extends: npu\n"
        "clok_hz: 1 GHz\n"
        "clock_hz: {value: 1.8 GB, source: a guess, confidence: X}\n"
        "memory: {resource: hmb}\n"
        "cache_bytes: -1\n"
        "resources:\n"
        "  hbm: {policy: faire}\n"
        "paths:\n"
        "  gm_to_l1: {latency_cycles: 1.5}\n"
        "matrix:\n"
        "  epilogue_overlaps: on\n"
        "  tiles: []\n"
        "  gemm_variants: {big: {tiles: [{m: 4096, n: 4096, k_bytes: 128}]}}\n"
        "stages:\n"
        "  gemm: [{name: load, moves: [a], path: gm_to_l1}]\n"
        "  stream: []\n"
        "levels:\n"
        "  scale_out: {ranks: 1}\n"
        "calibration:\n"
        "  achieved_fraction: {hbm: {contiguous: 80}}\n"
        "  launch_seconds: soon\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_device(path)
    accumulator = load_device("npu").matrix.accumulator_bytes
    assert [line.partition("? known")[0] for line in str(caught.value).splitlines()] == [
        "mine.yaml:2: unknown key 'clok_hz'; did you mean 'clock_hz'",
        "mine.yaml:3: clock_hz.confidence: must be one of D, V, M, T, I, U, A, F, got 'X'",
        "mine.yaml:3: clock_hz: must be a number of Hz, or text such as '1.8 GHz', got '1.8 GB': that is bytes, not Hz",
        "mine.yaml:4: memory.resource: unknown resource with a rate 'hmb'; did you mean 'hbm'",
        "mine.yaml:5: cache_bytes: must be > 0, got -1",
        "mine.yaml:7: resources.hbm.policy: must be 'fair' or 'proportional', got 'faire'; did you mean 'fair'?",
        "mine.yaml:9: paths.gm_to_l1.latency_cycles: must be a whole number, got 1.5",
        "mine.yaml:11: matrix.epilogue_overlaps: must be true or false, got 'on'",
        "mine.yaml:12: matrix.tiles: must have at least 1 entry, got none",
        f"mine.yaml:13: matrix.gemm_variants.big.tiles.0: 4096x4096 needs {4 * 4096**2} bytes of accumulator per core, "
        f"there are {accumulator}",
        "mine.yaml:15: stages.gemm: must have one stage whose unit moves 'matrix', got 0",
        "mine.yaml:16: stages.stream: must have one stage whose unit moves 'vector', got 0",
        "mine.yaml:18: levels.scale_out.ranks: must be > 8192, the ranks of the level inside, got 1",
        "mine.yaml:20: calibration.achieved_fraction.hbm.contiguous: must be <= 1, got 80.0",
        "mine.yaml:21: calibration.launch_seconds: must be a number of seconds, or text such as '20 us', got 'soon'",
    ]


def test_mistakes_in_edits_are_named_as_the_user_wrote_them() -> None:
    assert refused("npu", "resources.hbm.bytes_per_second=-1 TB/s") == [
        "--set: device.resources.hbm.bytes_per_second: must be > 0, got -1000000000000.0"
    ]
    assert refused("npu", "resources.hmb.bytes_per_second=1 TB/s", "clock_hz=fast", "cache_bytes") == [
        "--set: device.resources.hmb.bytes_per_second: there is no 'resources.hmb'; did you mean 'hbm'?",
        "--set: device.cache_bytes: must be path=value, got no value",
    ]
    (line,) = refused("npu", "clok_hz=1 GHz")
    assert line.startswith("--set: device: unknown key 'clok_hz'; did you mean 'clock_hz'?")
    (line,) = refused("npu", "resources.hbm.units=3")
    assert line == "--set: device.resources.hbm.units: a resource has bytes_per_second or units, not both"
    (line,) = refused("npu", "resources.hbm.bytes_per_sec=1 TB/s")
    assert line.startswith("--set: device.resources.hbm: unknown key 'bytes_per_sec'; did you mean 'bytes_per_second'?")


# ------------------------------------------------------------------------------------------------------------- variants


def test_a_variant_says_only_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "wide.yaml"
    path.write_text('extends: npu\nresources:\n  vector: {units: {value: 128, source: "a what-if", confidence: A}}\n')
    device = load_device(path)
    assert (device.name, device.vector.cores, device.matrix.cores) == ("wide", 128, 32)
    notes = {note.path: note.source for note in device.sources}
    assert notes["resources.vector.units"] == "a what-if"
    assert notes["resources.vector.policy"] == "whole cores are handed out, each to one kernel at a time"


def test_a_title_says_who_changed_the_device(tmp_path: Path) -> None:
    title = load_device("gpu").title
    mine = tmp_path / "mine.yaml"
    mine.write_text("extends: gpu\nclock_hz: 1 GHz\n", encoding="utf-8")
    assert load_device(mine).title == f"{title}, as mine.yaml changes it"
    assert load_device("gpu", ["clock_hz=1 GHz"]).title == f"{title}, edited"
    mine.write_text("extends: gpu\ntitle: Mine\n", encoding="utf-8")
    assert load_device(mine).title == "Mine"


def test_a_variants_value_does_not_keep_its_bases_source(tmp_path: Path) -> None:
    path = tmp_path / "wide.yaml"
    path.write_text("extends: npu\nclock_hz: {value: 2 GHz}\ncache_bytes: 256 MB\n")
    notes = {note.path: note.source for note in load_device(path).sources}
    assert notes["clock_hz"] == "source not stated"
    assert notes["cache_bytes"] == "source not stated"


def test_a_kernel_of_a_device_cannot_take_a_built_in_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("extends: gpu\nmatrix:\n  gemm_variants:\n    serial: {accumulators: 1}\n", encoding="utf-8")
    assert refused(path) == [
        "mine.yaml:4: matrix.gemm_variants.serial: is built in and stands for a way to break the K loop; give it "
        "another name"
    ]


def test_a_mistake_in_a_base_is_located_in_the_base(tmp_path: Path) -> None:
    changed(tmp_path, "clock_hz: 1 GHz", "clock_hz: 0", name="base.yaml")
    path = tmp_path / "variant.yaml"
    path.write_text("extends: base.yaml\ntitle: mine\n")
    assert refused(path) == ["base.yaml:3: clock_hz: must be > 0, got 0"]


def test_variants_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("extends: b.yaml\n")
    (tmp_path / "b.yaml").write_text("extends: a.yaml\n")
    (line,) = refused(tmp_path / "a.yaml")
    assert "circle: a.yaml -> b.yaml -> a.yaml" in line


def test_kernel_variants_of_a_device_are_read(tmp_path: Path) -> None:
    new = "  issue_cycles: 4\n  gemm_variants: {narrow: {tiles: [{m: 64, n: 64, k_bytes: 64}], promotion: serial}}\n"
    device = load_device(changed(tmp_path, "  issue_cycles: 4\n", new))
    assert device.gemm_variants["narrow"].promotion == "serial"
    assert len(device.gemm_variants["narrow"].tiles) == 1


# ------------------------------------------------------------------------------------------------------- software sets


@pytest.mark.parametrize("name", SOFTWARE)
def test_every_entry_of_a_shipped_set_says_since_when(name: str) -> None:
    software = load_software(name)
    entries = [*software.switches, *software.counts, *software.kernels, *software.fused, *software.overlaps]
    assert len(software.since) == len(entries)
    assert not [note.path for note in software.since if note.since == "not stated"]
    assert set(software.switches) <= set(SWITCHES)
    assert set(software.overlaps) <= set(OVERLAPS)
    assert software.fused <= set(FUSED)


def test_the_sets_differ_only_in_what_touches_block_scales() -> None:
    early, mature = load_software("early"), load_software("mature")
    assert early.counts == mature.counts
    assert mature.fused == early.fused == {"rmsnorm+quantise", "rmsnorm+amax"}
    assert early.overlaps.keys() == mature.overlaps.keys()
    for name, payloads in mature.overlaps.items():
        assert payloads - early.overlaps[name] <= {"block_scaled"}
        assert "plain" in early.overlaps[name]
    assert early.kernels == mature.kernels == {}, "each device runs its own kernels"


def test_a_switch_is_edited_by_its_name() -> None:
    software = load_software("mature", ["scales_in_gemm_order=false", "amax_launches=1", "gather_fprop=[plain]"])
    assert software.switches["scales_in_gemm_order"] is False
    assert software.counts["amax_launches"] == 1
    assert software.overlaps["gather_fprop"] == {"plain"}
    said = {note.path: note.since for note in software.since}
    assert said["switches.scales_in_gemm_order"] == "set on the command line"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            "scale_in_gemm_order=true",
            "--set: software.scale_in_gemm_order: unknown entry 'scale_in_gemm_order'; "
            "did you mean 'scales_in_gemm_order'?",
        ),
        ("scales_in_gemm_order=0.9", "--set: software.switches.scales_in_gemm_order: must be true or false, got 0.9"),
        ("amax_launches=2.5", "--set: software.counts.amax_launches: must be a whole number, got 2.5"),
        ("amax_launches=4000", "--set: software.counts.amax_launches: must be <= 64, got 4000"),
        ("fused=[rmsnrom+amax]", "--set: software.fused.0: unknown fused kernel 'rmsnrom+amax'; did you mean"),
        ("gather_fprop=[plane]", "--set: software.overlap.gather_fprop.0: must be 'plain' or 'block_scaled', got"),
    ],
)
def test_a_set_refuses_what_is_no_switch_count_or_name(edit: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_software("mature", [edit])
    assert str(caught.value).startswith(message)


def test_a_set_has_no_place_for_a_rate(tmp_path: Path) -> None:
    path = tmp_path / "fast.yaml"
    path.write_text("extends: mature\ngemm_fraction: 0.9\nswitches: {gemm_gain: true}\n")
    with pytest.raises(ConfigError) as caught:
        load_software(path)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("fast.yaml:2: unknown key 'gemm_fraction'")
    assert lines[1].startswith("fast.yaml:3: switches.gemm_gain: unknown name 'gemm_gain'")


# -------------------------------------------------------------------------------------------------------------- schemas


def test_the_schema_of_a_device_knows_facts() -> None:
    schema = schema_device()
    json.dumps(schema)
    number, text, fact = schema["properties"]["clock_hz"]["anyOf"]
    assert (number["type"], text["type"]) == ("integer", "string")
    assert fact["properties"]["confidence"]["enum"] == list(CONFIDENCE)
    assert fact["properties"]["value"]["anyOf"] == [number, text]
    assert schema["additionalProperties"] is False
    scaling = schema["$defs"]["MatrixSchema"]["properties"]["native_scaling"]["anyOf"][0]["items"]["anyOf"]
    assert scaling[0] == {"$ref": "#/$defs/NativeScalingSchema"}
    assert scaling[1]["properties"]["value"]["$ref"] == "#/$defs/NativeScalingSchema"


@pytest.mark.parametrize("schema", [schema_device(), schema_software()], ids=["device", "software"])
def test_a_file_that_extends_another_needs_nothing_else(schema: dict[str, Any]) -> None:
    extended, whole = schema["anyOf"]
    assert extended == {"required": ["extends"]}
    assert "title" in whole["required"]
    assert "required" not in schema
    assert all("required" not in part for part in schema.get("$defs", {}).values())


def test_the_schema_of_a_software_set_knows_every_name() -> None:
    schema = schema_software()
    json.dumps(schema)
    for section, known in SECTIONS.items():
        plain = schema["properties"][section]["anyOf"][0]
        assert plain["properties"].keys() == known.keys()
        assert plain["additionalProperties"] is False
    switch = schema["properties"]["switches"]["anyOf"][0]["properties"]["scales_in_gemm_order"]
    assert switch["anyOf"][0] == {"type": "boolean"}
    assert list(switch["anyOf"][1]["properties"]) == ["value", "since"]
    fused = schema["properties"]["fused"]["anyOf"][0]["items"]["anyOf"]
    assert "rmsnorm+quantise" in fused[0]["enum"]
    assert list(fused[1]["properties"]) == ["value", "since"]


def test_unwrapping_takes_facts_off_and_leaves_the_rest() -> None:
    document = parse("a: {value: 1, since: x}\nb: [{value: {c: 2}, since: y}, 3]\n", source="f.yaml")
    facts = unwrap(document, ("since",))
    assert facts.document.data == {"a": 1, "b": ({"c": 2}, 3)}
    assert facts.note(("b", 0, "c"), "since") == "y"
    assert facts.note(("b", 1), "since") is None
    assert facts.document.where(("b", 0, "c")) == ("f.yaml", 2)


def all_devices() -> Iterable[Device]:
    return (load_device(name) for name in DEVICES)


def test_no_shipped_device_is_free_anywhere() -> None:
    for device in all_devices():
        assert device.launch_seconds > 0
        assert device.collective_launch_seconds > 0
        assert all(level.latency_seconds > 0 for level in device.levels)
        assert all(path.bytes_per_cycle > 0 for path in device.paths.values())
