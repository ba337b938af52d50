"""Sweeps: rows, refusals, what is computed once, and what is kept when stopped."""

from __future__ import annotations

import csv
import io
import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import hwmodel.sweeps.run
from hwmodel.api import simulate
from hwmodel.cli import app
from hwmodel.errors import ConfigError, HwModelError, RegistryError
from hwmodel.simulation import simulate as simulate_once
from hwmodel.sweeps import make_grid, prepare, sweep
from hwmodel.sweeps.output import crossovers, csv_text, record, refusals
from hwmodel.sweeps.run import FIXED_PATHS

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

SMALL = """\
kind: graph
name: small layer
tensors:
  x: {shape: [64, 1024], format: bf16}
  w: {shape: [1024, 1024], format: bf16}
ops:
  - {op: linear, name: fc, inputs: [x, w], outputs: [y]}
recipe: current
"""
TRAINING = """\
kind: training
model: {name: tiny, layers: 2, hidden: 256, heads: 4, key_value_heads: 2, head_size: 64, feed_forward: 512,
  vocabulary: 1024}
batch: {global: 4, micro: 1, sequence: 256}
parallel: {dp: 2}
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return str(path)


@pytest.fixture
def training(tmp_path: Path) -> str:
    path = tmp_path / "training.yaml"
    path.write_text(TRAINING, encoding="utf-8")
    return str(path)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Presets in the order they were simulated."""
    done: list[str] = []

    def counting(workload: object, recipe: object, machine: object) -> object:
        done.append(recipe.preset)  # type: ignore[attr-defined]  # a Recipe
        return simulate_once(workload, recipe, machine)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(hwmodel.sweeps.run, "simulate", counting)
    return done


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)], env={"COLUMNS": "80"})


# ----------------------------------------------------------------------------------------------------------------- rows


def test_a_row_is_what_simulate_gives(small: str) -> None:
    (row,) = sweep(small, "npu", recipes="delayed", interval="4")
    result = simulate(small, "npu", recipe="delayed", sets=["recipe.interval_steps=4"])
    assert (row.step_seconds, row.speedup) == (result.step_seconds, result.speedup)
    assert (row.status, row.reason, row.same_as) == ("done", "", None)


def test_rows_hold_every_fixed_path_and_every_swept_one(training: str) -> None:
    sets = ["device.resources.hbm.bytes_per_second=2 TB/s,4 TB/s", "batch.sequence=128,256"]
    rows = sweep(training, "npu", recipes="delayed", interval="none", sets=sets)
    first = record(rows[0])
    names = list(first)
    assert names[:2] == ["device", "recipe"]
    assert names[2 : 2 + len(FIXED_PATHS)] == list(FIXED_PATHS)
    assert names[-5:] == ["step_seconds", "speedup", "status", "reason", "same_as"]
    assert first["device.resources.hbm.bytes_per_second"] == "2 TB/s"
    assert [row.values["batch.sequence"] for row in rows] == [128, 256, 128, 256]
    assert first["batch.global"] == 4
    assert first["parallel.dp"] == 2
    assert first["parallel.sp"] is True
    assert first["recipe.interval_steps"] == "none"
    assert first["recipe.amax.kernel"] == "fused"
    assert first["software"] == "mature"
    assert first["schedule.streams"] == "overlap"


def test_a_swept_name_of_a_section_is_the_column_of_its_path(training: str) -> None:
    rows = sweep(training, "npu", sets=["software=early,mature", "schedule=serial"])
    assert [row.values["software"] for row in rows] == ["early", "mature"]
    assert {row.values["schedule.streams"] for row in rows} == {"serial"}
    assert "schedule" not in rows[0].values


# ----------------------------------------------------------------------------------------------------- identical points


def test_identical_points_are_computed_once_and_written_for_every_value(small: str, simulated: list[str]) -> None:
    rows = sweep(small, "npu", recipes="bf16,current,delayed", interval="1,5")
    assert [row.same_as for row in rows] == [None, 0, None, 2, None, None]
    assert rows[3].step_seconds == rows[2].step_seconds
    assert [row.values["recipe.interval_steps"] for row in rows] == [1, 5] * 3
    assert sorted(simulated) == ["bf16", "current", "delayed", "delayed"]


def test_a_value_written_another_way_is_the_same_point(small: str) -> None:
    rows = sweep(small, "npu", recipes="current", sets=["device.memory.bytes=144 GB,144000000000"])
    assert [row.same_as for row in rows] == [None, 0]


def test_the_value_a_file_has_already_is_the_same_point(small: str) -> None:
    axes = ["tensors.x.shape=[64,1024],[128,1024]", "software=mature", "device.cache_bytes=128 MB"]
    rows = sweep(small, "npu,npu", recipes="current", sets=axes)
    assert [row.same_as for row in rows] == [None, None, 0, 1]


