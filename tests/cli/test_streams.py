"""Standard output and error that are full or closed, and terminals that lie about their size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FULL = Path("/dev/full")


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command line of a POSIX shell, with ``hwmodel`` as a function."""
    prelude = f'hwmodel() {{ "{sys.executable}" "{ROOT / "cli.py"}" "$@"; }}\n'
    return subprocess.run(
        ["/bin/sh", "-c", prelude + line],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this machine")
def test_a_full_disk_behind_standard_output_is_said_without_a_traceback() -> None:
    done = shell(f"hwmodel recipes list > {FULL}")
    assert done.returncode == 2
    assert done.stderr == "standard output: cannot be written: no space left on device\n"


def test_a_closed_standard_output_is_said_without_a_traceback() -> None:
    done = shell("hwmodel recipes list >&-")
    assert (done.returncode, done.stderr) == (2, "standard output: cannot be written: it is closed\n")


@pytest.mark.parametrize("redirection", ["2>&-", f"2> {FULL}"])
def test_messages_nobody_can_read_change_no_exit_code(redirection: str) -> None:
    if str(FULL) in redirection and not FULL.exists():
        pytest.skip("no /dev/full on this machine")
    assert shell(f"hwmodel simulate nope --device npu {redirection}").returncode == 2
    done = shell(f"hwmodel recipes list {redirection}")
    assert done.returncode == 0
    assert "delayed" in done.stdout


@pytest.mark.parametrize("columns", ["0", "-5", "1", "many", "99999999999"])
def test_a_terminal_without_a_believable_width_still_gets_a_table(columns: str) -> None:
    done = shell("hwmodel recipes list", COLUMNS=columns)
    assert (done.returncode, done.stderr) == (0, "")
    assert "delayed" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 1000
