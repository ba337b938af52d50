"""The rules of the house that no linter knows: what files say, and what data files must not say."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from hwmodel.formats import FORMATS

ROOT = Path(__file__).parent.parent
DATA = ("devices", "workloads")
UNREADABLE = frozenset({".png", ".gz", ".npz", ".npy", ".parquet"})


def repository_files() -> list[Path]:
    """Files that are or would be committed; outside git (a source archive) every file not hidden."""
    paths = git_files() or [path for path in ROOT.rglob("*") if not hidden(path.relative_to(ROOT))]
    return sorted(path for path in paths if path.is_file())


def git_files() -> list[Path]:
    """What git keeps or would keep here; empty without git."""
    if not (git := shutil.which("git")):
        return []
    command = [git, "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    return [ROOT / name for name in listing.stdout.split("\0") if name]


def hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


FILES = repository_files()
PYTHON_FILES = [path for path in FILES if path.suffix == ".py"]
LIBRARY_FILES = [path for path in PYTHON_FILES if relative(path).startswith("hwmodel/")]
DEVICE_FILES = [path for path in FILES if path.suffix == ".yaml" and relative(path).startswith("devices/")]
SOFTWARE_FILES = [path for path in FILES if path.suffix == ".yaml" and relative(path).startswith("workloads/software/")]


# ------------------------------------------------------------------------------------------------------------- Python


@pytest.mark.parametrize("path", PYTHON_FILES, ids=relative)
def test_a_python_file_begins_with_a_docstring_and_the_annotations_import(path: Path) -> None:
    module = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(module), "the first statement is not a docstring that says what the module holds"
    if len(module.body) > 1:
        second = module.body[1]
        assert isinstance(second, ast.ImportFrom), "the docstring is not followed by an import"
        assert (second.module, [name.name for name in second.names]) == ("__future__", ["annotations"])


@pytest.mark.parametrize("path", LIBRARY_FILES, ids=relative)
def test_only_the_command_line_prints(path: Path) -> None:
    if relative(path).startswith("hwmodel/cli"):
        return
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    prints = [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    assert not prints, f"print() in lines {prints}; return the text, or log it"


@pytest.mark.parametrize("path", LIBRARY_FILES, ids=relative)
def test_only_the_command_line_reads_environment_variables(path: Path) -> None:
    if relative(path) == "hwmodel/cli/streams.py":  # what the terminal says of itself
        return
    assert not environment_uses(path.read_text(encoding="utf-8"))


def environment_uses(source: str) -> list[int]:
    """Lines that reach for environment variables."""
    names = {"environ", "environb", "getenv", "getenvb"}
    lines: list[int] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "os" and node.attr in names:
                lines.append(node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            lines += [node.lineno for name in node.names if name.name in names]
    return sorted(lines)


def test_environment_uses_are_found_however_they_are_spelt() -> None:
    assert environment_uses("import os\nx = os.environ['A']\ny = os.getenv('B')\nfrom os import environ") == [2, 3, 4]


def test_importing_the_package_loads_none_of_its_dependencies() -> None:
    heavy = ("networkx", "numpy", "plotly", "pydantic", "rich", "simpy", "typer", "yaml")
    program = f"import sys, hwmodel; print(*[name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == ""


# --------------------------------------------------------------------------------------------------------- every file

# Spelt in pieces so that this file passes its own test.
ELSEWHERE = re.compile(
    r"(?<![\w.-])/wo" + r"rk/"  # a path of the machine it was written on
    r"|(?:^|[\s\"'(`=]|\.\./|/)sha" + r"red/\w"  # a folder beside the repository
    r"|\b(?:design|style|mechanism|vision|cases|\w+_hints)\.m" + r"d\b"  # pages that do not travel with it
)


def test_no_file_points_at_something_outside_the_repository() -> None:
    found = [
        f"{relative(path)}:{number}: {line.strip()[:100]}"
        for path in FILES
        if path.suffix not in UNREADABLE
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if ELSEWHERE.search(line)
    ]
    assert not found, "\n".join(found)


# --------------------------------------------------------------------------------------------------------- data files


def test_a_device_is_shipped() -> None:
    assert DEVICE_FILES


def test_no_device_and_no_software_set_names_a_recipe() -> None:
    names = preset_names()
    found = [
        f"{relative(path)}: {where}"
        for path in (*DEVICE_FILES, *SOFTWARE_FILES)
        for where in named_recipes(yaml.safe_load(path.read_text(encoding="utf-8")), names)
    ]
    assert not found, "a number that depends on a recipe's name is a fudge:\n" + "\n".join(found)


def test_a_software_set_holds_no_rate() -> None:
    found = [
        f"{relative(path)}: {where}"
        for path in SOFTWARE_FILES
        for where in rates(yaml.safe_load(path.read_text(encoding="utf-8")))
    ]
    assert not found, "booleans, counts and kernel names only; a rate belongs to a device:\n" + "\n".join(found)


PRESETS = (
    *("bf16", "delayed", "current", "static", "direct", "row", "row_bf16_wgrad", "block", "subchannel", "mxfp8"),
    *("hif8_current", "hif8_delayed", "hif8_direct"),
)
LAYOUT_KEYS = frozenset({"granularity", "granularities", "layout", "layouts", "scale_layout", "scale_layouts"})
"""Under these keys `row`, `block` and `subchannel` are granularities, which a device may accept, not presets."""
LAYOUTS = frozenset({"row", "block", "subchannel"})


def preset_names() -> frozenset[str]:
    """Every preset, the bundled file's included; less those that are also formats, which a device has to name."""
    names = set(PRESETS)
    bundled = ROOT / "hwmodel" / "recipes" / "presets.yaml"
    if bundled.is_file():
        data = yaml.safe_load(bundled.read_text(encoding="utf-8"))
        names.update(data.get("presets", data))
    return frozenset(names) - set(FORMATS.names())


