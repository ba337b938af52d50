"""Device files: the way from YAML to a `Device`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from hwmodel.config import device_schema
from hwmodel.config.described import described, extensible, or_fact
from hwmodel.config.device_names import undefined_names
from hwmodel.config.device_schema import (
    DeviceSchema,
    GemmStageSchema,
    LevelSchema,
    ResourceSchema,
    StreamStageSchema,
    TileSchema,
)
from hwmodel.config.document import Document, KeyPath, dotted
from hwmodel.config.edits import SET
from hwmodel.config.extends import load_extended
from hwmodel.config.facts import NOT_STATED, ON_COMMAND_LINE, Unwrapped, edit_facts, unwrap, with_prefix
from hwmodel.config.locate import locate
from hwmodel.config.problems import from_refusal, in_order, problems_of
from hwmodel.config.software import load_software, schema_software
from hwmodel.device.device import (
    Device,
    GemmVariant,
    Level,
    MatrixUnit,
    Path,
    PromotionFact,
    Resource,
    SourceNote,
    StageFact,
    Tile,
    VectorUnit,
)
from hwmodel.device.kernel.gemm import BUFFERS
from hwmodel.errors import ConfigError, ParameterError

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterable, Iterator

    from hwmodel.config.facts import Edit
    from hwmodel.errors import Problem

__all__ = ["CONFIDENCE", "load_device", "load_software", "schema_device", "schema_software"]

CONFIDENCE: Final = {
    "D": "datasheet or vendor document",
    "V": "vendor or framework software constant",
    "M": "measured by someone",
    "T": "third-party reading or estimate",
    "I": "inferred by arithmetic",
    "U": "recalled or unknown, not verified",
    "A": "assumption, a parameter to vary",
    "F": "fitted to measured rows, named in the source",
}
_KEYS = ("source", "confidence")
PREFIX: Final = "device"
"""What the paths of edits start with on a command line."""


@dataclass(frozen=True, slots=True)
class LoadedDevice:
    """A device with what was written of it."""

    device: Device
    document: Document
    """Plain values, with edits applied."""


def load_device(name_or_path: str | pathlib.Path, edits: Iterable[Edit] = ()) -> Device:
    """The device called by a name or in a file, with edits applied to what the file says.

    Args:
        name_or_path: a name such as ``npu`` (no slash, no ``.yaml``), or a path.
        edits: such as ``resources.hbm.bytes_per_second=16 TB/s``, or (path, value); a later one on top.

    Raises:
        RegistryError: no device of that name.
        ConfigError: every mistake, with file, line, path, rule and value.
    """
    return read_device(name_or_path, edits).device


def read_device(name_or_path: str | pathlib.Path, edits: Iterable[Edit] = ()) -> LoadedDevice:
    """As `load_device`, with what was written."""
    file = locate("devices", name_or_path)
    document = edit_facts(load_extended("devices", file), edits, _KEYS, prefix=PREFIX)
    facts = unwrap(document, _KEYS, choices={"confidence": tuple(CONFIDENCE)})
    problems = [*facts.problems, *undefined_names(facts)]
    device = None
    try:
        model = DeviceSchema.model_validate(facts.document.data)
    except ValidationError as error:
        problems.extend(problems_of(error, facts.document, DeviceSchema))
    else:
        problems += _without_room(model, facts)
        if not problems:
            build = _Build(
                model,
                file.stem,
                _title(model, facts.document, file),
                tuple(_source_notes(model, facts)),
            )
            device = build.device()
            problems += (
                problem for error in build.refused for problem in from_refusal(error, facts.document, ()).problems
            )
    if problems or device is None:
        raise ConfigError(document.source, with_prefix(in_order(problems, document), PREFIX))
    return LoadedDevice(device, facts.document)


def _title(model: DeviceSchema, document: Document, file: pathlib.Path) -> str:
    """The title, with who changed a device that is not what the title says."""
    changes = []
    if document.where(("title",))[0] not in (document.source, SET):
        changes.append(f"as {file.name} changes it")
    if SET in document.sources.values():
        changes.append("edited")
    return ", ".join((model.title, *changes))


def _without_room(model: DeviceSchema, facts: Unwrapped) -> Iterator[Problem]:
    """Lists of tiles of which none fits the matrix cores."""
    matrix = model.matrix
    units = [stage.unit for stage in model.stages.gemm if stage.unit is not None]
    cores = max((model.resources[unit].units or 0 for unit in units if unit in model.resources), default=0)
    lists: list[tuple[KeyPath, tuple[TileSchema, ...]]] = [(("matrix", "tiles"), matrix.tiles)]
    lists += [(("matrix", "gemm_variants", name, "tiles"), each.tiles) for name, each in matrix.gemm_variants.items()]
    for path, tiles in lists:
        needs = [(-(-BUFFERS * (tile.m + tile.n) * tile.k_bytes // tile.cores), tile) for tile in tiles]
        if not needs or any(need <= matrix.operand_buffer_bytes and tile.cores <= cores for need, tile in needs):
            continue
        room: KeyPath = ("matrix", "operand_buffer_bytes")
        need, tile = min(needs, key=lambda pair: pair[0])
        rule = f"no tile fits; the one that takes least, {tile.m}x{tile.n} with k_bytes {tile.k_bytes}, needs"
        if need <= matrix.operand_buffer_bytes:
            rule, got = f"{rule} {tile.cores} cores", f"{cores}"
            room = ("resources", units[0], "units")
        else:
            got = f"{matrix.operand_buffer_bytes} ({dotted(room)})"
            rule = f"{rule} {need} bytes of operand buffers per core"
        yield facts.problem(_said_last(facts.document, path, room), f"{rule}, got {got}")


def _said_last(document: Document, *paths: KeyPath) -> KeyPath:
    """Of values that do not go together the one to blame: that of an edit, else of the file itself, else the first."""

    def distance(path: KeyPath) -> int:
        source = document.where(path)[0]
        return 0 if source == SET else 1 if source == document.source else 2

    return min(paths, key=distance)


def schema_device() -> dict[str, Any]:
    """The JSON schema of a device file; every value may also be a fact."""
    schema = described(DeviceSchema.model_json_schema(), vars(device_schema).values())
    levels = ", ".join(f"{letter} {meaning}" for letter, meaning in CONFIDENCE.items())
    notes: dict[str, dict[str, Any]] = {
        "source": {"type": "string", "description": "where the value is from, for readers of results"},
        "confidence": {"enum": list(CONFIDENCE), "description": f"how sure it is: {levels}"},
    }
    for model in (schema, *schema.get("$defs", {}).values()):
        for key, entry in model.get("properties", {}).items():
            model["properties"][key] = or_fact(entry, notes)
    return extensible(schema)


def _source_notes(model: DeviceSchema, facts: Unwrapped) -> Iterator[SourceNote]:
    """Where every number and every policy comes from, defaults of the schema included."""
    for path, value in _leaves(model.model_dump()):
        is_number = isinstance(value, int | float)
        if not is_number and facts.note(path, "source") is None:
            continue
        if facts.document.get(path) is None:
            yield SourceNote(dotted(path), str(value), "default of the schema", "A")
        elif facts.is_set(path):
            yield SourceNote(dotted(path), facts.text(path), ON_COMMAND_LINE, "A")
        else:
            source = facts.note(path, "source") or NOT_STATED
            yield SourceNote(dotted(path), facts.text(path), source, facts.note(path, "confidence") or "U")


def _leaves(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    """Every scalar but null with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    elif value is not None:
        yield path, value


