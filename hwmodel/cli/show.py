"""Results on the terminal: tables and lines that read well at 80 columns and in a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hwmodel.cli.guard import printable
from hwmodel.report import wording
from hwmodel.report.breakdown import KEYS
from hwmodel.report.metrics import gemm_share_fraction, slowest_kernels
from hwmodel.report.tables import RecipeRow, list_table, slowest_table
from hwmodel.report.timeline import Section
from hwmodel.simulation.result import Result, Totals
from hwmodel.units import format_bytes

_HIDEABLE = ("amax", "collective")


class _PipedConsole(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the guard of all commands."""
        raise BrokenPipeError


def console() -> Console:
    """Standard output; no colour in a pipe or with NO_COLOR, and no markup anywhere."""
    return _PipedConsole(markup=False, highlight=False, emoji=False)


def heading(out: Console, text: str) -> None:
    """A line above a table."""
    out.print()
    out.print(Text(printable(text), style="bold"))


def pairs(out: Console, lines: Sequence[tuple[str, str]]) -> None:
    """Labels with what they say, aligned."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in lines:
        grid.add_row(Text(label), Text(printable(value)))
    out.print(Padding(grid, (0, 0, 0, 2)))


def bullets(out: Console, title: str, lines: Sequence[str]) -> None:
    """A list under a heading, or nothing."""
    if not lines:
        return
    heading(out, title)
    pairs(out, [("-", line) for line in lines])


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
    steps = result.totals.steps
    detail = f"first of {steps} steps, mean {wording.duration(result.totals.picoseconds // steps)}" if steps > 1 else ""
    return Section(result.recipe.preset, result.trace, _charged(result), result.speedup, detail)


def _charged(result: Result) -> dict[str, int]:
    from hwmodel.report.breakdown import breakdown

    return breakdown(result.trace)


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


def print_result(out: Console, result: Result) -> None:
    """All a person wants to know of one result."""
    data = result.data
    lines = [*facts(result), ("recipe", recipe_words(result)), ("step", wording.duration(sum(per_step(result.totals).values())))]
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
    out.print(breakdown_table(recipe_row(result), baseline_row(result)))
    pairs(out, [*_hidden(result), ("counts", counts_words(result))])
    heading(out, "Slowest kernels")
    kernels = [
        replace(kernel, name=printable(kernel.name), shape=printable(kernel.shape))
        for kernel in slowest_kernels(result.trace)
    ]
    out.print(slowest_table(kernels))
    bullets(out, "Defaults used", data["defaults_used"])
    bullets(out, "Keep in mind", data["warnings"])


def recipe_words(result: Result) -> str:
    """A recipe's name and its main axes."""
    recipe = result.recipe
    if not recipe.scaled:
        return f"{recipe.preset} (no scaling)"
    formats = f"X {recipe.formats.x}, W {recipe.formats.w}, G {recipe.formats.g}"
    interval = ""
    if recipe.keeps_state:
        steps = recipe.interval_steps
        interval = ", amax never" if steps is None else f", amax every {steps} steps" if steps > 1 else ", amax every step"
    return f"{recipe.preset} ({recipe.granularity} granularity, {recipe.timing} scaling{interval}; {formats})"


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


def signed_milliseconds(picoseconds: int) -> str:
    """Milliseconds with their sign."""
    return ("+" if picoseconds > 0 else "") + wording.milliseconds(picoseconds)


def _ceiling(result: Result) -> str:
    share = gemm_share_fraction(result.baseline_totals.breakdown)
    ceiling = result.data["speedup_ceiling"]
    bound = "no bound" if ceiling is None else f"at most {wording.times(ceiling)}"
    return f"(GEMMs are {100 * share:.1f} % of the BF16 step: {bound} if they took no time)"


def _hidden(result: Result) -> list[tuple[str, str]]:
    hidden = result.data["hidden_seconds"]
    words = [f"{key} {1000 * hidden[key]:,.3f} ms" for key in _HIDEABLE if hidden[key]]
    return [("hidden", f"behind other work: {', '.join(words)}")] if words else []