def leaves(data: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every key and every scalar of parsed YAML with its path; a key comes with its value."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield (*path, str(key)), value
            yield from leaves(value, (*path, str(key)))
    elif isinstance(data, Sequence) and not isinstance(data, str):
        for index, value in enumerate(data):
            if isinstance(value, str | int | float):
                yield (*path, str(index)), value
            yield from leaves(value, (*path, str(index)))


def named_recipes(data: object, names: frozenset[str]) -> Iterator[str]:
    """Keys and values that equal a preset's name, and keys that hold a compound one (`speedup_hif8_delayed`)."""
    compounds = [name for name in names if "_" in name]
    for path, value in leaves(data):
        key = path[-1]
        allowed = LAYOUTS if LAYOUT_KEYS.intersection(path) else frozenset()
        shape_of_a_block = key == "block" and isinstance(value, Sequence) and not isinstance(value, str)
        if key in names - allowed and not shape_of_a_block:
            yield f"{'.'.join(path)}: a key with a preset's name"
        elif any(f"_{name}_" in f"_{key}_" for name in compounds):
            yield f"{'.'.join(path)}: a key that holds a preset's name"
        if isinstance(value, str) and value.strip().lower() in names - allowed:
            yield f"{'.'.join(path)}: {value!r} is a preset's name"


RATE_KEY = re.compile(
    r"(_per_[a-z]+|_fraction|_percent|_hz|_seconds|_milliseconds|_microseconds|_nanoseconds|_picoseconds|_cycles"
    r"|_factor|_efficiency)$"
)
RATE_TEXT = re.compile(
    r"[+-]?[\d._]+(e[+-]?\d+)?\s*([kKMGTP]?i?B|[kMGT]?Hz|[munp]?s|%|\S+/\S+)"  # 1.6 TB/s, 64 GiB, 1.8 GHz, 5 us
    r"|[+-]?[\d._]+e[+-]?\d+"  # 1e12, which PyYAML takes for text
)


def rates(data: object) -> Iterator[str]:
    """Places where a number is more than a count."""
    for path, value in leaves(data):
        if RATE_KEY.search(path[-1]):
            yield f"{'.'.join(path)}: a key that names a rate or a time"
        elif isinstance(value, float):
            yield f"{'.'.join(path)}: the float {value!r} (quote a release's number)"
        elif isinstance(value, str) and RATE_TEXT.fullmatch(value.strip()):
            yield f"{'.'.join(path)}: the quantity {value!r}"


@pytest.mark.parametrize(
    "text",
    [
        "calibration: {delayed: 0.9}",
        "calibration: {delayed: {cube: 0.9}}",
        "applies_to: [mxfp8]",
        "recipe: hif8_delayed",
        "gain_hif8_delayed_fraction: 0.9",
        "slowdown: {block: 0.8}",
        "mode: Current",
    ],
)
def test_a_recipe_in_a_data_file_is_found(text: str) -> None:
    assert list(named_recipes(yaml.safe_load(text), preset_names()))


@pytest.mark.parametrize(
    "text",
    [
        "rates: {bf16: 1, mxfp8_e4m3fn: 2, hif8: 2}",
        "native_scaling: [{block: [1, 32], scale_format: e8m0}]",
        "accepts: {layouts: [tensor, row, block, subchannel]}",
        "source: measured with delayed scaling, table 3",
        "direct_links: 4",
    ],
)
def test_a_format_or_a_granularity_is_no_recipe(text: str) -> None:
    assert not list(named_recipes(yaml.safe_load(text), preset_names()))


@pytest.mark.parametrize(
    "text",
    [
        "copy_bytes_per_second: 1000",
        "macs_per_cycle: 8",
        "overlap_fraction: 1",
        "launch_cycles: 400",
        "gemm: {gain: 1.05}",
        "gains: [1.5]",
        "copy: 1.6 TB/s",
        "copy: 1e12",
        "clock: 1.8 GHz",
        "launch: 5 us",
    ],
)
def test_a_rate_in_a_software_set_is_found(text: str) -> None:
    assert list(rates(yaml.safe_load(text)))


@pytest.mark.parametrize(
    "text",
    [
        "one_kernel_both_directions: {value: true, introduced: '2.1'}",
        "norm_fusion: {value: rmsnorm+quantise.mx, introduced: release 2.3 (change 1234)}",
        "gemm_split_pieces: 4",
        "gemm: {tiles: [[128, 256, 64]], kernel: promote_128}",
    ],
)
def test_switches_counts_and_kernel_names_are_no_rates(text: str) -> None:
    assert not list(rates(yaml.safe_load(text)))


# ---------------------------------------------------------------------------------------------------------- packaging


@pytest.mark.slow
def test_the_wheel_carries_every_device_and_workload(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("hwmodel-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    wanted = {f"hwmodel/_data/{relative(path)}" for path in FILES if relative(path).startswith(DATA)}
    wanted |= {relative(path) for path in FILES if relative(path).startswith("hwmodel/")}
    assert "hwmodel/py.typed" in wanted
    assert wanted <= packed
    assert "cli.py" not in packed
