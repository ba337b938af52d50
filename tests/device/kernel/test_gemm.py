"""GEMM time: whole waves, broken K loops, epilogues, block scales, reuse, and what never happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.device.device import Device, GemmVariant, Path, PromotionFact, Tile
from hwmodel.device.kernel import KernelTime, KernelTimer, evaluate, time_alone
from hwmodel.device.kernel.gemm import GemmFacts, choices
from hwmodel.device.kernel.gemm_pipeline import build
from hwmodel.errors import ParameterError
from hwmodel.graph.demand import Gemm
from hwmodel.units import ceil_div, cycles_to_picoseconds
from tests.device.devices import BF16_MACS, FP8_MACS, tiny_gpu, tiny_npu, unlimited, with_matrix, with_rate

ONE_TILE = (Tile(128, 128, 128),)
SIZES = st.integers(1, 3000)
DEVICES = st.sampled_from([tiny_npu(), tiny_gpu()])


def gemm(m: int, n: int, k: int, name: str = "bf16", **fields: Any) -> Gemm:
    return replace(Gemm(m, n, k, name, name, "bf16"), **fields)


# -------------------------------------------------------------------------------------------------------------- waves


def test_time_follows_whole_waves() -> None:
    device = with_matrix(unlimited(tiny_npu(), (Tile(128, 192, 128),)), cores=132, accumulator_bytes=2**20)
    demand = gemm(4096, 2112, 1024)
    tile_cycles = 128 * 192 * 1024 // BF16_MACS
    assert ceil_div(4096, 128) * ceil_div(2112, 192) == 352
    assert time_alone(demand, device).picoseconds == cycles_to_picoseconds(3 * tile_cycles, device.clock_hz)
    assert time_alone(demand, device).utilisation("matrix") == pytest.approx(352 / (3 * 132))
    assert pytest.approx(0.889, abs=5e-4) == 352 / (3 * 132)


def test_one_tile_more_than_cores_takes_twice_as_long() -> None:
    device = with_matrix(unlimited(tiny_npu(), ONE_TILE), cores=108)
    fits, spills = (time_alone(gemm(128 * tiles, 128, 4096), device) for tiles in (108, 109))
    assert spills.picoseconds == 2 * fits.picoseconds


@given(SIZES, SIZES, SIZES, DEVICES, st.booleans())
def test_more_cores_never_make_a_gemm_slower(m: int, n: int, k: int, device: Device, promotes: bool) -> None:
    timer = KernelTimer(device)
    demand = gemm(m, n, k, promote_every=128 if promotes else 0)
    times = [timer.time(demand, cores).picoseconds for cores in range(2, 9)]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("slow", ["fp8_e4m3fn", "fp8_e5m2"])
def test_of_two_formats_the_one_that_is_reached_slower_decides(slow: str) -> None:
    shares = {"fp8_e4m3fn": 1.0, "fp8_e5m2": 1.0}
    device = with_matrix(unlimited(tiny_npu(), ONE_TILE), macs_per_cycle=dict.fromkeys(shares, FP8_MACS))
    slowed = with_matrix(device, sustained_fraction={**shares, slow: 0.5})
    mixed = Gemm(4096, 4096, 4096, "fp8_e4m3fn", "fp8_e5m2", "bf16")
    assert time_alone(mixed, slowed).picoseconds == 2 * time_alone(mixed, device).picoseconds


def test_split_k_keeps_cores_busy_on_a_small_output() -> None:
    device = with_matrix(tiny_npu(), tiles=ONE_TILE)
    demand = gemm(128, 128, 65536)
    facts = GemmFacts.of(device)
    by_pieces = {c.splits: evaluate(build(demand, facts, 8, c)).picoseconds for c in choices(demand, facts, 8)}
    assert set(by_pieces) == {1, 2, 3, 4, 6, 8}
    assert time_alone(demand, device).picoseconds == min(by_pieces.values()) < by_pieces[1] // 4
    combine = build(demand, facts, 8, next(c for c in choices(demand, facts, 8) if c.splits == 8)).phases[1]
    read, written = (dict(stage.traffic)["hbm"] for stage in combine.loop)
    assert (read, written) == (8 * 128 * 128 * 4, 128 * 128 * 2)


# ------------------------------------------------------------------------------------------------------------- bounds


@given(SIZES, SIZES, SIZES, DEVICES, st.sampled_from(["bf16", "fp8_e4m3fn"]))
def test_no_gemm_beats_its_bounds(m: int, n: int, k: int, device: Device, name: str) -> None:
    demand = gemm(m, n, k, name)
    time = time_alone(demand, device)
    seconds = time.picoseconds / 1e12
    assert seconds >= demand.macs / (device.matrix.macs_per_cycle[name] * device.matrix.cores * device.clock_hz)
    assert seconds >= demand.bytes / device.resources["hbm"].bytes_per_second
    assert all(0 <= time.utilisation(place) <= 1 and busy <= time.picoseconds for place, busy in time.busy)
    assert all(1 <= share <= 1 << 20 for _, share in time.demands)
    assert [name for name, _ in time.demands] == sorted(name for name, _ in time.demands)


@given(SIZES, SIZES, SIZES, DEVICES)
def test_a_floor_is_never_above_the_time(m: int, n: int, k: int, device: Device) -> None:
    facts = GemmFacts.of(device)
    demand = gemm(m, n, k, "fp8_e4m3fn", promote_every=128)
    for choice in choices(demand, facts, 8):
        assert choice.floor_picoseconds <= evaluate(build(demand, facts, 8, choice)).picoseconds


@given(SIZES, SIZES, SIZES, DEVICES, st.floats(1.0, 8.0))
def test_more_bandwidth_never_slows(m: int, n: int, k: int, device: Device, factor: float) -> None:
    for name in ("hbm", "l2"):
        faster = with_rate(device, name, device.resources[name].bytes_per_second * factor)
        assert time_alone(gemm(m, n, k), faster).picoseconds <= time_alone(gemm(m, n, k), device).picoseconds


@given(SIZES, SIZES, SIZES, DEVICES, st.floats(1.0, 8.0))
def test_faster_paths_never_slow(m: int, n: int, k: int, device: Device, factor: float) -> None:
    paths = {name: replace(path, bytes_per_cycle=path.bytes_per_cycle * factor) for name, path in device.paths.items()}
    demand = gemm(m, n, k, promote_every=128)
    assert time_alone(demand, replace(device, paths=paths)).picoseconds <= time_alone(demand, device).picoseconds


@given(SIZES, SIZES, st.integers(8 * 128, 4096), DEVICES, st.sampled_from(["m", "n", "k"]))
def test_twice_the_size_never_takes_less(m: int, n: int, k: int, device: Device, which: str) -> None:
    # From k = 8 x 128 on, all 8 cores may share one tile; below, a longer k may be the first that can be split.
    demand = gemm(m, n, k)
    larger = replace(demand, **{which: 2 * getattr(demand, which)})
    assert time_alone(larger, device).picoseconds >= time_alone(demand, device).picoseconds


@given(SIZES, SIZES, SIZES, DEVICES)
def test_eight_bits_are_never_slower_and_never_gain_more_than_the_peaks_ratio(
    m: int, n: int, k: int, device: Device
) -> None:
    device = replace(device, launch_seconds=0.0)
    wide, narrow = (time_alone(gemm(m, n, k, name), device).picoseconds for name in ("bf16", "fp8_e4m3fn"))
    assert narrow <= wide <= narrow * FP8_MACS / BF16_MACS + 1


def test_a_large_gemm_nears_the_peak() -> None:
    assert 0.9 < time_alone(gemm(4096, 8192, 8192), tiny_npu()).utilisation("matrix") <= 1


# ------------------------------------------------------------------------------------------------------- broken K loop


def promoting_gpu(rate: int) -> Device:
    """A tensor-core device of ``rate`` multiply-accumulates whose 128 lanes share registers with the matrix unit."""
    device = with_matrix(
        unlimited(tiny_gpu(), ONE_TILE), cores=1, macs_per_cycle={"fp8_e4m3fn": rate}, accumulator_bytes=2**20
    )
    return replace(device, promotion=PromotionFact(128.0, largest_tile_elements=128 * 128))


@pytest.mark.parametrize(("rate", "matrix", "share"), [(4096, 512, 0.80), (8192, 256, 2 / 3)])
def test_a_waiting_matrix_unit_adds_the_promotion(rate: int, matrix: int, share: float) -> None:
    device = promoting_gpu(rate)
    groups, lanes = 64, 128 * 128 // 128
    assert 128 * 128 * 128 // rate == matrix
    unbroken, serial = (
        time_alone(gemm(128, 128, 128 * groups, "fp8_e4m3fn", promote_every=every, kernel="serial"), device)
        for every in (0, 128)
    )
    assert unbroken.picoseconds == cycles_to_picoseconds(groups * matrix, device.clock_hz)
    assert serial.picoseconds == cycles_to_picoseconds(groups * (matrix + lanes), device.clock_hz)
    assert unbroken.picoseconds / serial.picoseconds == pytest.approx(share)


def test_two_groups_hide_the_promotion_but_for_the_last() -> None:
    device = promoting_gpu(4096)
    broken = time_alone(gemm(128, 128, 128 * 64, "fp8_e4m3fn", promote_every=128), device)
    assert broken.picoseconds == cycles_to_picoseconds(64 * 512 + 128, device.clock_hz)
    assert broken.bound == "matrix"


def test_two_groups_take_only_tiles_with_room_for_two_accumulators() -> None:
    device = replace(
        with_matrix(promoting_gpu(4096), tiles=(Tile(128, 256, 128), *ONE_TILE)), gemm_variants={"big": GemmVariant()}
    )
    demand = gemm(1280, 2560, 4096, "fp8_e4m3fn", promote_every=128)
    assert time_alone(demand, device).kernel == "128x128"
    only_big = with_matrix(device, tiles=(Tile(128, 256, 128),))
    with pytest.raises(ParameterError, match="two accumulators in accumulator_bytes=1048576"):
        time_alone(demand, only_big)
    assert time_alone(replace(demand, kernel="serial"), only_big).kernel == "128x256"


def test_the_npu_is_at_best_balanced_between_cube_path_and_vector_cores() -> None:
    tile = (Tile(128, 256, 128),)
    device = with_matrix(unlimited(tiny_npu(), tile), cores=1, macs_per_cycle={"hif8": 8192})
    device = replace(
        device,
        paths={**device.paths, "l0c_to_ub": Path("l0c_to_ub", (), 256.0)},
        promotion=PromotionFact(128 * 256 / 384, "l0c_to_ub", ("vector",), 128 * 256),
    )
    cube, path, vector = 128 * 256 * 128 // 8192, 128 * 256 * 4 // 256, 384
    assert (cube, path) == (512, 512)
    time = time_alone(gemm(128, 256, 128 * 100, "hif8", promote_every=128), device)
    assert time.picoseconds == cycles_to_picoseconds(99 * 512 + cube + path + vector, device.clock_hz)
    assert dict(time.demands)["vector"] == pytest.approx(vector * 100 / (99 * 512 + 512 + 512 + 384) * 2**20, rel=1e-3)
    assert "vector" not in dict(time_alone(gemm(128, 256, 12800, "hif8"), device).demands)


def test_a_variant_of_a_software_set_brings_its_tiles_and_loop() -> None:
    variant = GemmVariant(tiles=(Tile(64, 64, 128),), promotion="serial")
    device = replace(tiny_gpu(), gemm_variants={"promote_small": variant})
    assert time_alone(gemm(1024, 1024, 1024, kernel="promote_small"), device).kernel == "64x64"
    with pytest.raises(ParameterError, match="no GEMM kernel 'promote'; known: promote_small, serial, two_group"):
        time_alone(gemm(64, 64, 64, kernel="promote"), device)


# ------------------------------------------------------------------------------------------ epilogue and accumulators


def test_a_second_accumulator_hides_the_epilogue() -> None:
    hidden = with_matrix(tiny_npu(), tiles=(Tile(128, 256, 128),))
    one = with_matrix(hidden, accumulator_bytes=128 * 256 * 4)
    exposed = with_matrix(hidden, epilogue_overlaps=False)
    demand = gemm(4096, 4096, 512)
    store = 128 * 256 * 2 // 64
    waves = 32 * 16 // 8
    times = [time_alone(demand, device).picoseconds for device in (hidden, one, exposed)]
    assert times[1] == times[2]
    assert times[1] - times[0] == cycles_to_picoseconds((waves - 1) * store, hidden.clock_hz)


def test_block_scales_in_accumulator_memory_take_room_from_the_second_accumulator() -> None:
    # 128 lanes x 512 columns x 4 B. Scales of 128 rows and 128 of k take 4 columns: 128 x 4 B, four copies.
    tensor_memory = 128 * 512 * 4
    device = with_matrix(
        tiny_gpu(),
        tiles=(Tile(128, 256, 128), Tile(128, 192, 128)),
        accumulator_bytes=tensor_memory,
        operand_buffer_bytes=2**20,
        scales_share_accumulator=True,
        scale_copies=4,
        epilogue_overlaps=True,
    )
    facts = GemmFacts.of(device)
    plain = gemm(4096, 4096, 4096, "fp8_e4m3fn")
    scaled = replace(plain, native_block_scales=True, a_scale_bytes=4096 * 128, b_scale_bytes=4096 * 128)
    room = {c.tile.n: c.accumulators for c in choices(plain, facts, 8)}
    left = {c.tile.n: c.accumulators for c in choices(scaled, facts, 8)}
    columns = 2 * 4 * (1 + 2)
    assert room == {256: 2, 192: 2}
    assert 2 * 256 + columns > 512 >= 2 * 192 + columns
    assert left == {256: 1, 192: 2}


def test_native_block_scales_cost_their_bytes() -> None:
    device = tiny_npu()
    plain = gemm(2048, 2048, 2048, "fp8_e4m3fn")
    scaled = replace(plain, native_block_scales=True, a_scale_bytes=2048 * 64, b_scale_bytes=2048 * 64)
    times = [time_alone(demand, device) for demand in (plain, scaled)]
    assert times[0].picoseconds <= times[1].picoseconds < times[0].picoseconds * 1.05
    assert dict(times[1].busy)["hbm"] > dict(times[0].busy)["hbm"]


def test_accumulating_reads_and_writes_the_output() -> None:
    device = tiny_npu()
    plain = gemm(4096, 4096, 256, out_format="fp32")
    times: list[KernelTime] = [time_alone(replace(plain, accumulates=held), device) for held in (False, True)]
    extra = (dict(times[1].busy)["hbm"] - dict(times[0].busy)["hbm"]) * 1e-12 * 0.8e12
    assert extra == pytest.approx(4096 * 4096 * 4, rel=1e-6)


def test_scale_vectors_are_applied_once_per_tile() -> None:
    device = with_matrix(tiny_gpu(), tiles=ONE_TILE)
    demand = gemm(1024, 1024, 1024, "fp8_e4m3fn")
    facts = GemmFacts.of(device)
    scaled = replace(demand, epilogue_scale_vectors=2)
    stage = build(scaled, facts, 8, choices(scaled, facts, 8)[0]).phases[0].epilogue[-1]
    assert stage.cycles == 2 * 128 * 128 // 128


# ---------------------------------------------------------------------------------------------------------- the rest


def test_operands_that_fit_the_cache_come_once() -> None:
    demand = gemm(1024, 1024, 1024)
    device = tiny_npu()
    hbm = dict(time_alone(demand, device).busy)["hbm"]
    assert hbm == pytest.approx(demand.bytes / 0.8e12 * 1e12, abs=3)


def test_without_a_cache_every_tile_fetches_its_operands() -> None:
    device = with_matrix(tiny_npu(cache_bytes=0), tiles=ONE_TILE)
    demand = gemm(1024, 512, 1024)
    moved = 1024 * 1024 * 2 * (512 // 128) + 512 * 1024 * 2 * (1024 // 128) + demand.write_bytes
    assert dict(time_alone(demand, device).busy)["hbm"] == pytest.approx(moved / 0.8e12 * 1e12, abs=3)


@given(SIZES, SIZES, SIZES)
def test_a_larger_cache_never_slows(m: int, n: int, k: int) -> None:
    times = [time_alone(gemm(m, n, k), tiny_npu(cache_bytes=size)).picoseconds for size in (0, 2**18, 2**20, 2**24)]
    assert times == sorted(times, reverse=True)


def test_a_format_without_a_rate_is_refused() -> None:
    with pytest.raises(ParameterError, match="device 'tiny_gpu' has no rate for 'hif8'; known: bf16, fp8_e4m3fn"):
        time_alone(gemm(64, 64, 64, "hif8"), tiny_gpu())


def test_shared_scale_formats_run_at_their_elements_rate() -> None:
    plain, shared = (time_alone(gemm(512, 512, 512, name), tiny_npu()) for name in ("fp8_e4m3fn", "mxfp8_e4m3fn"))
    assert plain == shared


def test_too_many_cores_are_refused() -> None:
    with pytest.raises(ParameterError, match="cores: must be 1 to 8, got 9"):
        time_alone(gemm(64, 64, 64), tiny_npu(), cores=9)


def test_an_empty_gemm_is_a_launch() -> None:
    assert time_alone(gemm(0, 64, 64), tiny_npu()).picoseconds == 2_000_000
