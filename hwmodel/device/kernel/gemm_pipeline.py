"""A chosen GEMM kernel as a pipeline: its K loop, broken or not, its epilogue, and reuse in the cache."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING

from hwmodel.device.kernel.facts import moved, path_cycles, reached_rate, traffic, whole_cycles
from hwmodel.device.kernel.gemm import ACCUMULATOR_BYTES, BUFFERS, clusters, teams_of
from hwmodel.device.kernel.pipeline import Phase, Pipeline, Stage
from hwmodel.errors import ParameterError
from hwmodel.formats import FORMATS
from hwmodel.units import PICOSECONDS_PER_SECOND, ceil_div

if TYPE_CHECKING:
    from hwmodel.device.device import Device, StageFact, Tile
    from hwmodel.device.kernel.gemm import Choice, GemmFacts
    from hwmodel.graph.demand import Gemm


def build(demand: Gemm, facts: GemmFacts, cores: int, choice: Choice) -> Pipeline:
    """The kernel that ``choice`` stands for."""
    device = facts.device
    tile, splits = choice.tile, choice.splits
    teams = teams_of(cores, tile)
    amounts = _Amounts.of(demand, device, choice, teams)
    overlaps = device.matrix.epilogue_overlaps and choice.accumulators >= BUFFERS
    epilogue = _epilogue(demand, facts, choice, amounts)
    if not overlaps and teams * amounts.tile["output"] <= device.cache_bytes:
        epilogue = tuple(_through_cache(stage, device.memory_resource) for stage in epilogue)
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
        epilogue=epilogue,
        epilogue_overlaps=overlaps,
        buffers=BUFFERS,
        accumulators=min(BUFFERS, choice.accumulators),
        tile_cycles=device.matrix.tile_cycles,
        least_picoseconds=_power_floor(demand, device),
    )
    phases = (main,) if splits == 1 else (main, _combine(demand, device, cores, splits))
    named = f"{tile.m}x{tile.n}" + (f", {tile.cores} cores" if tile.cores > 1 else "")
    named += f", clusters of {tile.cluster_m}x{tile.cluster_n}" if tile.cluster > 1 else ""
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
        rows, columns = clusters(demand, tile)
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
            tiles=demand.batch * rows * columns * tile.cluster * splits,
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


def _power_floor(demand: Gemm, device: Device) -> int:
    """Picoseconds below which power does not let all cores together get through the work."""
    rate = reached_rate(device, device.matrix.power_fraction, (demand.a_format, demand.b_format))
    return int(demand.macs * PICOSECONDS_PER_SECOND / (rate * device.matrix.cores * device.clock_hz))


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


def _through_cache(stage: Stage, memory: str) -> Stage:
    """An exposed epilogue whose tiles the cache can hold: device memory works while the next tiles run."""
    kept = tuple(item for item in stage.traffic if item[0] != memory)
    return replace(stage, traffic=kept, behind=tuple(item for item in stage.traffic if item[0] == memory))


def _lanes_cycles(device: Device, elements: int, cores: int) -> int:
    """Cycles in which the vector lanes beside ``cores`` matrix cores apply one multiply-add to ``elements``."""
    rate = device.promotion.fma_elements_per_cycle
    if rate <= 0:
        raise ParameterError("promotion.fma_elements_per_cycle", f"must be > 0, got {rate}")
    return whole_cycles(elements / (rate * cores))


def _accumulator_stages(name: str, device: Device, tile: Tile, *, tiles: int, times: int, cycles: int) -> list[Stage]:
    """The accumulator to the vector lanes ``times`` per tile, where each takes ``cycles``."""
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
    stages.append(Stage(name, "vector", times * cycles, holds=device.promotion.units))
    return stages


def _promotion(demand: Gemm, device: Device, choice: Choice, tiles: int) -> tuple[Stage, ...]:
    """Scaling and adding up of partial sums, where block scales break the K loop."""
    if not demand.promote_every:
        return ()
    breaks, tile = ceil_div(choice.k, demand.promote_every), choice.tile
    cycles = _lanes_cycles(device, tile.m * tile.n, tile.cores)
    rate = device.promotion.outer_scale_elements_per_cycle
    if rate and demand.epilogue_scale_vectors > 1:
        cycles += whole_cycles(tile.m * tile.n / (rate * tile.cores))
    return tuple(_accumulator_stages("promotion", device, tile, tiles=tiles, times=breaks, cycles=cycles))


def _epilogue(demand: Gemm, facts: GemmFacts, choice: Choice, amounts: _Amounts) -> tuple[Stage, ...]:
    """What happens once per tile after its loop."""
    device, tile = facts.device, choice.tile
    stages = []
    for fact in facts.epilogue:
        if fact.unit:
            stages.append(Stage(fact.name, "vector", _lanes_cycles(device, tile.m * tile.n, tile.cores)))
        else:
            stages.append(_path_stage(fact, device, tile, amounts))
    if demand.epilogue_scale_vectors and not demand.promote_every:
        cycles = _lanes_cycles(device, demand.epilogue_scale_vectors * tile.m * tile.n, tile.cores)
        stages += _accumulator_stages("scaling", device, tile, tiles=amounts.tiles, times=1, cycles=cycles)
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
