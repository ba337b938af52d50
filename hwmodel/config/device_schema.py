"""The shape of a device file: pydantic models of plain values, after the facts' wrappers are taken off."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from hwmodel.config.fields import (
    Bytes,
    BytesPerSecond,
    Count,
    Hertz,
    PositiveBytes,
    PositiveInteger,
    Real,
    Schema,
    Seconds,
    Text,
)
from hwmodel.device.device import PROMOTIONS
from hwmodel.errors import ParameterError

_Share = Annotated[float, Real(gt=0, le=1)]
_Positive = Annotated[float, Real(gt=0)]
_ACCUMULATOR_ELEMENT_BYTES = 4
_WORK = ("matrix", "vector")
_LOOP_MOVES = ("a", "b", "scales", "matrix")


class MemorySchema(Schema):
    """Device memory."""

    bytes: PositiveBytes
    """Capacity, in bytes."""
    resource: Text
    """Resource that every kernel's compulsory bytes pass."""


class ResourceSchema(Schema):
    """Something that running kernels share: a rate of data, or a number of compute units."""

    bytes_per_second: BytesPerSecond | None = None
    """Rate of the whole device, one way for a link; not beside ``units``."""
    units: PositiveInteger | None = None
    """How many compute units of this kind there are, each busy or not; not beside ``bytes_per_second``."""
    policy: Literal["fair", "proportional"]
    """How users of a full resource share it: fair: equal parts; proportional: all slow down alike."""

    @model_validator(mode="after")
    def _one_kind(self) -> ResourceSchema:
        if self.bytes_per_second is None and self.units is None:
            raise ParameterError("", "must have bytes_per_second or units, got neither")
        if self.bytes_per_second is not None and self.units is not None:
            raise ParameterError("units", "a resource has bytes_per_second or units, not both")
        return self


class PathSchema(Schema):
    """A way data takes between memories."""

    bytes_per_cycle: _Positive | None = None
    """Bytes per cycle of one core; without it only the shared resources limit the path."""
    latency_cycles: Count = 0
    """From asking for the first byte to having it, in clock cycles."""
    resources: tuple[Text, ...] = ()
    """Shared resources that its bytes pass."""

    @model_validator(mode="after")
    def _limited(self) -> PathSchema:
        if self.bytes_per_cycle is None and not self.resources:
            raise ParameterError("", "must have bytes_per_cycle or resources, got neither: it would take no time")
        return self


class GemmStageSchema(Schema):
    """One stage of a GEMM: of its K loop (a, b, scales; matrix) or its epilogue (output, accumulator; vector)."""

    name: Text
    """What reports and traces call it."""
    moves: tuple[Literal["a", "b", "scales", "output", "accumulator", "matrix", "vector"], ...]
    """What it moves or works on; listed twice, it passes twice."""
    path: Text | None = None
    """Path that its bytes take."""
    unit: Text | None = None
    """Unit resource that works."""

    @model_validator(mode="after")
    def _one_place(self) -> GemmStageSchema:
        _check_place(self.path, self.unit, self.moves)
        in_loop = {move in _LOOP_MOVES for move in self.moves}
        if len(in_loop) > 1:
            raise ParameterError("moves", f"a stage is in the K loop or in the epilogue, got {', '.join(self.moves)}")
        return self


class StreamStageSchema(Schema):
    """One stage of a vector or memory kernel."""

    name: Text
    """What reports and traces call it."""
    moves: tuple[Literal["read", "write", "vector"], ...]
    """What it moves or works on; listed twice, it passes twice."""
    path: Text | None = None
    """Path that its bytes take."""
    unit: Text | None = None
    """Unit resource that works."""

    @model_validator(mode="after")
    def _one_place(self) -> StreamStageSchema:
        _check_place(self.path, self.unit, self.moves)
        return self


