"""How commands end: 0, 2, 130 or 1, and what they say then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hwmodel.api
import hwmodel.sweeps.run
from hwmodel import __version__
from hwmodel.cli.guard import end_tidily
from hwmodel.errors import SimulationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Run = Callable[..., Result]
    Process = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_version_is_printed(run: Run) -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"hwmodel {__version__}\n")


def test_a_step_that_does_not_fit_is_no_error(run: Run, training: Path) -> None:
    result = run("simulate", training, "--device", "npu", "--set", "device.memory.bytes=1 MB")
    assert result.exit_code == 0
    assert "does NOT fit" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["simulate", "nope", "--device", "npu"], "unknown workload 'nope'"),
        (["simulate", "./nope.yaml", "--device", "npu"], "nope.yaml: no such file"),
        (["simulate", "linear", "--device", "npx"], "unknown device 'npx'; did you mean 'npu'?"),
        (
            ["simulate", "linear", "--device", "npu", "--recipe", "delaid"],
            "unknown preset 'delaid'; did you mean 'delayed'?",
        ),
        (["simulate", "linear", "--device", "npu", "--set", "recipe.interval=1"], "recipe: unknown key 'interval'"),
        (["simulate", "linear", "--device", "npu", "--set", "steps"], "must be path=value, got 'steps'"),
        (["simulate", "linear", "--device", "npu", "--set", "device.resources.hbm.bytes_per_second=-1"], "must be > 0"),
        (
            ["simulate", "linear", "--device", "npu", "--set", "recipe.granularity=mx", "--recipe", "delayed"],
            "recipe.timing: ",
        ),
        (
            ["simulate", "linear", "--device", "h100", "--recipe", "hif8_delayed"],
            ") does not support 'hif8', which ",
        ),
        (["compare", "linear", "--device", "npu", "--recipes", "bf16,nope"], "unknown preset 'nope'"),
        (["compare", "linear", "--device", "npu", "--recipes", "bf16,,current"], "none of them empty"),
        (["sweep", "linear", "--device", "npu", "--set", "recipe.intervall=1,2"], "unknown key 'intervall'"),
        (["sweep", "linear", "--device", "npu,npx"], "unknown device 'npx'"),
        (["sweep", "linear", "--device", "npu", "--recipes", "delayed,nope"], "unknown preset 'nope'"),
        (["diff", "missing.json", "missing.json"], "missing.json: cannot be read: no such file or directory"),
        (["devices", "show", "nope"], "unknown device 'nope'"),
        (["workloads", "show", "nope"], "unknown workload 'nope'"),
        (["models", "show", "nope"], "unknown model 'nope'"),
        (["recipes", "show", "delaid"], "unknown recipe 'delaid'; did you mean 'delayed'?"),
        (["formats", "show", "hif9"], "unknown format 'hif9'; did you mean 'hif8'?"),
        (["software", "show", "nope"], "unknown software set 'nope'"),
    ],
)
def test_bad_input_is_said_on_standard_error_without_a_traceback(run: Run, arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["simulate", "linear"], "Missing option '--device'"),
        (["simulate", "--device", "npu"], "Missing argument 'WORKLOAD'"),
        (["simulate", "linear", "--device", "npu", "--recipes", "bf16"], "No such option: --recipes"),
        (["schema", "recipe"], "'recipe' is not one of 'device', 'workload'"),
        (["nope"], "No such command 'nope'"),
        (["devices", "nope"], "No such command 'nope'"),
    ],
)
def test_wrong_usage_is_bad_input(run: Run, arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("command", ["kernel", "evaluate", "cast"])
def test_what_is_not_built_does_not_exist(run: Run, command: str) -> None:
    result = run(command)
    assert result.exit_code == 2
    assert f"No such command '{command}'" in result.stderr


@pytest.mark.parametrize("option", ["--detail", "--report", "--jobs", "--cluster", "--store", "--plot"])
def test_options_that_are_not_built_do_not_exist(run: Run, option: str) -> None:
    for command in ("simulate", "compare", "sweep"):
        result = run(command, "linear", "--device", "npu", option, "x")
        assert result.exit_code == 2
        assert f"No such option: {option}" in result.stderr


def test_every_mistake_of_a_file_is_said_at_once(run: Run, small: Path) -> None:
    small.write_text(small.read_text().replace("bf16}", "bf17}"), encoding="utf-8")
    result = run("simulate", small, "--device", "npu")
    assert result.exit_code == 2
    assert [line.split(": ")[0].rpartition("/")[2] for line in result.stderr.splitlines()] == [
        "small.yaml:4",
        "small.yaml:5",
    ]


def test_a_deadlock_is_bad_input(run: Run, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(*_: object) -> None:
        raise SimulationError("these wait for each other", 5, ("a", "b"))

    monkeypatch.setattr(hwmodel.api, "run", stuck)
    result = run("simulate", small, "--device", "npu")
    assert result.exit_code == 2
    assert result.stderr == "at 5 ps: these wait for each other: a, b\n"


def test_a_bug_keeps_its_traceback(run: Run, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(hwmodel.api, "run", broken)
    result = run("simulate", small, "--device", "npu")
    assert result.exit_code == 1
    assert isinstance(result.exception, ZeroDivisionError)


def test_ctrl_c_ends_with_130(run: Run, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(hwmodel.api, "run", interrupted)
    result = run("simulate", small, "--device", "npu")
    assert result.exit_code == 130
    assert result.stderr == "interrupted\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_as_ctrl_c_does(
    run: Run, small: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def ended(*_: object) -> None:
        signal.raise_signal(number)

    monkeypatch.setattr(hwmodel.api, "run", ended)
    before = signal.getsignal(number)
    try:
        end_tidily()
        result = run("simulate", small, "--device", "npu")
    finally:
        signal.signal(number, before)
    assert result.exit_code == 128 + number
    assert result.stderr == "terminated\n"


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    term = signal.getsignal(signal.SIGTERM)
    try:
        end_tidily()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
        signal.signal(signal.SIGTERM, term)


def test_control_characters_in_a_message_do_not_reach_the_terminal(run: Run) -> None:
    result = run("simulate", "\x1b[31mred\u2028", "--device", "npu")
    assert result.exit_code == 2
    assert "\x1b" not in result.stderr
    assert "\u2028" not in result.stderr


# ------------------------------------------------------------------------------------------------------------ processes


@pytest.mark.slow
def test_processes_end_with_the_same_codes(process: Process, small: Path) -> None:
    assert process("simulate", small, "--device", "npu").returncode == 0
    refused = process("simulate", small, "--device", "npu", "--recipe", "nope")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Traceback" not in refused.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="no such signals")
def test_a_process_that_is_ended_keeps_the_rows_done(small: Path, tmp_path: Path) -> None:
    program = """
