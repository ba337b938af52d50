"""GEMM kernels to choose from: tiles that fit, pieces of k, and what each takes at least."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from hwmodel.device.device import PROMOTIONS, Device, GemmVariant, StageFact, Tile
from hwmodel.device.kernel.facts import achieved_rates, reached_rate, whole_cycles
from hwmodel.device.sharing import FULL
from hwmodel.errors import ParameterError
from hwmodel.formats import FORMATS
from hwmodel.units import PICOSECONDS_PER_SECOND, ceil_div, seconds_to_picoseconds

if TYPE_CHECKING:
    from hwmodel.graph.demand import Gemm

ACCUMULATOR_BYTES = 4
"""Partial sums are fp32."""
BUFFERS = 2
"""Operands of one step arrive while the step before is worked on."""
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Pieces of k tried where tiles alone leave cores idle, as long as each has as many elements as a step has bytes.

A fixed list, so that more cores only add candidates.
"""

LOOP_MOVES = ("a", "b", "scales", "matrix")


@dataclass(frozen=True, slots=True)
class _Feed:
    """How operands reach the matrix unit, or outputs leave, on one path: times each passes, and the path's rates."""

    a: int
    b: int
    bytes_per_cycle: float
    """Of one core."""
    bytes_per_second: float
    """Of the slowest shared resource, except that operands come from device memory less often than they pass."""


@dataclass(frozen=True, slots=True)
class GemmFacts:
    """What all GEMM kernels of a device have in common."""

    device: Device
    loop: tuple[StageFact, ...]
    epilogue: tuple[StageFact, ...]
    rates: tuple[tuple[str, int], ...]
    holds: tuple[tuple[str, int], ...]
    launch_picoseconds: int
    floor_picoseconds: int
    """Launch and latencies, which every kernel has."""
    feeds: tuple[_Feed, ...]
    stores: tuple[_Feed, ...]

    @classmethod
    def of(cls, device: Device) -> GemmFacts:
        """Those of ``device``."""
        loop = tuple(fact for fact in device.gemm_stages if set(LOOP_MOVES) & set(fact.moves))
        paths = [device.paths[fact.path] for fact in device.gemm_stages if fact.path]
        latency = sum(path.latency_cycles for path in paths)
        if device.promotion.path:
            paths.append(device.paths[device.promotion.path])
        launch = seconds_to_picoseconds(device.launch_seconds)
        rates = achieved_rates(device, paths, "gemm")
        return cls(
            device=device,
            loop=loop,
            epilogue=tuple(fact for fact in device.gemm_stages if fact not in loop),
            rates=rates,
            holds=tuple((name, FULL) for name in device.gemm_holds),
            launch_picoseconds=launch,
            floor_picoseconds=launch + latency * PICOSECONDS_PER_SECOND // device.clock_hz,
            stores=tuple(_feed(device, fact, dict(rates)) for fact in device.gemm_stages if "output" in fact.moves),
            feeds=tuple(_feed(device, fact, dict(rates)) for fact in loop if fact.path),
        )


def _feed(device: Device, fact: StageFact, rates: dict[str, int]) -> _Feed:
    """What is known of a stage before a tile is chosen."""
    path = device.paths[fact.path]
    passed = (name for name in path.resources if name != device.memory_resource or "output" in fact.moves)
    shared = min((rates[name] for name in passed), default=inf)
    return _Feed(fact.moves.count("a"), fact.moves.count("b"), path.bytes_per_cycle or inf, shared)


@dataclass(frozen=True, slots=True)
class Choice:
    """A tile and a number of pieces of k."""

    floor_picoseconds: int
    """What its matrix work and its operands' ways to the unit take at least."""
    tile: Tile
    splits: int
    k: int
    """Elements of k of one piece."""
    step: int
    """Elements of k of one step."""
    accumulators: int
    """Accumulators of this tile that a core has room for."""
    matrix_cycles: int
    """Of one tile."""
    promotion: str = ""
    """How the broken K loop runs, '' where it is unbroken."""


