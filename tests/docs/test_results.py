"""docs/results.md and docs/dependencies.md name what there is: every key, every dependency, no more."""

from __future__ import annotations

import re
import tomllib

import hwmodel
from hwmodel.report.breakdown import KEYS
from tests.docs.pages import ROOT, tables

RESULTS = ROOT / "docs" / "results.md"
DEPENDENCIES = ROOT / "docs" / "dependencies.md"


def test_every_key_of_a_result_is_explained_and_no_other() -> None:
    text = RESULTS.read_text(encoding="utf-8")
    table = text.partition("<!-- keys: simulate -->")[2].partition("\n## ")[0]
    explained = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert sorted(explained) == sorted(hwmodel.simulate("quickstart", "npu").data)


def test_every_key_of_a_breakdown_is_named() -> None:
    section = RESULTS.read_text(encoding="utf-8").partition("## The breakdown")[2].partition("\n## ")[0]
    assert [key for key in re.findall(r"`(\w+)`", section.partition("Keys: ")[2]) if key in KEYS] == list(KEYS)


def test_every_dependency_is_explained_and_no_other() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = sorted(re.split(r"[<>=]", line)[0] for line in project["dependencies"])
    explained = sorted(line.split("|")[1].strip() for line in tables(DEPENDENCIES)["dependencies"].splitlines()[2:])
    assert explained == needed
    text = DEPENDENCIES.read_text(encoding="utf-8")
    for extra in project["optional-dependencies"].values():
        for line in extra:
            name = re.split(r"[<>=]", line)[0]
            assert name in text or name.startswith("types-")


def test_every_file_that_assumptions_name_exists() -> None:
    text = (ROOT / "docs" / "assumptions.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:\w+/)+(?:\w+\.py|\*\.yaml)?)`", text)
    assert len(set(paths)) > 20
    missing = [path for path in paths if not list(ROOT.glob(path)) and not (ROOT / "hwmodel" / path).exists()]
    assert not missing