def test_another_device_or_software_is_another_point(training: str) -> None:
    rows = sweep(training, "npu,gpu", recipes="mxfp8", sets=["software=early,mature"])
    assert [row.same_as for row in rows] == [None] * 4
    assert len({row.step_seconds for row in rows}) == 4


def test_the_file_s_own_recipe_stands_beside_presets(small: str) -> None:
    rows = sweep(small, "npu", recipes="own,current,bf16")
    assert [row.recipe for row in rows] == ["own", "current", "bf16"]
    assert [row.same_as for row in rows] == [None, 0, None]
    assert rows[0].step_seconds == rows[1].step_seconds


def test_bf16_is_simulated_once_for_each_machine(small: str, simulated: list[str]) -> None:
    sweep(small, "npu,h100", recipes="current,delayed,row")
    assert simulated.count("bf16") == 2


# ------------------------------------------------------------------------------------------------------- refused points


def test_a_combination_that_cannot_exist_is_a_row_with_the_reason(small: str) -> None:
    rows = sweep(small, "npu", recipes="delayed,mxfp8", granularity="tensor,mx")
    assert [row.status for row in rows] == ["done", "refused", "refused", "done"]
    assert rows[1].reason.startswith("recipe.timing: 'delayed' with granularity 'mx': ")
    assert rows[1].step_seconds is None
    assert rows[1].values["recipe.granularity"] == "mx"
    assert rows[1].values["recipe.timing"] == "delayed"
    assert rows[1].values["recipe.history_steps"] == 1024


def test_a_value_that_only_other_recipes_take_is_refused_and_no_mistake(small: str) -> None:
    rows = sweep(small, "npu", recipes="delayed", granularity="tensor,mx")
    assert [row.status for row in rows] == ["done", "refused"]


def test_a_number_that_others_contradict_is_refused_and_no_mistake(training: str) -> None:
    rows = sweep(training, "npu", recipes="current", sets=["parallel.tp=2,3", "batch.global=4"])
    assert [row.status for row in rows] == ["done", "refused"]
    assert rows[1].values["parallel.tp"] == 3


def test_a_format_the_device_lacks_is_refused(small: str) -> None:
    rows = sweep(small, "npu,h100", recipes="hif8_current")
    assert [row.status for row in rows] == ["done", "refused"]
    assert "'hif8'" in rows[1].reason


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"sets": ["recipe.grain=1,2"]}, ConfigError, "unknown key 'grain'"),
        ({"granularity": "tensor,cube"}, ConfigError, "unknown granularity 'cube'"),
        ({"sets": ["steps=1,two"]}, ConfigError, "must be a whole number, got 'two'"),
        ({"recipes": "delayed,delaid"}, RegistryError, "unknown preset 'delaid'; did you mean 'delayed'"),
        ({"sets": ["device.resources.hmb.bytes_per_second=1 TB/s,2 TB/s"]}, ConfigError, "there is no 'resources.hmb'"),
        ({"sets": ["software=mature,olden"]}, ConfigError, "unknown software set 'olden'"),
        ({"recipes": "delayed", "granularity": "mx"}, ConfigError, "'delayed' with granularity 'mx'"),
    ],
)
def test_a_mistake_is_an_error_before_anything_is_simulated(
    small: str, simulated: list[str], arguments: dict[str, object], error: type[HwModelError], said: str
) -> None:
    with pytest.raises(error, match=said.replace("(", r"\(")):
        sweep(small, "npu", **arguments)  # type: ignore[arg-type]  # one dictionary for several keywords
    assert simulated == []


def test_reasons_are_said_once_with_their_rows(small: str) -> None:
    rows = sweep(small, "npu", recipes="delayed", granularity="tensor,mx", interval="1,2,3")
    (text,) = refusals(rows)
    assert text.startswith("row 3-5: recipe.timing: ")


# ------------------------------------------------------------------------------------------------------------ crossover


def test_the_size_at_which_eight_bits_begin_to_pay_is_reported(small: str) -> None:
    sizes = "tensors.x.shape=[64,1024],[1024,1024],[16384,1024]"
    grid = make_grid(small, "npu", recipes="delayed", sets=[sizes])
    rows = list(prepare(grid).rows())
    speedups = [row.speedup or 0.0 for row in rows]
    assert speedups == sorted(speedups)
    assert speedups[0] < 1 < speedups[-1] < 2
    (found,) = crossovers(grid, rows)
    assert found["path"] == "tensors.x.shape"
    assert found["slower_than_bf16"] == "[1024,1024]"
    assert found["not_slower"] == "[16384,1024]"


