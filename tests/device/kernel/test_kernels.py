"""Streams, attention, collectives and what all kernels share: demands, variants, one shared port, repeatability."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.config.device import load_device
from hwmodel.device.kernel import KernelTimer, Pipeline, time_alone
from hwmodel.device.sharing import FULL
from hwmodel.errors import ParameterError
from hwmodel.graph.demand import Attention, Collective, Demand, Elapsed, Fused, Gemm, Stream
from tests.device.devices import tiny_gpu, tiny_npu, tiny_shared_port, with_rate

if TYPE_CHECKING:
    from hwmodel.device.device import Device

MILLISECOND = 10**9
DEVICES = st.sampled_from([tiny_npu(), tiny_gpu()])
CAST = Stream(2 * 10**8, 10**8, 10**8, (("simple", 10**8), ("cast", 10**8)))
AMAX = Stream(2 * 10**8, 0, 10**8, (("reduce", 10**8),), reduces_across_cores=True)
GEMM = Gemm(2048, 2048, 2048, "bf16", "bf16", "bf16")
FLASH = Attention(8, 8, 1024, 1024, 128, 128, "bf16", 8 * 1024 * 1024 * 128, 8 * 1024 * 512, 6 * 2**20, 2 * 2**20)


# ------------------------------------------------------------------------------------------------------------ streams


def test_a_large_stream_takes_its_bytes_over_the_achieved_rate() -> None:
    time = time_alone(CAST, tiny_npu())
    memory = CAST.bytes / 0.8e12
    assert memory < time.picoseconds / 1e12 < memory + 3e-6
    assert time.bound == "hbm"


def test_the_access_kind_picks_the_share() -> None:
    straight, turned = (time_alone(replace(CAST, access=kind), tiny_npu()) for kind in ("contiguous", "transpose"))
    assert dict(turned.busy)["hbm"] == pytest.approx(dict(straight.busy)["hbm"] * 0.8 / 0.5, rel=1e-6)


def test_instructions_bound_a_stream_that_works_a_lot() -> None:
    work = 40
    time = time_alone(replace(CAST, instructions=(("exp", work * 10**8),)), tiny_npu())
    cycles = work * 10**8 // (64 * 16)
    assert time.bound == "vector"
    assert time.picoseconds == pytest.approx(cycles * 1000, rel=0.01)
    assert time.utilisation("vector") > 0.98


def test_a_reduction_across_cores_comes_at_the_end() -> None:
    parts = [time_alone(replace(AMAX, reduces_across_cores=last), tiny_npu()).picoseconds for last in (False, True)]
    assert parts[1] - parts[0] == 500 * 1000


def test_a_small_stream_uses_few_cores_and_is_all_launch() -> None:
    time = time_alone(Stream(64, 64, 16, (("simple", 16),), "latency"), tiny_npu())
    assert time.bound == "launch"
    assert dict(time.demands)["vector"] == FULL // 16
    assert time.picoseconds == 2_000_000 + (200 + 1 + 1 + 1 + 100) * 1000


def test_every_launch_counts() -> None:
    once, thrice = (time_alone(replace(CAST, launches=count), tiny_npu()) for count in (1, 3))
    assert thrice.picoseconds - once.picoseconds == 2 * 2_000_000
    assert (thrice.launches, thrice.launch_picoseconds) == (3, 6_000_000)


def test_an_unknown_instruction_class_is_refused() -> None:
    with pytest.raises(ParameterError, match="has no rate for 'sine'; known: binary, cast, divide"):
        time_alone(replace(CAST, instructions=(("sine", 1),)), tiny_npu())


@given(st.integers(0, 10**8), st.integers(0, 10**8), st.integers(0, 10**8), DEVICES)
def test_no_stream_beats_its_bounds(read: int, write: int, elements: int, device: Device) -> None:
    time = time_alone(Stream(read, write, elements, (("binary", elements),)), device)
    lanes = device.vector.cores * device.vector.elements_per_cycle["binary"] * device.clock_hz
    assert time.picoseconds / 1e12 >= max((read + write) / 1e12, elements / lanes)
    assert all(busy <= time.picoseconds for _, busy in time.busy)
    faster = with_rate(device, "hbm", 3e12)
    assert time_alone(Stream(read, write, elements), faster).picoseconds <= time.picoseconds


def test_a_fused_kernel_is_its_whole_and_knows_its_parts() -> None:
    norm = Stream(10**6, 10**6, 10**6)
    fused = Fused(Stream(10**6, 5 * 10**5, 10**6), (("elementwise", norm), ("quantise", CAST)))
    time = time_alone(fused, tiny_npu())
    assert time.picoseconds == time_alone(fused.whole, tiny_npu()).picoseconds
    alone = [time_alone(part, tiny_npu()).picoseconds for part in (norm, CAST)]
    assert time.parts == (("elementwise", alone[0]), ("quantise", alone[1]))


# ---------------------------------------------------------------------------------------------------------- attention


def test_attention_runs_at_its_share_of_the_peak() -> None:
    device = tiny_npu(launch_seconds=0.0)
    time = time_alone(replace(FLASH, macs=FLASH.macs * 100), device)
    assert time.bound == "matrix"
    cycles = FLASH.macs * 100 / (1024 * 8 * 0.7)
    assert time.picoseconds == pytest.approx(cycles * 1000, rel=0.01)


def test_exponentials_bound_attention_with_slow_lanes() -> None:
    device = tiny_npu()
    lanes = replace(device.vector, elements_per_cycle={**device.vector.elements_per_cycle, "exp": 0.5})
    time = time_alone(FLASH, replace(device, vector=lanes))
    assert time.bound == "vector"
    assert time.picoseconds >= FLASH.softmax_elements / (0.5 * 16) * 1000


def test_attention_holds_both_kinds_of_unit() -> None:
    assert {name: share for name, share in time_alone(FLASH, tiny_npu()).demands if share == FULL} == {
        "cube": FULL,
        "vector": FULL,
    }


# -------------------------------------------------------------------------------------------------------- collectives


def ring(kind: str, size: int, ranks: int = 8) -> Collective:
    return Collective(kind, "tp", ranks, size)


def free_of_charge(device: Device) -> Device:
    """No launch, no latency."""
    levels = tuple(replace(level, latency_seconds=0.0) for level in device.levels)
    return replace(device, levels=levels, collective_launch_seconds=0.0)


@pytest.mark.parametrize(
    ("kind", "picoseconds"),
    [
        ("all_reduce", 175 * MILLISECOND // 100),
        ("reduce_scatter", 875 * MILLISECOND // 1000),
        ("all_gather", 875 * MILLISECOND // 1000),
        ("send_recv", MILLISECOND),
    ],
)
def test_a_ring_of_eight_moves_100_mb(kind: str, picoseconds: int) -> None:
    assert time_alone(ring(kind, 10**8), free_of_charge(tiny_npu())).picoseconds == picoseconds


@pytest.mark.parametrize("kind", ["all_reduce", "reduce_scatter", "all_gather", "send_recv"])
def test_one_rank_costs_nothing(kind: str) -> None:
    time = time_alone(ring(kind, 10**8, ranks=1), tiny_gpu())
    assert (time.picoseconds, time.demands, time.launches, time.cores_held) == (0, (), 0, 0)


def test_hops_and_launch_come_on_top() -> None:
    steps = {"all_reduce": 14, "all_gather": 7, "reduce_scatter": 7, "send_recv": 1}
    for kind, hops in steps.items():
        dear, free = (time_alone(ring(kind, 10**8), device) for device in (tiny_npu(), free_of_charge(tiny_npu())))
        assert dear.picoseconds - free.picoseconds == hops * 1_000_000 + 5_000_000


def test_few_bytes_take_the_way_with_few_hops() -> None:
    time = time_alone(ring("all_reduce", 4), tiny_npu())
    assert time.kernel == "recursive doubling on node"
    assert time.picoseconds == 5_000_000 + 3 * 1_000_000 + 3 * 4 * 10


def test_a_group_runs_on_the_smallest_level_that_joins_it() -> None:
    near, far = (time_alone(Collective("all_gather", "dp", 4, 10**8, stride), tiny_npu()) for stride in (2, 8))
    assert [dict(time.demands).keys() for time in (near, far)] == [{"hbm", "link"}, {"hbm", "nic"}]
    with pytest.raises(ParameterError, match="joins at most 1024 devices, group 'dp' spans 2048"):
        time_alone(Collective("all_gather", "dp", 256, 10**8, 8), tiny_npu())


def test_a_group_that_leaves_its_domain_has_a_ring_for_each_rank_inside() -> None:
    gpu = load_device("gpu")
    time = KernelTimer(gpu).time(Collective("reduce_scatter", "dp_cp", 4, 40_000_000_000, stride=4))
    nic = (
        gpu.resources["nic"].bytes_per_second * next(lv for lv in gpu.levels if lv.resource == "nic").achieved_fraction
    )
    sent, inside = 30_000_000_000, 8 // 4
    assert time.kernel == "2 rings on network"
    assert time.picoseconds == pytest.approx(sent / inside / nic * 1e12, rel=1e-3)
    assert {name for name, _ in time.demands} >= {"nic", "nvlink"}


def test_a_collective_uses_its_link_and_device_memory_and_holds_cores_on_a_gpu() -> None:
    time = time_alone(ring("all_gather", 10**9), tiny_gpu())
    assert dict(time.demands)["hbm"] == pytest.approx(2 * 100e9 / 0.8e12 * FULL, rel=0.01)
    assert time.cores_held == 2
    assert time_alone(ring("all_gather", 10**9), tiny_npu()).cores_held == 0


# --------------------------------------------------------------------------------------------------- what all share


def test_elapsed_time_is_itself() -> None:
    assert time_alone(Elapsed(12345), tiny_npu()).picoseconds == 12345


def test_units_are_shared_where_the_device_says_so() -> None:
    assert {"cube"} == {name for name, share in time_alone(GEMM, tiny_npu()).demands if share == FULL}
    assert dict(time_alone(AMAX, tiny_npu()).demands)["vector"] == FULL
    assert "cube" not in dict(time_alone(AMAX, tiny_npu()).demands)
    for demand in (GEMM, AMAX):
        assert dict(time_alone(demand, tiny_gpu()).demands)["sm"] == FULL


def test_a_shared_port_is_a_matter_of_paths_alone() -> None:
    for demand in (GEMM, AMAX, CAST, FLASH):
        assert "ub_port" in dict(time_alone(demand, tiny_shared_port()).demands)
        assert "ub_port" not in dict(time_alone(demand, tiny_npu()).demands)
    ported = time_alone(CAST, with_rate(tiny_shared_port(), "ub_port", 1e11))
    assert ported.bound == "ub_port"


def test_variants_leave_out_the_cores_that_collectives_hold() -> None:
    timer = KernelTimer(tiny_gpu())
    variants = timer.variants(GEMM)
    assert [cores for cores, _ in variants] == [8, 7, 6]
    assert variants[2][1] == timer.time(GEMM, 6)
    assert [cores for cores, _ in timer.variants(FLASH)] == [8, 7, 6]
    assert [cores for cores, _ in timer.variants(CAST)] == [8]
    assert [cores for cores, _ in KernelTimer(tiny_npu()).variants(GEMM)] == [8]


def test_a_timer_remembers() -> None:
    timer = KernelTimer(tiny_npu())
    assert timer.time(GEMM) is timer.time(replace(GEMM)) is timer.time(GEMM, 8)
    assert isinstance(timer.pipeline(GEMM), Pipeline)
    assert timer.pipeline(Elapsed(5)) is None


@pytest.mark.parametrize("demand", [GEMM, CAST, AMAX, FLASH, ring("all_reduce", 10**6)], ids=lambda d: type(d).__name__)
def test_equal_inputs_give_equal_times(demand: Demand) -> None:
    assert time_alone(demand, tiny_npu()) == time_alone(demand, tiny_npu())
