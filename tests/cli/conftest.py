"""Running commands: in this process, and as processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from hwmodel.cli import app

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

ROOT = Path(__file__).resolve().parent.parent.parent
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
name: two layers
model: {name: tiny, layers: 2, hidden: 256, heads: 4, key_value_heads: 2, head_size: 64, feed_forward: 512,
  vocabulary: 1024}
batch: {global: 4, micro: 1, sequence: 256}
parallel: {dp: 2}
recipe: current
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """``run("simulate", ...)`` in this process, 80 columns wide."""
    monkeypatch.setenv("COLUMNS", "80")

    def invoke(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="hwmodel")

    return invoke


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """``process("simulate", ...)`` as a process of its own."""

    def call(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(ROOT / "cli.py"), *(str(argument) for argument in arguments)]
        environment = {**os.environ, "COLUMNS": "80", **environment}
        return subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, encoding="utf-8", check=False, timeout=120
        )

    return call


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A linear layer by hand."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A training step of two layers."""
    path = tmp_path / "training.yaml"
    path.write_text(TRAINING, encoding="utf-8")
    return path