def choices(demand: Gemm, facts: GemmFacts, cores: int) -> list[Choice]:
    """Every way to run ``demand`` on ``cores`` cores, those with the lowest floor first.

    Raises:
        ParameterError: no rate for a format, an unknown kernel, or no tile that fits.
    """
    device = facts.device
    variant = _variant(demand, device)
    promotion = (variant.promotion or device.promotion.kernel) if demand.promote_every else ""
    reached = reached_rate(device, device.matrix.sustained_fraction, (demand.a_format, demand.b_format))
    found = []
    for tile in variant.tiles or device.matrix.tiles:
        step = _step(demand, tile)
        accumulators = _accumulators(demand, device, tile, step)
        if not _fits(demand, device, tile, step=step, accumulators=accumulators, promotion=promotion):
            continue
        scale_cycles = _scale_load_cycles(demand, device, tile, step)
        teams = teams_of(cores, tile)
        tiles = demand.batch * _blocks(demand, tile)
        for splits in SPLITS:
            k = ceil_div(demand.k, splits)
            if teams < 1 or (splits > 1 and (tiles * splits > teams or k < tile.k_bytes)):
                break
            cycles = whole_cycles(tile.m * tile.n * k / (reached * tile.cores))
            cycles += ceil_div(k, step) * (device.matrix.issue_cycles + scale_cycles)
            kept = min(accumulators, variant.accumulators) if variant.accumulators else accumulators
            waves = ceil_div(tiles * splits, teams)
            exposed = kept < BUFFERS or not device.matrix.epilogue_overlaps
            floor = _floor(demand, facts, tile, k=k, waves=waves, matrix_cycles=cycles, exposed=exposed)
            found.append(Choice(floor, tile, splits, k, step, kept, cycles, promotion))
    if not found:
        raise ParameterError("matrix.tiles", _no_tile(demand, device, cores, promotion))
    return sorted(found, key=lambda choice: choice.floor_picoseconds)


def _no_tile(demand: Gemm, device: Device, cores: int, promotion: str) -> str:
    """What no tile of the device has room for."""
    kept = "two accumulators" if promotion == "two_group" else "an accumulator"
    scales = " and scales" if demand.a_scale_bytes + demand.b_scale_bytes else ""
    return (
        f"device '{device.name}' has no tile for {demand.a_format} by {demand.b_format} on {cores} cores: each needs "
        f"two steps of operands{scales} in operand_buffer_bytes={device.matrix.operand_buffer_bytes} and {kept} in "
        f"accumulator_bytes={device.matrix.accumulator_bytes} of a core"
    )


def _floor(demand: Gemm, facts: GemmFacts, tile: Tile, *, k: int, waves: int, matrix_cycles: int, exposed: bool) -> int:
    """Picoseconds that no kernel with this tile falls below: fill, matrix work or a feed, then an exposed store."""
    a_bytes, b_bytes = FORMATS.get(demand.a_format).bits / 8, FORMATS.get(demand.b_format).bits / 8
    a = min(tile.m, demand.m) * k * a_bytes
    b = min(tile.n, demand.n) * k * b_bytes
    rows, columns = clusters(demand, tile)
    all_a = demand.batch * demand.m * demand.k * a_bytes * columns
    all_b = demand.batch * demand.n * demand.k * b_bytes * rows
    cycles, seconds = [float(matrix_cycles)], 0.0
    for feed in facts.feeds:
        cycles.append((feed.a * a + feed.b * b) / (feed.bytes_per_cycle * tile.cores))
        seconds = max(seconds, (feed.a * all_a + feed.b * all_b) / feed.bytes_per_second)
    longest = max(cycles)
    fill = (sum(cycles) - longest) * min(1.0, _step(demand, tile) / k) / facts.device.clock_hz
    fill += waves * facts.device.matrix.tile_cycles / facts.device.clock_hz
    slowest = fill + max(waves * longest / facts.device.clock_hz, seconds)
    if exposed:
        out_bytes = min(FORMATS.get(demand.out_format).bits / 8, ACCUMULATOR_BYTES)
        out = min(tile.m, demand.m) * min(tile.n, demand.n) * out_bytes
        all_out = demand.batch * demand.m * demand.n * out_bytes
        per_cycle = min((way.bytes_per_cycle for way in facts.stores), default=inf)
        per_second = min((way.bytes_per_second for way in facts.stores), default=inf)
        slowest += max(waves * out / (per_cycle * tile.cores * facts.device.clock_hz), all_out / per_second)
    least = int(slowest * PICOSECONDS_PER_SECOND)
    # Floats round; a floor must not lie above by a hair.
    return facts.floor_picoseconds + least - (least >> 30)


