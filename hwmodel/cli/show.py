"""Results on the terminal: tables and lines that read well at 80 columns and in a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from hwmodel.cli.guard import printable
from hwmodel.engine.trace import SequenceTrace
from hwmodel.recipes.recipe import GEMM_USES, AmaxAxes, Exceptions, Recipe
from hwmodel.report import wording
from hwmodel.report.breakdown import HIDEABLE, KEYS, breakdown, busy, hidden_time
from hwmodel.report.metrics import gemm_share_fraction
from hwmodel.report.tables import RecipeRow, list_table, slowest_table, table_minimum, table_width
from hwmodel.report.timeline import Section
from hwmodel.simulation.result import Result, Totals
from hwmodel.units import format_bytes

_NARROWEST = 40
"""Columns that are written even where the terminal has fewer."""


class _PipedConsole(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the guard of all commands."""
        raise BrokenPipeError


def console() -> Console:
    """Standard output; no colour in a pipe or with NO_COLOR, and no markup anywhere."""
    out = _PipedConsole(markup=False, highlight=False, emoji=False)
    out.size = (max(out.width, _NARROWEST), out.height)
    return out


def heading(out: Console, text: str) -> None:
    """A line above a table."""
    out.print()
    out.print(Text(printable(text), style="bold"))


def pairs(out: Console, lines: Sequence[tuple[str, str]]) -> None:
    """Labels with what they say, aligned."""
    width = max((len(label) for label, _ in lines), default=0)
    for label, value in lines:
        first = f"  {label:{width}}  "
        wrapped = textwrap.wrap(printable(value), out.width, initial_indent=first, subsequent_indent=" " * len(first))
        out.print(Text("\n".join(wrapped) or first.rstrip()), soft_wrap=True)


def put(out: Console, table: Table) -> None:
    """A table; one that cannot be narrower than the terminal runs over its edge rather than lose or break a number."""
    kept = sum(_beyond_words(column) for column in table.columns if column.no_wrap)
    width, out.width = out.width, max(out.width, table_minimum(table) + kept)
    out.print(table)
    out.width = width


def _beyond_words(column: Column) -> int:
    """Characters that a column takes beyond its longest word."""
    lines = [line for text in (column.header, *column.cells) for line in str(text).splitlines()]
    words = [word for line in lines for word in line.split()]
    return max(map(cell_len, lines), default=0) - max(map(cell_len, words), default=0)


def bullets(out: Console, title: str, lines: Sequence[str]) -> None:
    """A list under a heading, or nothing."""
    if lines:
        heading(out, title)
        pairs(out, [("-", line) for line in lines])


def explained(out: Console, lines: Sequence[tuple[str, str]]) -> None:
    """Facts, each with what there is to say about it underneath."""
    for fact, text in lines:
        out.print(Text(f"  {printable(fact)}"), soft_wrap=True)
        indent = " " * 6
        wrapped = textwrap.wrap(printable(text), out.width, initial_indent=indent, subsequent_indent=indent)
        out.print(Text("\n".join(wrapped), style="dim"), soft_wrap=True)


def together(out: Console, title: str, lines: Sequence[str]) -> None:
    """Short lines run together under a heading, or nothing."""
    if lines:
        heading(out, title)
        pairs(out, [("", "; ".join(lines))])


