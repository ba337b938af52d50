"""The README's examples print what it says, its table of trust follows from them, and its links lead somewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from hwmodel.report.published import CLAIM, PUBLISHED, PublishedSpeedup
from tests.docs.pages import PROMPT, ROOT, Example, block, examples, markdown, rewrite_examples, rewrite_table, tables
from tests.measured.shipped import validation

if TYPE_CHECKING:
    from pathlib import Path

README = ROOT / "README.md"
EXAMPLES = examples(README)
MODEL = "Llama 3.1 405B"


def test_every_console_block_is_an_example() -> None:
    blocks = README.read_text(encoding="utf-8").count("```console\n")
    assert len(EXAMPLES) == blocks
    assert all(example.commands for example in EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.commands[0])
def test_an_example_prints_what_the_page_says(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    if request.config.getoption("--update-golden"):
        if example is EXAMPLES[0]:
            rewrite_examples(README)
            rewrite_table(README, "trust", trust_table(examples(README)))
        return
    assert block(example) == example.body


def test_the_table_of_trust_follows_from_the_examples() -> None:
    assert tables(README)["trust"] == trust_table(examples(README))


@pytest.mark.slow
def test_the_table_of_gemm_errors_is_what_validate_finds(request: pytest.FixtureRequest) -> None:
    table = gemm_table()
    if request.config.getoption("--update-golden"):
        rewrite_table(README, "gemm", table)
    assert tables(README)["gemm"] == table


def gemm_table() -> str:
    """Errors of all groups of GEMMs but upper envelopes: rows kept aside, and the others' mean beside them."""
    groups = validation("gemm").by(lambda each: each.group)
    rows = [["source", "machine", "format", "rows", "mean %", "median %", "bias %", "fit rows", "mean %"]]
    for role, source, machine, form in dict.fromkeys(name[:4] for name in groups):
        if role == "headline":
            continue
        cells = [source if role == "fit" else f"{source} ({role})", machine, form]
        if aside := groups.get((role, source, machine, form, "validate")):
            cells += [f"{aside.rows:,}", f"{aside.mean:.1f}", f"{aside.median:.1f}", f"{aside.bias:+.1f}"]
        else:
            cells += [""] * 4
        fit = groups.get((role, source, machine, form, "fit"))
        rows.append([*cells, *((f"{fit.rows:,}", f"{fit.mean:.1f}") if fit else ("", ""))])
    return markdown(rows)


@pytest.mark.slow
def test_the_page_says_how_many_rows_are_compared() -> None:
    done = validation("gemm")
    text = README.read_text(encoding="utf-8")
    assert f"{len(done.compared) + sum(done.skipped.values()):,} timings" in text
    assert f"{len(done.compared):,} of them" in text


def test_links_lead_to_files() -> None:
    text = README.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert links
    assert not [link for link in links if not (ROOT / link).is_file()]


def test_pictures_are_small() -> None:
    pictures = list((ROOT / "docs" / "pictures").iterdir())
    assert pictures
    assert all(picture.stat().st_size < 400_000 for picture in pictures)


def trust_table(found: list[Example]) -> str:
    """Every published 405B speedup beside the one that the README's sweeps print."""
    predicted = swept(found)
    rows = [["recipe", "published", "", "predicted", "error"]]
    for entry in PUBLISHED[MODEL]:
        device, software = wanted(entry)
        value = predicted[device, entry.recipe, software]
        about = f"{entry.recipe}, software {software}" if entry.recipe == "mxfp8" else entry.recipe
        machine = {"gpu": "B200", "h100": "H100"}[device]
        said = entry.conditions if entry.kind == CLAIM else entry.conditions.partition(";")[0]
        rows.append([about, entry.text, f"{entry.kind}: {said}", f"{value:.2f}x on {machine}", error(value, entry)])
    return markdown(rows)


def wanted(entry: PublishedSpeedup) -> tuple[str, str]:
    """Device and software set of the sweep whose row stands beside a published speedup."""
    return entry.device or "gpu", "early" if entry.conditions.endswith("today") else "mature"


def swept(found: list[Example]) -> dict[tuple[str, str, str], float]:
    """(device, recipe, software) -> speedup, as the sweeps of 405B print it."""
    speedups = {}
    for example in found:
        for part in example.body.split(PROMPT)[1:]:
            command, _, output = part.partition("\n")
            if not command.startswith("sweep llama3_405b"):
                continue
            device = command.partition("--device ")[2].split()[0]
            for line in output.splitlines():
                cells = line.split()
                if cells and cells[0].isdigit():
                    software = next((cell for cell in cells if cell in ("mature", "early")), "mature")
                    speedups[device, cells[1], software] = float(cells[-2].rstrip("x"))
    return speedups


def error(value: float, entry: PublishedSpeedup) -> str:
    """How far the prediction lies off, in percent of what was published."""
    low, high = (f"{100 * (value / bound - 1):+.0f}" for bound in (entry.high, entry.low))
    return f"{low} %" if low == high else f"{low} to {high} %"
