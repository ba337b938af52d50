"""The shape of a workload file: one model per kind, with every key described."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, create_model

from hwmodel.config.fields import Count, PositiveInteger, Schema, Text
from hwmodel.config.generated import OneOf, schema_of, words
from hwmodel.config.graph import GraphSchema
from hwmodel.config.model import ModelSchema  # noqa: TC001 - pydantic reads it when the class is made
from hwmodel.config.recipe import RecipeSchema
from hwmodel.device.software import COUNTS, FUSED, KERNELS, OVERLAPS, PAYLOADS, SWITCHES
from hwmodel.graph import Layout
from hwmodel.schedules import SCHEDULES
from hwmodel.workload import Optimizer
from hwmodel.workload.workload import GRADIENT_FORMATS

DEFAULT_SOFTWARE: Final = "mature"
SHORTHANDS: Final = {"model": "base", "recipe": "preset", "schedule": "streams", "software": "set"}
"""Sections that may be written as a text alone, with the key that text belongs to."""

_LAYOUT_SAYS = {
    "tp": "tensor parallelism: ranks that share each layer's matrices",
    "sp": "sequence parallelism: activations between tensor-parallel regions are cut along the sequence over tp",
    "cp": "context parallelism: ranks that share each sequence",
    "dp": "data parallelism: copies of the model with batches of their own",
    "pp": "pipeline parallelism: stages the layers are cut into",
    "vp": "virtual stages: pieces of the model that each pipeline rank holds (1: not interleaved)",
}
_OPTIMIZER_SAYS = {
    "sharded": "the optimiser's state is cut over data and context parallel ranks",
    "gradient_format": "format in which gradients are summed over data-parallel ranks",
    "master_bytes": "bytes of the high-precision copy, per parameter",
    "moment_bytes": "bytes of both moments together, per parameter",
}

ParallelSchema = schema_of(Layout, "ParallelSchema", says=_LAYOUT_SAYS, integer=PositiveInteger)
OptimizerSchema = schema_of(
    Optimizer, "OptimizerSchema", says=_OPTIMIZER_SAYS, kinds={"gradient_format": words(GRADIENT_FORMATS)}
)


class BatchSchema(Schema):
    """Sequences of one optimiser step."""

    global_sequences: PositiveInteger = Field(
        alias="global", description="sequences of one optimiser step, all devices"
    )
    micro_sequences: PositiveInteger = Field(default=1, alias="micro", description="sequences of one microbatch")
    sequence: PositiveInteger = Field(description="tokens of one sequence")


class ScheduleSchema(Schema):
    """Who runs when."""

    streams: Annotated[str, OneOf(SCHEDULES.names, "schedule")] = Field(
        default="overlap",
        description="overlap: transfers that software can overlap run beside compute; serial: one thing at a time",
    )


def _software_fields() -> dict[str, Any]:
    payloads = tuple[words(PAYLOADS), ...]
    kinds = (
        (SWITCHES, bool, "switch"),
        (COUNTS, Count, "count"),
        (KERNELS, Text, "kernel"),
        (OVERLAPS, payloads, "overlap"),
    )
    made: dict[str, Any] = {
        "set": (Text, Field(default=DEFAULT_SOFTWARE, description="name of a software set, or a path"))
    }
    for names, kind, what in kinds:
        for name, says in names.items():
            made[name] = (kind | None, Field(default=None, description=f"{what}, over the set's: {says}"))
    says = "fused kernels there are, in place of the set's"
    made["fused"] = (tuple[words(FUSED), ...] | None, Field(default=None, description=says))
    return made


SoftwareSchema = create_model(
    "SoftwareSchema", __base__=Schema, __doc__="The software set, with entries to change.", **_software_fields()
)


class EnvelopeSchema(Schema):
    """The keys that every workload has."""

    name: Text | None = Field(default=None, description="title; without one the name of the file")
    recipe: RecipeSchema = Field(  # type: ignore[valid-type]  # a model made when this module is loaded
        default=RecipeSchema(), description="scaling recipe: a preset's name, or a mapping"
    )
    schedule: ScheduleSchema = Field(default=ScheduleSchema(), description="schedule: a name, or a mapping")
    software: SoftwareSchema = Field(  # type: ignore[valid-type]  # as recipe
        default=SoftwareSchema(), description="software: a set's name, or a mapping that also changes entries"
    )
    steps: Count = Field(default=0, description="steady steps to list; 0 for one period of the recipe's interval")
    notes: tuple[Text, ...] = Field(default=(), description="remarks for readers of results")


class TrainingSchema(EnvelopeSchema):
    """One optimiser step of a dense decoder."""

    kind: Literal["training"] = Field(description="'training'")
    model: ModelSchema = Field(  # type: ignore[valid-type]  # as recipe
        description="architecture: a shipped model's name, or a mapping"
    )
    batch: BatchSchema = Field(description="sequences of one optimiser step")
    parallel: ParallelSchema = Field(  # type: ignore[valid-type]  # as recipe
        default=ParallelSchema(), description="how the model is cut over devices; their number is tp x cp x dp x pp"
    )
    optimizer: OptimizerSchema = Field(  # type: ignore[valid-type]  # as recipe
        default=OptimizerSchema(), description="Adam in mixed precision"
    )


class HandSchema(EnvelopeSchema, GraphSchema):
    """Tensors and ops written by hand, on one device."""

    kind: Literal["graph"] = Field(description="'graph'")


KINDS: Final[dict[str, type[EnvelopeSchema]]] = {"training": TrainingSchema, "graph": HandSchema}
