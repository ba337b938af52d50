"""Rows to demands to predictions, groups, and what is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hwmodel.config.device import load_device
from hwmodel.config.measured import Treatment, load_sources
from hwmodel.device.kernel import time_alone
from hwmodel.graph.demand import Gemm
from hwmodel.measured.case import Case, Skip
from hwmodel.measured.machines import Bench, slowed, with_overhead
from hwmodel.measured.rows import GEMM, MICROSECOND, Row
from hwmodel.measured.validate import SUITES, validate

if TYPE_CHECKING:
    from hwmodel.measured.validate import Validation

GEMMS = SUITES["gemm"]


def row(microseconds: float | None = 100.0, **text: str) -> Row:
    said = {"source": "me", "device": "gpu", "dtype_a": "bf16", "dtype_b": "bf16", "dtype_out": "bf16", **text}
    seconds = {} if microseconds is None else {"time_us": microseconds * MICROSECOND}
    return Row(2, said, {"m": 4096, "n": 4096, "k": 4096, "batch": 1}, seconds)


def run(*rows: Row, **options: object) -> Validation:
    return validate(GEMMS, rows, Bench(), load_sources(), **options)  # type: ignore[arg-type]


def test_a_prediction_is_the_time_alone_and_its_error_is_in_percent() -> None:
    (found,) = run(row()).compared
    alone = time_alone(Gemm(4096, 4096, 4096, "bf16", "bf16", "bf16"), load_device("gpu")).picoseconds / 1e12
    assert (found.predicted_seconds, found.device, found.role, found.size) == (
        alone,
        "gpu",
        "own",
        "100 us to 1 ms",
    )
    assert found.signed == pytest.approx(100 * (alone / 1e-4 - 1))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (row(None), "no time is given"),
        (row(9.0), "took less than 10 us"),
        (row(kind="derived"), "derived, not measured"),
        (row(device="no such/chip"), "no device file for 'no such/chip'"),
        (row(dtype_a="fp3"), "format 'fp3' is not known; did you mean 'fp32'?"),
        (row(dtype_a="hif8", dtype_b="hif8"), "device has no matrix rate for hif8"),
        (row(source="DeepGEMM-Ascend", layout="HC prenorm"), "a fused norm with mixed types, not a GEMM"),
    ],
)
def test_a_row_that_is_not_compared_is_counted_with_its_reason(bad: Row, reason: str) -> None:
    done = run(bad, row(), bad)
    assert (len(done.compared), done.skipped) == (1, {reason: 2})


def test_overheads_and_shares_describe_the_source_not_the_device() -> None:
    assert with_overhead(2.0, Treatment("additive", 3.0)) == 5.0
    assert [with_overhead(2.0, Treatment("floor", floor)) for floor in (1.0, 3.0)] == [2.0, 3.0]
    gpu, demand = load_device("gpu"), Gemm(8192, 8192, 8192, "bf16", "bf16", "bf16")
    assert slowed(gpu, 1.0) is gpu
    half = time_alone(demand, slowed(gpu, 0.5)).picoseconds
    assert 1.8 < half / time_alone(demand, gpu).picoseconds < 2.0
    untreated = run(row(source="Vidur", device="H100"), treated=False).compared[0]
    assert untreated.predicted_seconds < run(row(device="H100", source="Vidur")).compared[0].predicted_seconds * 1.0001


def test_groups_are_by_source_device_format_and_split() -> None:
    done = run(row(), row(200.0), row(split="fit"), row(2000.0, dtype_a="fp8_e4m3", dtype_b="fp8_e4m3"))
    groups = done.by(lambda each: each.group)
    assert [(key[1:], each.rows) for key, each in groups.items()] == [
        (("me", "gpu", "bf16", ""), 2),
        (("me", "gpu", "bf16", "fit"), 1),
        (("me", "gpu", "fp8_e4m3fn", ""), 1),
    ]
    assert done.worst(1)[0].case.format == "fp8_e4m3fn"
    assert sum(group["rows"] for group in done.data()["sizes"]) == 4


def test_block_scales_that_lanes_apply_break_the_loop_and_mx_scales_do_not() -> None:
    device, sources = load_device("gpu"), load_sources()
    block = GEMMS.case(row(source="DeepGEMM", dtype_a="fp8_e4m3", dtype_b="fp8_e4m3"), device, sources)
    mx = GEMMS.case(row(dtype_a="mxfp8", dtype_b="mxfp8"), device, sources)
    assert isinstance(block, Case)
    assert isinstance(mx, Case)
    assert isinstance(block.demand, Gemm)
    assert isinstance(mx.demand, Gemm)
    assert (block.demand.promote_every, block.demand.a_scale_bytes, block.demand.b_scale_bytes) == (
        128,
        4096 * 32 * 4,
        32 * 32 * 4,
    )
    assert (mx.demand.native_block_scales, mx.demand.a_scale_bytes) == (True, 4096 * 128)
    assert not isinstance(GEMMS.case(row(), device, sources), Skip)


def test_a_device_of_the_users_own_predicts_every_row() -> None:
    mine = replace(load_device("gpu"), name="mine")
    done = validate(GEMMS, [row(device="prototype")], Bench({"mine": mine}), load_sources(), device="mine")
    assert [each.device for each in done.compared] == ["mine"]
    assert GEMM.name == done.suite
