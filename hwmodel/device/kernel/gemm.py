"""GEMM: tiles over cores, k steps through the device's stages, partial sums, epilogue, and reuse in the cache."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING

from hwmodel.device.device import PROMOTIONS, Device, GemmVariant, StageFact, Tile
from hwmodel.device.kernel.facts import (
    achieved_rates,
    matrix_rate,
    moved,
    path_cycles,
    sustained_fraction,
    traffic,
    whole_cycles,
)
from hwmodel.device.kernel.pipeline import Phase, Pipeline, Stage
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
    """How operands reach the matrix unit on one path: times each passes, and rates per core and in all."""

    a: int
    b: int
    bytes_per_cycle: float
    bytes_per_second: float
    """Of the slowest shared resource on the path, device memory aside."""


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
            feeds=tuple(_feed(device, fact, dict(rates)) for fact in loop if fact.path),
        )


def _feed(device: Device, fact: StageFact, rates: dict[str, int]) -> _Feed:
    """The path of a stage, as far as operands go."""
    path = device.paths[fact.path]
    shared = min((rates[name] for name in path.resources if name != device.memory_resource), default=inf)
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
    promotion = (variant.promotion or PROMOTIONS[0]) if demand.promote_every else ""
    rate, rated_as = matrix_rate(device, demand.a_format, demand.b_format)
    reached = rate * sustained_fraction(device, rated_as)
    found = []
    for tile in variant.tiles or device.matrix.tiles:
        step = _step(demand, tile)
        accumulators = _accumulators(demand, device, tile, step)
        if not _fits(demand, device, tile, step=step, accumulators=accumulators, promotion=promotion):
            continue
        teams = cores // tile.cores
        tiles = demand.batch * ceil_div(demand.m, tile.m) * ceil_div(demand.n, tile.n)
        for splits in SPLITS:
            k = ceil_div(demand.k, splits)
            if teams < 1 or (splits > 1 and (tiles * splits > teams or k < tile.k_bytes)):
                break
            cycles = whole_cycles(tile.m * tile.n * k / (reached * tile.cores))
            cycles += ceil_div(k, step) * device.matrix.issue_cycles
            floor = _floor(demand, facts, tile, k=k, waves=ceil_div(tiles * splits, teams), matrix_cycles=cycles)
            kept = min(accumulators, variant.accumulators) if variant.accumulators else accumulators
            found.append(Choice(floor, tile, splits, k, step, kept, cycles, promotion))
    if not found:
        raise ParameterError(
            "matrix.tiles", f"device '{device.name}' has no tile that fits this GEMM on {cores} of its cores"
        )
    return sorted(found, key=lambda choice: choice.floor_picoseconds)


def _floor(demand: Gemm, facts: GemmFacts, tile: Tile, *, k: int, waves: int, matrix_cycles: int) -> int:
    """Picoseconds that no kernel with this tile falls below: matrix work and each feed of operands alone."""
    a_bytes, b_bytes = FORMATS.get(demand.a_format).bits / 8, FORMATS.get(demand.b_format).bits / 8
    a = min(tile.m, demand.m) * k * a_bytes
    b = min(tile.n, demand.n) * k * b_bytes
    all_a = demand.batch * demand.m * demand.k * a_bytes * ceil_div(demand.n, tile.n)
    all_b = demand.batch * demand.n * demand.k * b_bytes * ceil_div(demand.m, tile.m)
    cycles, seconds = float(matrix_cycles), 0.0
    for feed in facts.feeds:
        cycles = max(cycles, (feed.a * a + feed.b * b) / (feed.bytes_per_cycle * tile.cores))
        seconds = max(seconds, (feed.a * all_a + feed.b * all_b) / feed.bytes_per_second)
    slowest = max(waves * cycles / facts.device.clock_hz, seconds)
    # Floats round; a floor must not lie above by a hair.
    return facts.floor_picoseconds + int(slowest * PICOSECONDS_PER_SECOND * (1 - 1e-9))


def build(demand: Gemm, facts: GemmFacts, cores: int, choice: Choice) -> Pipeline:
    """The kernel that ``choice`` stands for."""
    device = facts.device
    tile, splits = choice.tile, choice.splits
    teams = cores // tile.cores
    amounts = _Amounts.of(demand, device, choice, teams)
    main = Phase(
        name="main",
        tiles=amounts.tiles,
        teams=teams,
        extent=choice.k,
        step=choice.step,
        loop=tuple(_loop_stage(fact, device, choice, amounts) for fact in facts.loop),
        breaks=ceil_div(choice.k, demand.promote_every) if demand.promote_every else 0,
        promotion=_promotion(demand, device, choice, amounts.tiles),
        promotion_overlaps=choice.promotion == "two_group",
        epilogue=_epilogue(demand, facts, choice, amounts),
        epilogue_overlaps=device.matrix.epilogue_overlaps and choice.accumulators >= BUFFERS,
        buffers=BUFFERS,
        accumulators=min(BUFFERS, choice.accumulators),
    )
    phases = (main,) if splits == 1 else (main, _combine(demand, device, cores, splits))
    named = f"{tile.m}x{tile.n}" + (f", {tile.cores} cores" if tile.cores > 1 else "")
    return Pipeline(
        name=named + (f", {splits} pieces of k" if splits > 1 else ""),
        clock_hz=device.clock_hz,
        phases=phases,
        rates=facts.rates,
        holds=facts.holds,
        launch_picoseconds=facts.launch_picoseconds,
    )


@dataclass(frozen=True, slots=True)
class _Amounts:
    """Bytes by what is moved: of one tile, of all tiles on paths, and of all tiles on device memory."""

    tiles: int
    tile: dict[str, int]
    passing: dict[str, int]
    memory: dict[str, int]

    @classmethod
    def of(cls, demand: Gemm, device: Device, choice: Choice, teams: int) -> _Amounts:
        """Bytes of ``demand`` in the tiles of ``choice``."""
        tile, splits = choice.tile, choice.splits
        rows, columns = ceil_div(demand.m, tile.m), ceil_div(demand.n, tile.n)
        m, n = min(tile.m, demand.m), min(tile.n, demand.n)
        a_bits, b_bits = FORMATS.get(demand.a_format).bits, FORMATS.get(demand.b_format).bits
        a = demand.batch * ceil_div(demand.m * demand.k * a_bits, 8)
        b = demand.batch * ceil_div(demand.k * demand.n * b_bits, 8)
        a_scales, b_scales = demand.a_scale_bytes, demand.b_scale_bytes
        out = demand.batch * splits * demand.m * demand.n * ACCUMULATOR_BYTES
        if splits == 1:
            out = demand.write_bytes * (2 if demand.accumulates else 1)
        a_loads, b_loads = _loads(
            a + a_scales, b + b_scales, demand=demand, device=device, tile=tile, wave=max(1, teams // splits)
        )
        scales = ceil_div(a_scales * m, demand.batch * demand.m * splits)
        scales += ceil_div(b_scales * n, demand.batch * demand.n * splits)
        return cls(
            tiles=demand.batch * rows * columns * splits,
            tile={
                "a": ceil_div(m * choice.k * a_bits, 8),
                "b": ceil_div(n * choice.k * b_bits, 8),
                "scales": scales,
                "output": ceil_div(out * m * n, demand.batch * splits * demand.m * demand.n),
                "accumulator": tile.m * tile.n * ACCUMULATOR_BYTES,
            },
            passing={
                "a": a * columns,
                "b": b * rows,
                "scales": a_scales * columns + b_scales * rows,
                "output": out,
                "accumulator": demand.batch * splits * demand.m * demand.n * ACCUMULATOR_BYTES,
            },
            memory={
                "a": int(a * a_loads),
                "b": int(b * b_loads),
                "scales": int(a_scales * a_loads) + int(b_scales * b_loads),
                "output": out,
            },
        )


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


def _loads(a: int, b: int, *, demand: Gemm, device: Device, tile: Tile, wave: int) -> tuple[float, float]:
    """How often each operand comes from device memory.

    The ``wave`` tiles that run together form a rectangle whose sides are near-square in bytes; tiles of one wave share
    rows and columns through the cache. From wave to wave the cache keeps both operands, or a panel of one of them
    while the other streams past, if they fit; or nothing.
    """
    rows, columns = ceil_div(demand.m, tile.m), ceil_div(demand.n, tile.n)
    if not device.cache_bytes:
        return float(columns), float(rows)
    if a + b <= device.cache_bytes * demand.batch:
        return 1.0, 1.0
    a_row, b_column = a / (demand.batch * rows), b / (demand.batch * columns)
    tall = min(float(rows), max(1.0, sqrt(wave * b_column / a_row))) if a else 1.0
    wide = min(float(columns), max(1.0, wave / tall))
    tall = min(float(rows), max(1.0, wave / wide))
    options = [(columns / wide, rows / tall)]
    kept_columns = min(float(wave), float(columns), device.cache_bytes / b_column) if b else float(columns)
    kept_rows = min(float(wave), float(rows), device.cache_bytes / a_row) if a else float(rows)
    if kept_columns >= 1:
        options.append((columns / kept_columns, 1.0))
    if kept_rows >= 1:
        options.append((1.0, rows / kept_rows))
    return min(options, key=lambda loads: a * loads[0] + b * loads[1])


def _loop_stage(fact: StageFact, device: Device, choice: Choice, amounts: _Amounts) -> Stage:
    """A stage of the K loop."""
    if fact.unit:
        return Stage(fact.name, "matrix", choice.matrix_cycles)
    return _path_stage(fact, device, choice.tile, amounts)


def _path_stage(fact: StageFact, device: Device, tile: Tile, amounts: _Amounts) -> Stage:
    """A stage that moves bytes."""
    path = device.paths[fact.path]
    count = moved(fact, amounts.tile)
    return Stage(
        name=fact.name,
        place=path.name,
        cycles=path_cycles(path, count, tile.cores),
        bytes=count,
        latency_cycles=path.latency_cycles,
        traffic=traffic(device, path, moved(fact, amounts.passing), moved(fact, amounts.memory)),
    )


def _lanes_cycles(device: Device, elements: int, cores: int) -> int:
    """Cycles in which the vector lanes beside ``cores`` matrix cores apply one multiply-add to ``elements``."""
    rate = device.promotion.fma_elements_per_cycle
    if rate <= 0:
        raise ParameterError("promotion.fma_elements_per_cycle", f"must be > 0, got {rate}")
    return whole_cycles(elements / (rate * cores))


def _accumulator_stages(name: str, device: Device, tile: Tile, *, tiles: int, times: int, scalings: int) -> list[Stage]:
    """The accumulator to the vector lanes ``times`` per tile; ``scalings`` multiply-adds per element each time."""
    stages = []
    if device.promotion.path:
        path = device.paths[device.promotion.path]
        count = tile.m * tile.n * ACCUMULATOR_BYTES
        stages.append(
            Stage(
                name=f"{name} read",
                place=path.name,
                cycles=times * path_cycles(path, count, tile.cores),
                bytes=times * count,
                latency_cycles=path.latency_cycles,
                traffic=traffic(device, path, tiles * times * count, tiles * times * count),
            )
        )
    cycles = times * _lanes_cycles(device, scalings * tile.m * tile.n, tile.cores)
    stages.append(Stage(name, "vector", cycles, holds=device.promotion.units))
    return stages


def _promotion(demand: Gemm, device: Device, choice: Choice, tiles: int) -> tuple[Stage, ...]:
    """Scaling and adding up of partial sums, where block scales break the K loop."""
    if not demand.promote_every:
        return ()
    breaks = ceil_div(choice.k, demand.promote_every)
    return tuple(_accumulator_stages("promotion", device, choice.tile, tiles=tiles, times=breaks, scalings=1))


def _epilogue(demand: Gemm, facts: GemmFacts, choice: Choice, amounts: _Amounts) -> tuple[Stage, ...]:
    """What happens once per tile after its loop."""
    device, tile = facts.device, choice.tile
    stages = []
    for fact in facts.epilogue:
        if fact.unit:
            stages.append(Stage(fact.name, "vector", _lanes_cycles(device, tile.m * tile.n, tile.cores)))
        else:
            stages.append(_path_stage(fact, device, tile, amounts))
    if demand.epilogue_scale_vectors:
        stages += _accumulator_stages(
            "scaling", device, tile, tiles=amounts.tiles, times=1, scalings=demand.epilogue_scale_vectors
        )
    return tuple(stages)


def _combine(demand: Gemm, device: Device, cores: int, splits: int) -> Phase:
    """Reads the partial sums of all pieces of k on all cores, adds them up and writes the output."""
    partial = demand.batch * splits * demand.m * demand.n * ACCUMULATOR_BYTES
    held = demand.write_bytes if demand.accumulates else 0
    stages = []
    for fact in device.gemm_stages:
        reads = "a" in fact.moves and device.memory_resource in device.paths[fact.path].resources
        if not reads and "output" not in fact.moves:
            continue
        path = device.paths[fact.path]
        count = partial + held if reads else demand.write_bytes
        stages.append(
            Stage(
                name="partial sums" if reads else fact.name,
                place=path.name,
                cycles=path_cycles(path, ceil_div(count, cores), 1),
                bytes=ceil_div(count, cores),
                latency_cycles=path.latency_cycles,
                traffic=traffic(device, path, count, count),
            )
        )
    extent = max(1, ceil_div(partial, cores))
    return Phase("combine", tiles=cores, teams=cores, extent=extent, step=extent, loop=tuple(stages))