def clusters(demand: Gemm, tile: Tile) -> tuple[int, int]:
    """Clusters of tiles (down the rows, along the columns) that cover the output."""
    rows = ceil_div(ceil_div(demand.m, tile.m), tile.cluster_m)
    return rows, ceil_div(ceil_div(demand.n, tile.n), tile.cluster_n)


def teams_of(cores: int, tile: Tile) -> int:
    """Tiles that ``cores`` cores work on at the same time, whole clusters only."""
    return cores // (tile.cores * tile.cluster) * tile.cluster


def _blocks(demand: Gemm, tile: Tile) -> int:
    """Tiles that take the place of one, those that fill a cluster up included."""
    rows, columns = clusters(demand, tile)
    return rows * columns * tile.cluster


def _variant(demand: Gemm, device: Device) -> GemmVariant:
    """The kernel that ``demand`` names.

    Raises:
        ParameterError: nobody knows it.
    """
    if not demand.kernel:
        return GemmVariant()
    if demand.kernel in device.gemm_variants:
        return device.gemm_variants[demand.kernel]
    if demand.kernel in PROMOTIONS:
        return GemmVariant(promotion=demand.kernel)
    known = ", ".join(sorted({*PROMOTIONS, *device.gemm_variants}))
    raise ParameterError("kernel", f"device '{device.name}' has no GEMM kernel '{demand.kernel}'; known: {known}")


def _step(demand: Gemm, tile: Tile) -> int:
    """Elements of k in one step."""
    bits = max(FORMATS.get(demand.a_format).bits, FORMATS.get(demand.b_format).bits)
    return max(1, tile.k_bytes * 8 // bits)


def _step_scale_bytes(demand: Gemm, tile: Tile, step: int) -> tuple[int, int]:
    """Bytes of block scales of a full tile in one step: (rows', columns')."""
    a = ceil_div(demand.a_scale_bytes * tile.m * step, demand.batch * demand.m * demand.k)
    b = ceil_div(demand.b_scale_bytes * tile.n * step, demand.batch * demand.n * demand.k)
    return a, b


def _scale_load_cycles(demand: Gemm, device: Device, tile: Tile, step: int) -> int:
    """Cycles of one step in which the matrix pipe loads block scales instead of multiplying."""
    rate = device.matrix.scale_load_bytes_per_cycle
    if not demand.native_block_scales or not rate:
        return 0
    # As in the accumulator memory: a core needs its own rows' scales and those of all columns.
    a, b = _step_scale_bytes(demand, tile, step)
    return whole_cycles((ceil_div(a, tile.cores) + b) / rate)


def _accumulators(demand: Gemm, device: Device, tile: Tile, step: int) -> int:
    """Accumulators of ``tile`` that fit beside the block scales of the steps in flight."""
    room = device.matrix.accumulator_bytes
    if demand.native_block_scales and device.matrix.scales_share_accumulator:
        # The rows' scales are split over the cores of a tile; every core needs those of all columns.
        a, b = _step_scale_bytes(demand, tile, step)
        room -= BUFFERS * device.matrix.scale_copies * (ceil_div(a, tile.cores) + b)
    return room * tile.cores // (tile.m * tile.n * ACCUMULATOR_BYTES)


def _fits(demand: Gemm, device: Device, tile: Tile, *, step: int, accumulators: int, promotion: str) -> bool:
    """Both operand buffers fit, and as many accumulators as the kernel must have."""
    bits = tile.m * FORMATS.get(demand.a_format).bits + tile.n * FORMATS.get(demand.b_format).bits
    buffered = ceil_div(bits * step, 8) + sum(_step_scale_bytes(demand, tile, step))
    if BUFFERS * ceil_div(buffered, tile.cores) > device.matrix.operand_buffer_bytes:
        return False
    if promotion != "two_group":
        return accumulators >= 1
    largest = device.promotion.largest_tile_elements
    return accumulators >= BUFFERS and (not largest or tile.m * tile.n <= largest * tile.cores)