@dataclass(slots=True)
class _Build:
    """Puts facts and calibration of a file together into the records timing uses."""

    file: DeviceSchema
    name: str
    title: str
    sources: tuple[SourceNote, ...]
    refused: list[ParameterError] = field(default_factory=list)
    """What the records refuse, by the path in the file."""

    def device(self) -> Device | None:
        """The device, or None if a record refuses something."""
        try:
            device = self._device()
        except ParameterError as error:
            self.refused.append(error)
        return None if self.refused else device

    def _device(self) -> Device:
        file, calibration = self.file, self.file.calibration
        return Device(
            name=self.name,
            title=self.title,
            clock_hz=file.clock_hz,
            matrix=self.matrix(),
            vector=VectorUnit(
                cores=self.cores(file.stages.stream, "vector"),
                elements_per_cycle=file.vector.elements_per_cycle.model_dump(),
                reduction_cycles=calibration.reduction_cycles,
                piece_bytes=file.vector.piece_bytes,
            ),
            resources={name: self.resource(name, resource) for name, resource in file.resources.items()},
            paths={
                name: Path(name, path.resources, path.bytes_per_cycle or 0.0, path.latency_cycles)
                for name, path in file.paths.items()
            },
            gemm_stages=_stages(file.stages.gemm),
            stream_stages=_stages(file.stages.stream),
            levels=tuple(self.level(name, level) for name, level in file.levels.items()),
            memory_bytes=file.memory.bytes,
            memory_resource=file.memory.resource,
            cache_bytes=file.cache_bytes,
            launch_seconds=calibration.launch_seconds,
            collective_launch_seconds=calibration.collective_launch_seconds,
            matrix_formats=frozenset(file.matrix.formats),
            any_operand_layout=file.matrix.any_operand_layout,
            native_scaling=tuple((native.columns, native.scale_format) for native in file.matrix.native_scaling),
            promotion=PromotionFact(
                fma_elements_per_cycle=file.promotion.fma_elements_per_cycle,
                path=file.promotion.path or "",
                units=file.promotion.units,
                largest_tile_elements=file.promotion.largest_tile_elements,
                outer_scale_elements_per_cycle=file.promotion.outer_scale_elements_per_cycle,
                kernel=file.promotion.kernel,
            ),
            gemm_variants={
                name: GemmVariant(_tiles(variant.tiles), variant.promotion, variant.accumulators)
                for name, variant in file.matrix.gemm_variants.items()
            },
            gemm_holds=file.holds.gemm,
            stream_holds=file.holds.stream,
            attention_fraction=calibration.attention_fraction.model_dump(),
            notes=file.notes,
            sources=self.sources,
        )

    def matrix(self) -> MatrixUnit:
        """The matrix cores."""
        matrix = self.file.matrix
        return MatrixUnit(
            cores=self.cores(self.file.stages.gemm, "matrix"),
            macs_per_cycle=dict(matrix.macs_per_cycle),
            issue_cycles=matrix.issue_cycles,
            sustained_fraction=dict(self.file.calibration.sustained_fraction),
            tiles=_tiles(matrix.tiles),
            accumulator_bytes=matrix.accumulator_bytes,
            operand_buffer_bytes=matrix.operand_buffer_bytes,
            scales_share_accumulator=matrix.scales_share_accumulator,
            epilogue_overlaps=matrix.epilogue_overlaps,
            scale_load_bytes_per_cycle=matrix.scale_load_bytes_per_cycle,
            scale_copies=matrix.scale_copies,
            power_fraction=dict(self.file.calibration.power_fraction),
            tile_cycles=self.file.calibration.tile_cycles,
        )

    def resource(self, name: str, resource: ResourceSchema) -> Resource:
        """A resource with its achieved shares."""
        achieved = self.file.calibration.achieved_fraction.get(name)
        try:
            return Resource(
                name=name,
                bytes_per_second=resource.bytes_per_second or 0.0,
                units=resource.units or 0,
                policy=resource.policy,
                achieved_fraction={} if achieved is None else achieved.model_dump(exclude_none=True),
            )
        except ParameterError as error:
            self.refused.append(ParameterError(f"resources.{name}.{error.field}", error.message))
            return Resource(name, units=1)

    def level(self, name: str, level: LevelSchema) -> Level:
        """A level with its achieved share and latency."""
        calibration = self.file.calibration.levels[name]
        return Level(
            name=name,
            ranks=level.ranks,
            resource=level.resource,
            achieved_fraction=calibration.achieved_fraction,
            latency_seconds=calibration.latency_seconds,
            cores_held=level.cores_held,
            memory_bytes_per_link_byte=level.memory_bytes_per_link_byte,
        )

    def cores(self, stages: tuple[GemmStageSchema, ...] | tuple[StreamStageSchema, ...], work: str) -> int:
        """Cores of the unit that does the main work of a kernel family."""
        (unit,) = (stage.unit for stage in stages if stage.unit is not None and work in stage.moves)
        return self.file.resources[unit].units or 0


def _stages(stages: tuple[GemmStageSchema, ...] | tuple[StreamStageSchema, ...]) -> tuple[StageFact, ...]:
    return tuple(StageFact(stage.name, stage.moves, stage.path or "", stage.unit or "") for stage in stages)


def _tiles(tiles: tuple[TileSchema, ...]) -> tuple[Tile, ...]:
    return tuple(Tile(tile.m, tile.n, tile.k_bytes, tile.cores, tile.cluster_m, tile.cluster_n) for tile in tiles)
