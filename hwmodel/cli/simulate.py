"""``hwmodel simulate``: one workload on one device under one recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hwmodel.cli import options


def simulate(
    workload: options.Workload,
    *,
    device: options.Device,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            metavar="PRESET",
            help=f"Recipe instead of the workload's own; {options.PRESET}.",
            show_default=False,
        ),
    ] = None,
    sets: options.Sets = [],  # noqa: B006 - typer copies it
    json: options.Json = None,
    timeline: options.Timeline = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE.json[.gz]", help="Write every event, for Perfetto.", show_default=False),
    ] = None,
) -> None:
    """Simulate a step and say where its time goes, beside BF16."""
    from hwmodel import api
    from hwmodel.cli.outputs import check_outputs, inputs, write_json
    from hwmodel.cli.progress import progress

    check_outputs({"--json": json, "--timeline": timeline, "--trace": trace}, inputs(workload, device, sets))
    with progress() as say:
        say(f"simulating {workload} on {device}")
        result = api.simulate(workload, device, recipe=recipe, sets=sets)
        data = result.data
        if json is not None:
            write_json(json, data)
        if trace is not None:
            from hwmodel.report.trace_export import left_out, write_trace

            say("writing the trace")
            write_trace(trace, result.trace, process=result.process)
            if omitted := left_out(result.trace):
                typer.echo(f"--trace: {str(trace)!r} holds {omitted}", err=True)
        if timeline is not None:
            from hwmodel.cli.pages import write_page

            say("drawing the timeline")
            write_page(timeline, [result])
    if json != "-":
        from hwmodel.cli.show import console, print_result

        print_result(console(), result)
