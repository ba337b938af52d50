"""``hwmodel compare``: one workload on one device under several recipes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from hwmodel.report.tables import RecipeRow
    from hwmodel.simulation.result import Result


def compare(
    workload: options.Workload,
    *,
    device: options.Device,
    recipes: Annotated[
        str | None,
        typer.Option(
            "--recipes",
            metavar="A,B,...",
            help=f"Presets to compare; own: the workload's own recipe. A preset {options.PRESET}.",
            show_default="bf16,delayed,current,mxfp8",
        ),
    ] = None,
    sets: options.Sets = [],  # noqa: B006 - typer copies it
    json: options.Json = None,
    timeline: options.Timeline = None,
) -> None:
    """Compare recipes, and say where they differ."""
    from hwmodel import api
    from hwmodel.cli.outputs import STANDARD_OUTPUT, check_outputs, inputs, write_json
    from hwmodel.cli.progress import progress

    check_outputs({"--json": json, "--timeline": timeline}, inputs(workload, device, sets))
    wanted = options.names(recipes, "--recipes") or None
    with progress() as say:
        comparison = api.compare(
            workload, device, wanted, sets=sets, progress=lambda name: say(f"simulating {workload} on {device}: {name}")
        )
        rows = comparison.rows
        if json is not None:
            write_json(json, comparison_data(rows))
        if timeline is not None:
            from hwmodel.cli.pages import write_page

            say("drawing the timeline")
            write_page(timeline, rows)
    for name in comparison.left_out:
        typer.echo(f"left out {name}: {device} does not multiply its formats", err=True)
    if json != STANDARD_OUTPUT:
        from hwmodel.cli.show import console

        print_comparison(console(), rows)


def comparison_data(results: Sequence[Result]) -> dict[str, object]:
    """The keys of ``compare --json``."""
    from hwmodel.cli.show import recipe_row
    from hwmodel.report.tables import difference

    rows = [recipe_row(result) for result in results]
    first = results[0].data
    return {
        "schema": first["schema"],
        "workload": first["workload"],
        "device": first["device"],
        "rows": [
            {"recipe": result.recipe.preset, "axes": result.data["recipe"]}
            | {key: value for key, value in result.data.items() if key != "recipe"}
            for result in results
        ],
        "differences": [
            {
                "before": before.recipe,
                "after": after.recipe,
                "step_picoseconds": after.step_picoseconds - before.step_picoseconds,
                "breakdown_picoseconds": difference(before.breakdown, after.breakdown),
            }
            for before, after in itertools.pairwise(rows)
        ],
        "published": published_data(results[0]),
    }


def published_data(result: Result) -> dict[str, object]:
    """Published speedups to read beside the rows."""
    from dataclasses import asdict

    from hwmodel.report.published import published_speedups

    model = _model(result)
    return {
        "used_for_fitting": False,
        "note": _published_note(result),
        "speedups": [asdict(entry) for entry in published_speedups(model)],
    }


def print_comparison(out: Console, results: Sequence[Result]) -> None:
    """The table of recipes, where neighbours differ, and what was published."""
    from hwmodel.cli import show
    from hwmodel.report.tables import comparison_tables, difference_table
    from hwmodel.report.wording import times

    rows = [show.recipe_row(result) for result in results]
    show.pairs(out, show.facts(results[0]))
    show.heading(out, "Recipes")
    for table in comparison_tables(rows, width=out.width):
        show.put(out, table)
    ceiling = results[0].data["speedup_ceiling"]
    if ceiling is not None:
        show.pairs(out, [("ceiling", f"{times(ceiling)} if the GEMMs of the BF16 step took no time")])
    _print_ratios(out, rows)
    for before, after in itertools.pairwise(rows):
        show.heading(out, f"From {before.recipe} to {after.recipe}")
        show.put(out, difference_table(before, after))
    _print_published(out, results[0])
    show.together(out, "Defaults used", show.collected(results, "defaults_used"))
    show.bullets(out, "Keep in mind", show.notes(results))


def _print_ratios(out: Console, rows: Sequence[RecipeRow]) -> None:
    """How many times faster each recipe is than each other, or than the first where not all fit."""
    from hwmodel.cli import show
    from hwmodel.report.tables import list_table, table_width

    def table(columns: Sequence[RecipeRow]) -> Table:
        return list_table(
            ["", *(f"{column.recipe} /" for column in columns)],
            [[f"/ {row.recipe}", *(_ratio(column, row) for column in columns)] for row in rows],
        )

    whole = table(rows)
    show.heading(out, "Ratios of steps: the step above over the step at the left")
    show.put(out, whole if table_width(whole) <= out.width else table(rows[:1]))


def _ratio(over: RecipeRow, under: RecipeRow) -> str:
    return f"{over.step_picoseconds / under.step_picoseconds:.3f}" if under.step_picoseconds else "-"


def _print_published(out: Console, result: Result) -> None:
    from hwmodel.cli import show
    from hwmodel.report.published import published_speedups
    from hwmodel.report.tables import folded_table

    entries = published_speedups(_model(result))
    if entries:
        show.heading(out, f"Published for {_model(result)}, for reference; nothing is fitted to these")
        cells = [[entry.recipe, entry.text, entry.kind, entry.conditions, entry.source] for entry in entries]
        columns = ["recipe", "over BF16", "", "machine and layout", "source"]
        folded = ("machine and layout", "source")
        show.put(out, folded_table(columns, cells, left=("", *folded), width=out.width))
    if note := _published_note(result):
        show.pairs(out, [("-", note)])


def _published_note(result: Result) -> str:
    """What there is to compare with on this device; empty for a workload that is no training step."""
    from hwmodel.report.published import has_published_step

    model, device = _model(result), result.machine.device
    if not model:
        return ""
    if has_published_step(model, device.name):
        return f"{device.title}: measured steps of {model} are among these, in other layouts and releases too"
    return f"{device.title}: no published step of {model} to compare with"


def _model(result: Result) -> str:
    """Name of the model trained, empty where there is none."""
    return getattr(getattr(result.workload, "model", None), "name", "")
