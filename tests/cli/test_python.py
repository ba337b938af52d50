"""Results in Python: tables, figures, traces."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING

import pytest

from hwmodel import simulate

if TYPE_CHECKING:
    from pathlib import Path


def test_a_result_gives_a_figure_a_trace_and_a_table(small: Path, tmp_path: Path) -> None:
    result = simulate(str(small), "npu")
    assert result.timeline().data
    result.save_trace(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    table = result.table()
    assert sum(table["seconds"]) == pytest.approx(result.step_seconds)


def test_a_result_shows_itself_in_a_notebook_with_names_as_text(small: Path) -> None:
    small.write_text(small.read_text().replace("small layer", "<img src=x>"), encoding="utf-8")
    shown = simulate(str(small), "npu")._repr_html_()
    assert "&lt;img src=x&gt;" in shown
    assert "<img" not in shown
    assert "over BF16" in shown


def test_a_frame_without_pandas_says_what_to_install(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(name)

    result = simulate(str(small), "npu")
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"pip install 'hwmodel\[notebook\]'"):
        result.to_frame()
