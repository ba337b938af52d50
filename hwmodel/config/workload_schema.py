"""The shape of a workload file: one model per kind, with every key described."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, create_model

from hwmodel.config.fields import Count, PositiveInteger, Schema, Text
from hwmodel.config.generated import OneOf, many, schema_of, words
from hwmodel.config.graph import GraphSchema, params_schema
from hwmodel.config.model import ModelSchema  # noqa: TC001 - pydantic reads it when the class is made
from hwmodel.config.recipe import RecipeSchema
from hwmodel.config.shorthand import SHORTHANDS
from hwmodel.device.software import COUNTS, FUSED, KERNELS, OVERLAPS, PAYLOADS, SWITCHES
from hwmodel.graph import Layout
from hwmodel.ops import OPS
from hwmodel.schedules import SCHEDULES
from hwmodel.workload import Optimizer
from hwmodel.workload.workload import GRADIENT_BYTES

DEFAULT_SOFTWARE: Final = "mature"

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
    "gradient_format": "format in which gradients are accumulated and summed over data-parallel ranks",
    "master_bytes": "bytes of the high-precision copy, per parameter",
    "moment_bytes": "bytes of both moments together, per parameter",
}

ParallelSchema = schema_of(Layout, "ParallelSchema", says=_LAYOUT_SAYS, integer=PositiveInteger)
OptimizerSchema = schema_of(
    Optimizer, "OptimizerSchema", says=_OPTIMIZER_SAYS, kinds={"gradient_format": words(tuple(GRADIENT_BYTES))}
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
    payloads = many(words(PAYLOADS))
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
    made["fused"] = (many(words(FUSED, "fused kernel")) | None, Field(default=None, description=says))
    return made


SoftwareSchema = create_model(
    "SoftwareSchema", __base__=Schema, __doc__="The software set, with entries to change.", **_software_fields()
)


class EnvelopeSchema(Schema):
    """The keys that every workload has."""

    kind: Literal["training", "graph"] = Field(description="what is run, and which other keys there are")
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

    kind: Literal["training"] = Field(description="training: one optimiser step")
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

    kind: Literal["graph"] = Field(description="graph: tensors and ops written by hand")


KINDS: Final[dict[str, type[EnvelopeSchema]]] = {"training": TrainingSchema, "graph": HandSchema}


def schema_workload() -> dict[str, Any]:
    """The JSON schema of a workload file, every key described; params of ops by their registered dataclasses."""
    schemas = {kind: model.model_json_schema() for kind, model in KINDS.items()}
    definitions: dict[str, Any] = {}
    for kind, schema in schemas.items():
        definitions |= schema.pop("$defs", {})
        for key in schema["properties"].keys() & SHORTHANDS.keys():
            schema["properties"][key] = _or_text(schema["properties"][key])
        definitions[kind] = schema
    params = {op: params_schema(op).model_json_schema() for op in OPS.names() if op != "fused"}
    for op, schema in params.items():
        definitions |= schema.pop("$defs", {})
        definitions[f"params of {op}"] = schema
    definitions["OpSchema"]["properties"]["params"] |= {
        "anyOf": [{"$ref": f"#/$defs/params of {op}"} for op in params],
    }
    return {
        "title": "hwmodel workload",
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in schemas],
        "$defs": definitions,
    }


def _or_text(section: dict[str, Any]) -> dict[str, Any]:
    """A section that may also be written as a text alone."""
    kept: dict[str, Any] = {key: section[key] for key in ("title", "description", "default") if key in section}
    rest = {key: item for key, item in section.items() if key not in kept}
    return {"anyOf": [{"type": "string"}, rest], **kept}