class StagesSchema(Schema):
    """Stages of each kernel family, in the order data takes."""

    gemm: tuple[GemmStageSchema, ...]
    """Stages of a matrix kernel: of its K loop and its epilogue; one unit does the matrix work."""
    stream: tuple[StreamStageSchema, ...]
    """Stages of a vector or memory kernel; one unit does the vector work."""

    @field_validator("gemm")
    @classmethod
    def _one_matrix(cls, stages: tuple[GemmStageSchema, ...]) -> tuple[GemmStageSchema, ...]:
        _check_one("matrix", [stage.moves for stage in stages])
        return stages

    @field_validator("stream")
    @classmethod
    def _one_vector(cls, stages: tuple[StreamStageSchema, ...]) -> tuple[StreamStageSchema, ...]:
        _check_one("vector", [stage.moves for stage in stages])
        return stages


class HoldsSchema(Schema):
    """Unit resources that a kernel of each family occupies while it runs."""

    gemm: tuple[Text, ...]
    """Unit resources occupied while a matrix kernel runs."""
    stream: tuple[Text, ...]
    """Unit resources occupied while a vector or memory kernel runs."""


class NativeScalingSchema(Schema):
    """A block scale that the matrix unit applies by itself along the contraction axis."""

    columns: PositiveInteger
    """Block length along k, in elements."""
    scale_format: Text
    """Number format of the scales it takes."""


class TileSchema(Schema):
    """An output tile, with the k extent of one step in bytes of the wider operand."""

    m: PositiveInteger
    """Rows of the output tile."""
    n: PositiveInteger
    """Columns of the output tile."""
    k_bytes: PositiveInteger
    """Extent along k of one step, in bytes of the wider operand."""
    cores: PositiveInteger = 1
    """Cores that work on one tile together."""
    cluster_m: PositiveInteger = 1
    """Tiles below one another that run at the same time and read their columns from the cache once for all."""
    cluster_n: PositiveInteger = 1
    """Tiles beside one another that run at the same time and read their rows from the cache once for all."""


class GemmVariantSchema(Schema):
    """A GEMM kernel of its own: which tiles it has and how it runs a broken K loop."""

    tiles: tuple[TileSchema, ...] = ()
    """Output tiles it can run; without any those of the device."""
    promotion: Literal["two_group", "serial"] = "two_group"
    """How it runs a K loop that block scales break: 'two_group' beside the matrix unit, 'serial' in turn."""
    accumulators: Count = 0
    """Most accumulators it keeps per core; 1 exposes the epilogue, 0 is as many as fit."""


class MatrixSchema(Schema):
    """The matrix cores; how many there are is the ``units`` of their resource."""

    macs_per_cycle: dict[str, PositiveInteger]
    """Multiply-accumulates per cycle of one core, by number format."""
    formats: tuple[Text, ...]
    """Formats it multiplies; mxfp8_* run at the rate of their elements."""
    issue_cycles: Count
    """Fixed cycles of the matrix unit per step of k."""
    accumulator_bytes: PositiveBytes
    """Accumulator storage of one core."""
    operand_buffer_bytes: PositiveBytes
    """On-chip memory of one core for operands; every tile needs two buffers."""
    scales_share_accumulator: bool
    """Native block scales are held in the accumulator memory and take room from tiles."""
    epilogue_overlaps: bool
    """With a second accumulator the epilogue runs under the next tile's loop."""
    any_operand_layout: bool
    """8-bit operands may be read transposed; otherwise both must be contiguous along k."""
    native_scaling: tuple[NativeScalingSchema, ...]
    """Block scales it applies by itself along k."""
    tiles: Annotated[tuple[TileSchema, ...], Field(min_length=1)]
    """Output tiles that GEMM kernels can run; the fastest is taken."""

    scale_load_bytes_per_cycle: Annotated[float, Real(ge=0)] = 0.0
    """Rate at which the matrix pipe itself loads native block scales, in turn with its products; 0: beside them."""
    scale_copies: PositiveInteger = 1
    """Copies of each block scale in the accumulator memory, where block scales are held there."""
    gemm_variants: dict[str, GemmVariantSchema] = Field(default_factory=dict)
    """GEMM kernels that software sets may name, beside the built-in ones."""

    @field_validator("tiles")
    @classmethod
    def _tiles_fit(cls, tiles: tuple[TileSchema, ...], info: ValidationInfo) -> tuple[TileSchema, ...]:
        _check_tiles("", tiles, info.data.get("accumulator_bytes"))
        return tiles

    @field_validator("gemm_variants")
    @classmethod
    def _their_tiles_fit(
        cls, variants: dict[str, GemmVariantSchema], info: ValidationInfo
    ) -> dict[str, GemmVariantSchema]:
        for name, variant in variants.items():
            if name in PROMOTIONS:
                raise ParameterError(name, "is built in and stands for a way to break the K loop; give it another name")
            _check_tiles(f"{name}.tiles.", variant.tiles, info.data.get("accumulator_bytes"))
        return variants


