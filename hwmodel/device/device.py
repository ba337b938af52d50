"""A device as plain facts: units, memories, named resources, paths, links and what its software can do with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hwmodel.errors import ParameterError

POLICIES = ("fair", "proportional")
GEMM_MOVES = ("a", "b", "scales", "output", "accumulator", "matrix", "vector")
STREAM_MOVES = ("read", "write", "vector")
PROMOTIONS = ("two_group", "serial")
"""Kernels for a broken K loop: two groups that alternate, or a matrix unit that waits for the vector lanes."""


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that several running kernels share.

    Either a data rate for the whole device (``bytes_per_second``) or occupancy of a kind of compute unit
    (``units`` of them, each busy or not).
    """

    name: str
    bytes_per_second: float = 0.0
    units: int = 0
    policy: str = "fair"
    achieved_fraction: Mapping[str, float] = field(default_factory=dict)
    """Calibration: access kind -> share of ``bytes_per_second`` that well-written kernels reach.

    Streams have the kinds 'contiguous', 'transpose' and 'latency', other kernels 'gemm' and 'attention'. A kind not
    listed is as 'contiguous', and that is 1 if not listed.
    """

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ParameterError("policy", f"must be one of {', '.join(POLICIES)}, got '{self.policy}'")
        if 0 < self.bytes_per_second < 1:
            raise ParameterError("bytes_per_second", f"must be >= 1, got {self.bytes_per_second}")
        if (self.bytes_per_second > 0) == (self.units > 0):
            raise ParameterError("bytes_per_second", "exactly one of bytes_per_second and units must be > 0")


@dataclass(frozen=True, slots=True)
class Path:
    """A way data takes between memories: its own rate per core, and the shared resources it passes."""

    name: str
    resources: tuple[str, ...] = ()
    bytes_per_cycle: float = 0.0
    """Rate of one core; 0 where only the shared resources limit it."""
    latency_cycles: int = 0


@dataclass(frozen=True, slots=True)
class StageFact:
    """One stage of a kernel family: what moves or works, and over which path or on which unit.

    Exactly one of ``path`` and ``unit``. ``moves`` is what the stage handles: a, b, scales, output, accumulator
    (GEMM), read, write (stream); for a unit: 'matrix' or 'vector' work. Listed twice, it passes twice. In a GEMM,
    a, b, scales and matrix belong to the K loop, output, accumulator and vector to the epilogue: no stage mixes them.
    """

    name: str
    moves: tuple[str, ...]
    path: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        if bool(self.path) == bool(self.unit):
            raise ParameterError(f"stages.{self.name}", "must name exactly one of path and unit")
        works = ("matrix", "vector")
        known = works if self.unit else tuple(move for move in (*GEMM_MOVES, *STREAM_MOVES) if move not in works)
        for move in self.moves:
            if move not in known:
                raise ParameterError(
                    f"stages.{self.name}.moves", f"must be among {', '.join(dict.fromkeys(known))}, got '{move}'"
                )


@dataclass(frozen=True, slots=True)
class Tile:
    """An output tile a GEMM kernel can run, with the k extent of one step in bytes of the wider operand."""

    m: int
    n: int
    k_bytes: int
    cores: int = 1
    """Cores that work on one tile together."""
    cluster_m: int = 1
    """Tiles below one another that run at the same time and read their columns from the cache once for all."""
    cluster_n: int = 1
    """Tiles beside one another that run at the same time and read their rows from the cache once for all."""

    @property
    def cluster(self) -> int:
        """Tiles that run at the same time and share what they read."""
        return self.cluster_m * self.cluster_n


@dataclass(frozen=True, slots=True)
class MatrixUnit:
    """The matrix cores."""

    cores: int
    macs_per_cycle: Mapping[str, int]
    """Per core, by number format."""
    issue_cycles: int
    """Fixed cycles per matrix instruction block (one k step)."""
    sustained_fraction: Mapping[str, float]
    """Calibration: share of peak rate that a kernel's main loop sustains, by format, 1 if not stated."""
    tiles: tuple[Tile, ...]
    accumulator_bytes: int
    """Accumulator storage per core; two tiles in it hide the epilogue."""
    operand_buffer_bytes: int
    """On-chip memory per core for operand stages."""
    scales_share_accumulator: bool
    """Block scales are held in the accumulator memory (tensor memory), so they take room from tiles."""
    epilogue_overlaps: bool
    """A second accumulator buffer lets the epilogue run under the next tile's main loop."""
    scale_load_bytes_per_cycle: float = 0.0
    """Rate per core at which the matrix pipe itself loads native block scales, in turn with its products; 0 where they
    arrive beside them."""
    scale_copies: int = 1
    """Copies of each block scale in the accumulator memory, where ``scales_share_accumulator`` (one per lane group)."""
    power_fraction: Mapping[str, float] = field(default_factory=dict)
    """Calibration: share of peak rate that power allows a whole kernel on all cores, by format, 1 if not stated."""
    tile_cycles: int = 0
    """Calibration: cycles of each tile that nothing hides, such as its start and hand-over to the epilogue."""


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """The vector cores (on a GPU the ordinary lanes of the same cores)."""

    cores: int
    elements_per_cycle: Mapping[str, float]
    """Per core, by instruction class."""
    reduction_cycles: int
    """Cross-core reduction at the end of a whole-tensor amax or norm."""
    piece_bytes: int = 0
    """Bytes a core moves at a time: less data than that per core leaves cores idle. 0: data flows without pieces."""