import os, signal, sys
import hwmodel.sweeps.run as sweeps
from hwmodel.cli import main
simulate, calls = sweeps.simulate, []
def ended(*given):
    calls.append(given)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGTERM)
    return simulate(*given)
sweeps.simulate = ended
sys.argv = ["hwmodel", *sys.argv[1:]]
main()
"""
    out = tmp_path / "rows.csv"
    arguments = ["sweep", str(small), "--device", "npu", "--recipes", "bf16,current,delayed,row", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 143
    assert done.stderr.decode().splitlines() == [f"stopped after 2 of 4 rows; these are in {out}", "terminated"]
    assert len(out.read_text(encoding="utf-8").splitlines()) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name, small.name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["--help"], ["simulate", "--help"], ["devices", "show", "npu"], ["schema", "workload"], ["simulate"]]
)
def test_a_reader_that_went_away_is_no_error(arguments: list[str], small: Path) -> None:
    more = [str(small), "--device", "npu", "--json", "-"] if arguments == ["simulate"] else []
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), *arguments, *more],
        stdout=writing,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        check=False,
        cwd=ROOT,
        timeout=120,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_terminal_without_our_characters_is_no_error(process: Process, small: Path) -> None:
    small.write_text(small.read_text().replace("small layer", '"Größe → 1"'), encoding="utf-8")
    done = process("simulate", small, "--device", "npu", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "Gr\\xf6\\xdfe" in done.stdout


@pytest.mark.slow
def test_help_loads_no_heavy_package() -> None:
    heavy = ("networkx", "numpy", "plotly", "pydantic", "rich", "simpy", "yaml")
    program = f"import sys, hwmodel.cli; print(*[name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == ""