class ElementsPerCycleSchema(Schema):
    """FP32 elements per cycle of one vector core, by instruction class."""

    simple: _Positive
    """One operand or a scalar: abs, multiply by a scalar, maximum with a scalar."""
    binary: _Positive
    """Two operands: add, multiply, maximum."""
    cast: _Positive
    """Changes of number format."""
    exp: _Positive
    """Exponentials."""
    divide: _Positive
    """Divisions."""
    rsqrt: _Positive
    """Reciprocal square roots."""
    reduce: _Positive
    """Sum or maximum along a row."""


class VectorSchema(Schema):
    """The vector cores; how many there are is the ``units`` of their resource."""

    elements_per_cycle: ElementsPerCycleSchema
    """FP32 elements per cycle of one core, by instruction class."""
    piece_bytes: Bytes = 0
    """Bytes a core moves at a time; with less than that per core, cores stay idle. 0: data flows without pieces."""


class PromotionSchema(Schema):
    """How partial sums are scaled outside the matrix unit where block scales break the K loop."""

    fma_elements_per_cycle: _Positive
    """Multiply-adds per cycle of the lanes that serve one matrix core."""
    path: Text | None = None
    """Path from accumulator to vector lanes; none where they share registers."""
    units: tuple[Text, ...] = ()
    """Unit resources held while a promoting kernel runs."""
    largest_tile_elements: Count = 0
    """Largest m x n of a tile per core once two accumulators are live; 0 for no limit."""
    outer_scale_elements_per_cycle: Annotated[float, Real(ge=0)] = 0.0
    """Rate of multiplying a row's scale by a column's, where both operands have one for each; 0 where it hides."""
    kernel: Literal["two_group", "serial"] = "two_group"
    """How the broken K loop runs unless the software set names a kernel."""


class LevelSchema(Schema):
    """One level of the interconnect; levels are written from the inside out."""

    ranks: PositiveInteger
    """Devices joined by this level."""
    resource: Text
    """Resource that is a device's link at this level."""
    cores_held: Count
    """Matrix cores that a collective kernel at this level holds while it runs."""
    memory_bytes_per_link_byte: Annotated[float, Real(ge=0)]
    """Bytes of device-memory traffic for each byte sent over the link."""


class AccessSchema(Schema):
    """Share of a resource's rate that well-written kernels reach, by kind of access."""

    contiguous: _Share = 1.0
    """Kernels that read and write in order, and any kind not stated here."""
    transpose: _Share | None = None
    """Kernels that write or read across rows."""
    latency: _Share | None = None
    """Tiny accesses that depend on each other."""
    gemm: _Share | None = None
    """Operands and outputs of matrix kernels."""
    attention: _Share | None = None
    """Queries, keys, values and outputs of attention kernels."""


class LevelCalibrationSchema(Schema):
    """What a level of the interconnect reaches."""

    achieved_fraction: _Share
    """Share of the link's rate that large transfers reach."""
    latency_seconds: Seconds
    """Fixed time of one hop or step of a collective."""


class AttentionFractionSchema(Schema):
    """Share of the matrix peak that attention reaches."""

    forward: _Share
    """Share that the forward kernel reaches."""
    backward: _Share
    """Share that the backward kernel reaches."""