@dataclass(frozen=True, slots=True)
class PromotionFact:
    """How partial sums are scaled outside the matrix unit where block scales break the K loop."""

    fma_elements_per_cycle: float
    """Multiply-adds per cycle of the vector lanes that serve one matrix core."""
    path: str = ""
    """Path from accumulator to vector lanes, '' where they share registers."""
    units: tuple[str, ...] = ()
    """Resources held while a promoting kernel runs (vector cores on an NPU)."""
    largest_tile_elements: int = 0
    """Largest m*n of a tile once two accumulators are live; 0 for no limit."""
    outer_scale_elements_per_cycle: float = 0.0
    """Rate at which those lanes multiply a row's scale by a column's, where both operands have one for each, in turn
    with the multiply-adds; 0 where that hides."""
    kernel: str = PROMOTIONS[0]
    """How it runs unless the software set names a kernel: 'two_group' or 'serial'."""

    def __post_init__(self) -> None:
        if self.kernel not in PROMOTIONS:
            raise ParameterError("promotion.kernel", f"must be one of {', '.join(PROMOTIONS)}, got '{self.kernel}'")


@dataclass(frozen=True, slots=True)
class GemmVariant:
    """A GEMM kernel a software set may name: which tiles it has and how it runs a broken K loop."""

    tiles: tuple[Tile, ...] = ()
    """Its own tiles; empty for the device's list."""
    promotion: str = ""
    """'two_group' or 'serial'; '' for the device's own."""
    accumulators: int = 0
    """Most accumulators it keeps per core (1 exposes the epilogue); 0 for as many as fit."""

    def __post_init__(self) -> None:
        if self.promotion not in ("", *PROMOTIONS):
            raise ParameterError("promotion", f"must be one of {', '.join(PROMOTIONS)}, got '{self.promotion}'")
        if self.accumulators < 0:
            raise ParameterError("accumulators", f"must be >= 0, got {self.accumulators}")


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the interconnect: groups that fit in ``ranks`` devices stay on it."""

    name: str
    ranks: int
    """Devices joined by this level (the last level may be larger than any job)."""
    resource: str
    """Shared resource (link) that transfers at this level use."""
    achieved_fraction: float
    latency_seconds: float
    """Per hop or step of a collective."""
    cores_held: int = 0
    """Matrix cores that a collective kernel at this level holds while it runs."""
    memory_bytes_per_link_byte: float = 0.0
    """Device-memory traffic per byte sent (received data written, forwarded data read)."""


@dataclass(frozen=True, slots=True)
class SourceNote:
    """Where a number of the device file comes from."""

    path: str
    value: str
    source: str
    confidence: str


@dataclass(frozen=True, slots=True)
class Device:
    """A device: all that timing knows about a machine. Built only by ``config`` from YAML, or by hand in tests."""

    name: str
    title: str
    clock_hz: int
    matrix: MatrixUnit
    vector: VectorUnit
    resources: Mapping[str, Resource]
    paths: Mapping[str, Path]
    gemm_stages: tuple[StageFact, ...]
    stream_stages: tuple[StageFact, ...]
    levels: tuple[Level, ...]
    memory_bytes: int
    memory_resource: str
    """Resource whose capacity is ``memory_bytes`` and that every kernel's compulsory bytes pass (HBM)."""
    cache_bytes: int
    launch_seconds: float
    """Time from the end of one kernel to the start of the next dependent one, kernel launched ahead of time."""
    collective_launch_seconds: float
    matrix_formats: frozenset[str]
    any_operand_layout: bool
    native_scaling: tuple[tuple[int, str], ...]
    promotion: PromotionFact
    gemm_holds: tuple[str, ...] = ()
    """Unit resources a matrix kernel occupies while it runs."""
    stream_holds: tuple[str, ...] = ()
    """Unit resources a vector kernel occupies while it runs."""
    attention_fraction: Mapping[str, float] = field(default_factory=dict)
    """Calibration: share of matrix peak that attention reaches, by 'forward' and 'backward'."""
    gemm_variants: Mapping[str, GemmVariant] = field(default_factory=dict)
    """GEMM kernels that software sets may name, beside the built-in 'two_group' and 'serial'."""
    notes: tuple[str, ...] = ()
    sources: tuple[SourceNote, ...] = ()

    def __post_init__(self) -> None:
        for level in self.levels:
            if level.cores_held >= self.matrix.cores:
                raise ParameterError(
                    f"levels.{level.name}.cores_held",
                    f"must be < the {self.matrix.cores} cores of the device, got {level.cores_held}",
                )
        for path in self.paths.values():
            for name in path.resources:
                self._known(f"paths.{path.name}.resources", name)
        for name in (*self.gemm_holds, *self.stream_holds, self.memory_resource, *self.promotion.units):
            self._known("resources", name)
        for level in self.levels:
            self._known(f"levels.{level.name}.resource", level.resource)
        for stage in (*self.gemm_stages, *self.stream_stages):
            if stage.path and stage.path not in self.paths:
                raise ParameterError(f"stages.{stage.name}.path", f"unknown path '{stage.path}'")

    def _known(self, field_path: str, name: str) -> None:
        if name not in self.resources:
            raise ParameterError(field_path, f"unknown resource '{name}'; known: {', '.join(sorted(self.resources))}")
