"""The timeline page of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hwmodel.cli.show import facts, notes, section, trace_section
from hwmodel.report.timeline_page import write_timeline
from hwmodel.simulation.result import Result


def write_page(path: Path, results: Sequence[Result]) -> None:
    """One section a result; a single result has its BF16 step above it."""
    first = results[0]
    sections = [section(result) for result in results]
    if len(results) == 1 and first.recipe.scaled:
        trace = first.baseline.steps[0][0].trace
        sections.insert(0, trace_section("bf16", trace, 1.0))
    title = f"{first.workload.name} on {first.machine.device.title}"
    write_timeline(path, title, sections, facts=facts(first)[2:], notes=notes(results))