def per_step(sums: Totals) -> dict[str, int]:
    """Breakdown of the mean step in whole picoseconds, which add up to the mean step rounded down.

    Each key is within 1 ps of its mean; what rounding down leaves over goes to the largest fractions.
    """
    whole = {key: value // sums.steps for key, value in sums.breakdown.items()}
    left = sums.picoseconds // sums.steps - sum(whole.values())
    by_fraction = sorted(sums.breakdown, key=lambda key: -(sums.breakdown[key] % sums.steps))
    for key in by_fraction[:left]:
        whole[key] += 1
    return whole


def recipe_row(result: Result) -> RecipeRow:
    """The mean step of a result as the tables show it."""
    breakdown = per_step(result.totals)
    return RecipeRow(printable(result.recipe.preset), sum(breakdown.values()), result.speedup, breakdown)


def baseline_row(result: Result) -> RecipeRow:
    """The BF16 step beside a result."""
    breakdown = per_step(result.baseline_totals)
    return RecipeRow("bf16", sum(breakdown.values()), 1.0, breakdown)


def section(result: Result) -> Section:
    """The first step of a result's period, for a timeline."""
    detail = result.step_shown
    if detail:
        mean = wording.duration(result.totals.picoseconds // result.totals.steps)
        detail += f"; its mean step {mean}, {wording.times(result.speedup)}"
    return trace_section(result.recipe.preset, result.trace, result.shown_speedup, detail)


def trace_section(title: str, trace: SequenceTrace, speedup: float, detail: str = "") -> Section:
    """One step for a timeline."""
    charged = breakdown(trace)
    return Section(title, trace, charged, speedup, hidden_time(charged, busy(trace)), detail)


def facts(result: Result) -> list[tuple[str, str]]:
    """What was simulated, in a few words."""
    layout = result.data["layout"]
    degrees = ", ".join(f"{key} {layout[key]}" for key in ("tp", "cp", "dp", "pp", "vp") if layout.get(key, 1) != 1)
    devices = layout["devices"]
    return [
        ("workload", result.workload.name),
        ("device", result.machine.device.title),
        ("devices", f"{devices:,}" + (f" ({degrees})" if degrees else "")),
        ("software", result.machine.software.name),
    ]


def collected(results: Sequence[Result], key: str) -> list[str]:
    """Lines of all results, each once, with the recipes it is about unless it is about all."""
    about: dict[str, list[str]] = {}
    for result in results:
        for line in result.data[key]:
            about.setdefault(line, []).append(result.recipe.preset)
    return [line if len(names) == len(results) else f"{line} ({', '.join(names)})" for line, names in about.items()]


def stage_notes(results: Sequence[Result]) -> list[str]:
    """Which pipeline rank the times are seen from, where it is not the slowest under every recipe."""
    slowest: dict[int, list[str]] = {}
    for result in results:
        slowest.setdefault(result.simulation.slowest_stage, []).append(printable(result.recipe.preset))
    seen = results[0].simulation.stage
    if set(slowest) == {seen}:
        return []
    said = ", ".join(f"rank {rank} under {' and '.join(names)}" for rank, names in sorted(slowest.items()))
    return [
        f"times by key are those of pipeline rank {seen}; the slowest, which decides the step, is {said}, and a rank "
        "that is not waits (bubble)"
    ]


def print_result(out: Console, result: Result) -> None:
    """All a person wants to know of one result."""
    data = result.data
    lines = [
        *facts(result),
        ("recipe", recipe_words(result)),
        ("step", wording.duration(sum(per_step(result.totals).values()))),
    ]
    if result.totals.steps > 1:
        lines[-1] = ("step", f"{lines[-1][1]} (mean of the {result.totals.steps} steps of a period)")
    lines.append(("speedup", f"{wording.times(result.speedup)} over BF16 {_ceiling(result)}"))
    if "tokens_per_second_per_device" in data:
        lines.append(("tokens", f"{data['tokens_per_second_per_device']:,.1f} per second and device"))
        lines.append(
            (
                "MFU",
                f"{100 * data['model_flops_utilisation_fraction']:.1f} % of the BF16 dense peak"
                f" ({100 * data['recipe_flops_utilisation_fraction']:.1f} % of the recipe's format); "
                f"FLOPs {data['flops_convention']}",
            )
        )
    lines += [("memory", text) for text in memory_words(result)]
    pairs(out, lines)
    heading(out, "Where the time of a step goes")
    put(out, breakdown_table(recipe_row(result), baseline_row(result)))
    pairs(out, [*_hidden(result), ("counts", counts_words(result))])
    heading(out, "Slowest kernels")
    put(out, kernels_table(result, out.width))
    together(out, "Defaults used", data["defaults_used"])
    bullets(out, "Keep in mind", notes([result]))


def notes(results: Sequence[Result]) -> list[str]:
    """What to keep in mind about results that stand beside each other."""
    stages = stage_notes(results) if len(results) > 1 else []
    return [*stages, *exception_notes(results), *collected(results, "warnings")]


def exception_notes(results: Sequence[Result]) -> list[str]:
    """Recipes of 8 bits whose exceptions leave nothing in 8 bits."""
    about: dict[str, list[str]] = {}
    for result in results:
        recipe, exceptions = result.recipe, result.recipe.exceptions
        if not recipe.scaled:
            continue
        layers = getattr(getattr(result.workload, "model", None), "layers", None)
        name = printable(recipe.preset)
        if set(exceptions.gemms) >= set(GEMM_USES):
            about.setdefault("every GEMM", []).append(name)
        elif layers is not None and exceptions.first_layers + exceptions.last_layers >= layers:
            about.setdefault(f"all {layers} layers", []).append(name)
    return [
        f"exceptions keep {what} in BF16, so nothing runs in 8 bits under {', '.join(names)}"
        for what, names in about.items()
    ]


def recipe_words(result: Result) -> str:
    """A recipe's name and its main axes."""
    recipe = result.recipe
    if not recipe.scaled:
        return f"{recipe.preset} (no scaling)"
    formats = f"X {recipe.formats.x}, W {recipe.formats.w}, G {recipe.formats.g}"
    interval = ""
    if recipe.keeps_state:
        steps = recipe.interval_steps
        interval = (
            ", amax never" if steps is None else f", amax every {steps} steps" if steps > 1 else ", amax every step"
        )
    words = f"{recipe.granularity} granularity, {recipe.timing} scaling{interval}; {formats}"
    if recipe.keeps_state and recipe.amax != AmaxAxes():
        words += f"; amax kernel {recipe.amax.kernel}, sampling {recipe.amax.sampling}"
    if recipe.fusion != Recipe().fusion:
        words += f"; fusion {recipe.fusion}"
    if kept := _exception_words(recipe.exceptions):
        words += f"; {kept} in BF16"
    return f"{recipe.preset} ({words})"


def _exception_words(exceptions: Exceptions) -> str:
    ends = [
        f"{end} {count}"
        for end, count in (("first", exceptions.first_layers), ("last", exceptions.last_layers))
        if count
    ]
    count = exceptions.last_layers or exceptions.first_layers
    layers = [f"{' and '.join(ends)} layer{'s' if count > 1 else ''}"] if ends else []
    return " and ".join([*layers, *exceptions.gemms])


def memory_words(result: Result) -> list[str]:
    """Peak against capacity, in both kinds of gigabytes."""
    memory = result.data.get("memory")
    if not memory:
        return []
    peak, capacity = memory["peak_bytes"], memory["capacity_bytes"]
    verdict = "fits" if memory["fits"] else "does NOT fit"
    return [
        f"{format_bytes(peak)} ({format_bytes(peak, binary=True)}) of "
        f"{format_bytes(capacity)} ({format_bytes(capacity, binary=True)}): {verdict}"
    ]


def counts_words(result: Result) -> str:
    """How much of each thing one step does."""
    counts = result.data["counts"]
    words = [
        f"{counts['kernels']:,} kernels",
        f"{counts['quantise_passes']:,} quantise passes",
        f"{counts['amax_passes']:,} amax passes ({format_bytes(counts['amax_bytes'])})",
        f"{counts['transposes']:,} transposes",
        f"{counts['collectives']:,} collectives",
    ]
    return f"{', '.join(words)}; {counts['events']:,} events"


def breakdown_table(row: RecipeRow, baseline: RecipeRow) -> Table:
    """Wall time by key beside BF16."""
    lines = []
    for key in KEYS:
        here, there = row.breakdown.get(key, 0), baseline.breakdown.get(key, 0)
        if here or there:
            lines.append(
                [
                    key,
                    wording.milliseconds(here),
                    wording.percent(here, row.step_picoseconds),
                    wording.milliseconds(there),
                    signed_milliseconds(here - there),
                ]
            )
    table = list_table(["", "ms", "% of step", "BF16 ms", "difference ms"], lines)
    table.add_section()
    steps = row.step_picoseconds, baseline.step_picoseconds
    total = [
        "step",
        wording.milliseconds(steps[0]),
        wording.percent(steps[0], steps[0]),
        wording.milliseconds(steps[1]),
        signed_milliseconds(steps[0] - steps[1]),
    ]
    table.add_row(*(Text(cell, style="bold") for cell in total))
    return table


def kernels_table(result: Result, width: int) -> Table:
    """The slowest kernels; without their kind where that does not fit."""
    kernels = [
        replace(kernel, name=printable(kernel.name), shape=printable(kernel.shape))
        for kernel in result.slowest_kernels()
    ]
    whole = slowest_table(kernels)
    if table_width(whole) <= width:
        return whole
    lines = [
        [
            kernel.name,
            kernel.shape or "-",
            wording.count(kernel.calls),
            wording.milliseconds(kernel.total_picoseconds),
            f"{100 * kernel.share_fraction:.1f} %",
            kernel.bound or "-",
        ]
        for kernel in kernels
    ]
    table = list_table(["kernel", "shape", "calls", "total ms", "% of step", "bound"], lines, left=("shape", "bound"))
    return folding(table, "shape")


def folding(table: Table, *names: str) -> Table:
    """``table`` where only the columns of these names are folded if it is too wide."""
    for column in table.columns:
        column.no_wrap = str(column.header) not in names
        column.overflow = "fold"
    return table


def signed_milliseconds(picoseconds: int) -> str:
    """Milliseconds with their sign."""
    return ("+" if picoseconds > 0 else "") + wording.milliseconds(picoseconds)


def _ceiling(result: Result) -> str:
    share = gemm_share_fraction(result.baseline_totals.breakdown)
    ceiling = result.data["speedup_ceiling"]
    bound = "" if ceiling is None else f": at most {wording.times(ceiling)} if they took no time"
    return f"(GEMMs are {100 * share:.1f} % of the BF16 step{bound})"


def _hidden(result: Result) -> list[tuple[str, str]]:
    hidden = result.data["hidden_seconds"]
    words = [f"{key} {1000 * hidden[key]:,.3f} ms" for key in HIDEABLE if hidden[key]]
    return [("hidden", f"behind other work: {', '.join(words)}")] if words else []