class CalibrationSchema(Schema):
    """What is fitted or measured as a share of a fact, and latencies."""

    achieved_fraction: dict[str, AccessSchema]
    """Share of a resource's rate that kernels reach, by resource; 1 for one not listed."""
    sustained_fraction: dict[str, _Share]
    """Share of the peak rate that a matrix kernel's main loop sustains, by format of ``matrix.macs_per_cycle``."""
    power_fraction: dict[str, _Share] = Field(default_factory=dict)
    """Share of the peak rate that power allows a whole matrix kernel, by format of ``matrix.macs_per_cycle``."""
    tile_cycles: Count = 0
    """Clock cycles of each GEMM tile that nothing hides: its start, and handing its result over."""
    attention_fraction: AttentionFractionSchema
    """Share of the matrix peak that attention reaches."""
    launch_seconds: Seconds
    """Gap between a kernel and the next that depends on it, launched ahead of time."""
    collective_launch_seconds: Seconds
    """Fixed time of a collective before its first hop."""
    reduction_cycles: Count
    """Cross-core reduction at the end of a whole-tensor amax, in clock cycles."""
    levels: dict[str, LevelCalibrationSchema]
    """What each level of ``levels`` reaches."""


class DeviceSchema(Schema):
    """A device file. Any value may be written as a fact: {value: ..., source: ..., confidence: D|V|M|T|I|U|A|F}."""

    title: Text
    """What reports call the device."""
    notes: tuple[Text, ...] = ()
    """Sentences for whoever reads a result on it."""
    clock_hz: Hertz
    """Clock behind the peak rates."""
    memory: MemorySchema
    """Device memory."""
    cache_bytes: PositiveBytes
    """Last-level cache shared by all cores."""
    resources: dict[str, ResourceSchema]
    """What running kernels share, by name."""
    paths: dict[str, PathSchema]
    """Ways of data between memories, by name."""
    stages: StagesSchema
    """Stages of each kernel family."""
    holds: HoldsSchema
    """Units that kernels occupy."""
    matrix: MatrixSchema
    """The matrix cores."""
    vector: VectorSchema
    """The vector cores."""
    promotion: PromotionSchema
    """Scaling outside the matrix unit."""
    levels: Annotated[dict[str, LevelSchema], Field(min_length=1)]
    """Interconnect, from the inside out, by name."""
    calibration: CalibrationSchema
    """Shares of the facts above that real kernels reach, and latencies."""

    @field_validator("levels")
    @classmethod
    def _levels_grow(cls, levels: dict[str, LevelSchema]) -> dict[str, LevelSchema]:
        ranks = 0
        for name, level in levels.items():
            if level.ranks <= ranks:
                message = f"must be > {ranks}, the ranks of the level inside, got {level.ranks}"
                raise ParameterError(f"{name}.ranks", message)
            ranks = level.ranks
        return levels


def _check_place(path: str | None, unit: str | None, moves: tuple[str, ...]) -> None:
    """A stage moves bytes over a path, or works on a unit."""
    if path is None and unit is None:
        raise ParameterError("", "must have path or unit, got neither")
    if path is not None and unit is not None:
        raise ParameterError("unit", f"a stage has a path or a unit, not both; got path {path!r} and unit {unit!r}")
    if not moves:
        raise ParameterError("moves", "must have at least 1 entry, got none")
    for index, move in enumerate(moves):
        if (move in _WORK) != (unit is not None):
            place = f"unit {unit!r}" if path is None else f"path {path!r}"
            raise ParameterError(f"moves.{index}", f"{move!r} is not for the {place}: a unit works, a path moves bytes")


def _check_one(work: str, moves: list[tuple[str, ...]]) -> None:
    """Exactly one stage does the main work of a kernel family."""
    count = sum(work in entry for entry in moves)
    if count != 1:
        raise ParameterError("", f"must have one stage whose unit moves {work!r}, got {count}")


def _check_tiles(prefix: str, tiles: tuple[TileSchema, ...], accumulator_bytes: int | None) -> None:
    """One accumulator of every tile fits, where its size is known."""
    for index, tile in enumerate(tiles):
        needed = -(-tile.m * tile.n * _ACCUMULATOR_ELEMENT_BYTES // tile.cores)
        if accumulator_bytes is not None and needed > accumulator_bytes:
            message = f"{tile.m}x{tile.n} needs {needed} bytes of accumulator per core, there are {accumulator_bytes}"
            raise ParameterError(f"{prefix}{index}", message)