def test_no_crossover_is_reported_over_names(training: str) -> None:
    grid = make_grid(training, "npu,h100", sets=["software=early,mature"])
    assert list(crossovers(grid, list(prepare(grid).rows()))) == []


# ---------------------------------------------------------------------------------------------------------------- files


def test_csv_and_json_say_the_same(small: str, tmp_path: Path) -> None:
    arguments = [
        small,
        "--device",
        "npu",
        "--recipes",
        "delayed,mxfp8",
        "--granularity",
        "tensor,mx",
        "--interval",
        "1,none",
    ]
    assert run(*arguments, "--out", tmp_path / "s.csv").exit_code == 0
    assert run(*arguments, "--out", tmp_path / "s.json").exit_code == 0
    data = json.loads((tmp_path / "s.json").read_text())
    lines = list(csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text())))
    assert data["complete"] is True
    assert data["workload"] == "small layer"
    assert len(lines) == len(data["rows"]) == 8
    for line, row in zip(lines, data["rows"], strict=True):
        assert list(line) == list(row)
        for key, value in row.items():
            assert line[key] == ("" if value is None else str(value).lower() if isinstance(value, bool) else str(value))
        if row["step_seconds"] is not None:
            assert float(line["step_seconds"]) == row["step_seconds"]


def test_equal_sweeps_write_equal_bytes(small: str, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "a.json", "b.json"):
        assert run(small, "--device", "npu", "--recipes", "bf16,current", "--out", tmp_path / name).exit_code == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_no_rows_are_an_empty_csv() -> None:
    assert csv_text([]) == ""


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_table_names_rows_steps_and_refusals(small: str, columns: str) -> None:
    arguments = ["sweep", small, "--device", "npu", "--recipes", "delayed,mxfp8", "--granularity", "tensor,mx"]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": columns})
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= int(columns)
    assert any("delayed" in line and "refused" in line and "mx" in line for line in lines)
    assert "Refused" in lines


def test_a_sweep_whose_points_are_all_refused_is_bad_input(small: str) -> None:
    result = run(small, "--device", "h100", "--recipes", "hif8_current")
    assert result.exit_code == 2


def test_a_sweep_of_which_nothing_can_exist_says_every_reason(small: str) -> None:
    result = run(small, "--device", "npu", "--recipes", "delayed", "--set", "recipe.margin_bits=-1,x")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 2
    assert "got -1" in result.stderr
    assert "got 'x'" in result.stderr


def test_lists_may_be_given_as_lists(small: str) -> None:
    rows = sweep(small, ["npu", "gpu"], recipes=["delayed"], interval=[1, None])
    texts = sweep(small, "npu,gpu", recipes="delayed", interval="1,none")
    assert rows == texts
    assert len(rows) == 4


def test_an_output_is_checked_before_the_sweep(small: str, tmp_path: Path, simulated: list[str]) -> None:
    for name, said in (("s.parquet", "must end in .csv or .json"), ("none/s.csv", "does not exist")):
        result = run(small, "--device", "npu", "--out", tmp_path / name)
        assert result.exit_code == 2
        assert said in result.stderr
    assert simulated == []


# --------------------------------------------------------------------------------------------------------------- Ctrl-C


@pytest.fixture
def interrupted_third(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """The third simulation is met by Ctrl-C."""
    calls = 0

    def simulate_or_stop(workload: object, recipe: object, machine: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 3:
            signal.raise_signal(signal.SIGINT)
        return simulate_once(workload, recipe, machine)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(hwmodel.sweeps.run, "simulate", simulate_or_stop)
    return lambda: calls


@pytest.mark.usefixtures("interrupted_third")
@pytest.mark.parametrize("name", ["s.csv", "s.json"])
def test_ctrl_c_keeps_the_rows_done(small: str, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    result = run(small, "--device", "npu", "--recipes", "bf16,current,delayed,row", "--out", out)
    assert result.exit_code == 130
    assert f"stopped after 2 of 4 rows; these are in {out}" in result.stderr
    if name.endswith(".csv"):
        lines = list(csv.DictReader(io.StringIO(out.read_text())))
    else:
        data = json.loads(out.read_text())
        assert data["complete"] is False
        lines = data["rows"]
    assert [line["recipe"] for line in lines] == ["bf16", "current"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, Path(small).name])


@pytest.mark.usefixtures("interrupted_third")
def test_ctrl_c_without_an_output_prints_nothing(small: str) -> None:
    result = run(small, "--device", "npu", "--recipes", "bf16,current,delayed,row")
    assert result.exit_code == 130
    assert result.stdout == ""
