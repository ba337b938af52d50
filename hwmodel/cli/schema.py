"""``hwmodel schema``: every key a file may have, as JSON Schema."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Kind(StrEnum):
    """Files with a schema."""

    device = "device"
    workload = "workload"
    software = "software"


def schema(
    kind: Annotated[Kind, typer.Argument(help="Which file.", show_default=False)],
) -> None:
    """Print the JSON Schema of a file.

    It has every key a device, workload or software file may have, with its type, its default and what it means.
    """
    from hwmodel.cli.outputs import json_text
    from hwmodel.config.device import schema_device, schema_software
    from hwmodel.config.workload import schema_workload

    schemas = {Kind.device: schema_device, Kind.workload: schema_workload, Kind.software: schema_software}
    typer.echo(json_text(schemas[kind]()), nl=False)
