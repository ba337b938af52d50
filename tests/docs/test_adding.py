"""The steps of docs/adding.md, made one after the other on a copy of the repository."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import COLUMNS, PROMPT, ROOT, Example, block, without_trailing_spaces

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PAGE = ROOT / "docs" / "adding.md"
COPIED = ("hwmodel", "devices", "workloads", "tests", "cli.py", "pyproject.toml")
_MARKED = re.compile(
    r"<!-- (?P<kind>new|edit|run|example)(?:: (?P<argument>[^\n]*))? -->\n"
    r"```(?P<language>\w+)\n(?P<body>.*?)```\n(?:\n```text\n(?P<printed>.*?)```\n)?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Step:
    """One marked block of the page."""

    kind: str
    argument: str
    body: str
    printed: str | None


def steps() -> list[Step]:
    found = _MARKED.finditer(PAGE.read_text(encoding="utf-8"))
    return [Step(m["kind"], m["argument"] or "", m["body"], m["printed"]) for m in found]


def run(folder: Path, arguments: Sequence[str]) -> str:
    """What Python prints, with the copy in place of the repository."""
    environment = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"}
    environment |= {"PYTHONPATH": str(folder), "COLUMNS": COLUMNS, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_hwmodel(folder: Path, command: str) -> str:
    return without_trailing_spaces(run(folder, ["cli.py", *shlex.split(command)]))


def edited(text: str, diff: str) -> str:
    """``text`` with a marked change made where its unchanged and removed lines stand, which is one place only."""
    lines = [line if line else " " for line in diff.splitlines()]
    assert {line[0] for line in lines} <= set(" +-")
    before = [line[1:] for line in lines if line[0] != "+"]
    after = [line[1:] for line in lines if line[0] != "-"]
    found = text.splitlines()
    places = [at for at in range(len(found)) if found[at : at + len(before)] == before]
    assert len(places) == 1, f"found {len(places)} times:\n" + "\n".join(before)
    found[places[0] : places[0] + len(before)] = after
    return "\n".join(found) + "\n"


@pytest.mark.slow
def test_every_step_does_what_the_page_says(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    page = PAGE.read_text(encoding="utf-8")
    for step in steps():
        path = tmp_path / step.argument
        if step.kind == "new":
            path.write_text(step.body, encoding="utf-8")
        elif step.kind == "edit":
            path.write_text(edited(path.read_text(encoding="utf-8"), step.body), encoding="utf-8")
        elif step.kind == "run":
            output = run(tmp_path, ["-c", step.body])
            page = page.replace(step.body + f"```\n\n```text\n{step.printed}", step.body + f"```\n\n```text\n{output}")
        else:
            shown = tuple(part.strip() for part in step.argument.split(","))
            body = block(Example(PAGE, shown, step.body), partial(run_hwmodel, tmp_path))
            page = page.replace(step.body, body)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


def test_the_page_says_what_the_walks_promise() -> None:
    blocks, port = [step.printed or "" for step in steps() if step.kind == "run"]
    assert blocks.splitlines() == [
        "npu [(64, False), (64, False), (64, False)]",
        "./npu64.yaml [(0, True), (0, True), (0, True)]",
    ]
    assert port.count("'ub_port'") == len(port.splitlines()) == 2


def test_breaking_the_loop_costs_gemm_time_that_native_support_saves() -> None:
    broken, native = (gemm_milliseconds(step.body) for step in steps() if "recipe.granularity=mx64\n" in step.body)
    assert broken > 1.2 * native


def gemm_milliseconds(body: str) -> float:
    (line,) = [line for line in body.splitlines() if line.startswith(" gemm ")]
    return float(line.split()[1].replace(",", ""))


def test_every_console_block_is_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.count(PROMPT) == sum(step.body.count(PROMPT) for step in steps() if step.kind == "example")


def test_an_edit_is_made_where_its_lines_stand() -> None:
    assert edited("a\nb\nc\n", " b\n+x\n") == "a\nb\nx\nc\n"
    assert edited("a\nb\nc\n", "-b\n+x\n c\n") == "a\nx\nc\n"
    with pytest.raises(AssertionError, match="found 2 times"):
        edited("b\nb\n", " b\n+x\n")
