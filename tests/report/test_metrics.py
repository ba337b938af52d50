"""Counts, slowest kernels, and Amdahl's bound."""

from __future__ import annotations

import pytest

from hwmodel.engine.trace import SequenceTrace, Span, Trace
from hwmodel.errors import ParameterError
from hwmodel.report.metrics import amdahl_speedup, count, gemm_share_fraction, slowest_kernels, speedup_ceiling
from hwmodel.schedules.plan import Plan, Task, TaskInfo
from tests.report.examples import once, sequence_of, trace_of


def kernels(*tasks: tuple[str, TaskInfo]) -> Trace:
    """Kernels of (kind, info), 10 ps each, one after the other."""
    plan = Plan("plan", tuple(Task(f"t{i}", "main", kind, 10, (), info=info) for i, (kind, info) in enumerate(tasks)))
    return Trace(plan, tuple(Span(i, 10 * i, 10 * i + 10, 10) for i in range(len(tasks))), events=5)


def test_counts_cover_every_copy_and_no_wait() -> None:
    body = kernels(
        ("amax", TaskInfo(op="amax", bytes=100)),
        ("elementwise", TaskInfo(op="fused", bytes=900, launches=2, parts=(("amax", 1), ("quantise", 2), ("amax", 1)))),
        ("quantise", TaskInfo(op="dequantise")),
        ("transpose", TaskInfo(op="transpose")),
        ("collective", TaskInfo(op="all_reduce")),
        ("collective", TaskInfo(launches=0)),
        ("bubble", TaskInfo(op="bubble", launches=0)),
    )
    counts = count(sequence_of((body, 3), (kernels(("quantise", TaskInfo(op="quantise"))), 1)))
    assert (counts.kernels, counts.amax_passes, counts.amax_bytes) == (3 * 6 + 1, 6, 300)
    assert (counts.quantise_passes, counts.transposes, counts.collectives) == (3 + 1, 3, 3)
    assert counts.events == 3 * 5 + 5


def test_slowest_kernels_are_grouped_by_role_and_shape() -> None:
    info = TaskInfo(op="gemm", role="qkv.fprop", shape="1x2x3", bound="cube")
    body = kernels(
        ("gemm", info), ("gemm", info), ("quantise", TaskInfo(op="quantise", bound="hbm")), ("bubble", TaskInfo())
    )
    first, second = slowest_kernels([(sequence_of((body, 4)), 1)])
    assert (first.name, first.shape, first.calls, first.total_picoseconds, first.bound) == (
        "qkv.fprop",
        "1x2x3",
        8,
        80,
        "cube",
    )
    assert (first.share_fraction, second.name) == (0.5, "quantise")
    assert len(slowest_kernels([(sequence_of((body, 4)), 1)], n=1)) == 1


def test_slowest_kernels_are_those_of_the_mean_step() -> None:
    due, rest = (
        sequence_of((kernels(*[("amax", TaskInfo(op="amax"))] * number, ("gemm", TaskInfo(op="gemm"))), 1))
        for number in (3, 0)
    )
    gemm, amax = slowest_kernels([(due, 1), (rest, 3)])
    assert (gemm.name, gemm.calls, amax.name, amax.calls) == ("gemm", 1, "amax", 0.75)
    period = due.makespan_picoseconds + 3 * rest.makespan_picoseconds
    assert gemm.share_fraction == 4 * 4 * gemm.total_picoseconds / 4 / period
    assert amax.total_picoseconds == 3 * gemm.total_picoseconds // 4


def test_an_empty_run_has_no_kernels() -> None:
    assert slowest_kernels([(sequence_of((trace_of([]), 1)), 1)]) == ()
    assert count(SequenceTrace("empty", ())).kernels == 0


def test_twice_the_peak_is_not_twice_the_step() -> None:
    step = {"gemm": 588, "attention": 112, "collective": 300}
    assert gemm_share_fraction(step) == 0.588
    assert speedup_ceiling(step) == pytest.approx(2.43, abs=0.005)
    assert amdahl_speedup(gemm_share_fraction(step), 2) == pytest.approx(1.417, abs=0.001)


def test_a_step_of_nothing_but_gemms_has_no_ceiling() -> None:
    assert speedup_ceiling({"gemm": 5, "idle": 0}) is None
    assert speedup_ceiling({}) is None
    assert gemm_share_fraction({}) == 0


@pytest.mark.parametrize(("share", "factor", "field"), [(1.5, 2.0, "share_fraction"), (0.5, 0.0, "factor")])
def test_a_share_or_factor_out_of_range_is_refused(share: float, factor: float, field: str) -> None:
    with pytest.raises(ParameterError, match=field):
        amdahl_speedup(share, factor)


def test_overlapping_kernels_may_share_more_than_the_step() -> None:
    found = slowest_kernels([(once([("main", "gemm", 0, 10), ("side", "amax", 0, 10)]), 1)])
    assert [kernel.share_fraction for kernel in found] == [1.0, 1.0]
