"""Fits find the constants that made the times, and say which they cannot find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hwmodel.config.device import load_device
from hwmodel.config.measured import Treatment, load_sources
from hwmodel.device.kernel import time_alone
from hwmodel.errors import ParameterError
from hwmodel.graph.demand import Gemm
from hwmodel.measured import constants, fitting
from hwmodel.measured.calibrate import Timed, calibrate, errors
from hwmodel.measured.rows import MICROSECOND, Row
from hwmodel.measured.validate import SUITES

if TYPE_CHECKING:
    from hwmodel.device import Device

DEVICE = load_device("npu")
SHAPES = [(4096, 4096, 4096), (128, 8192, 8192), (512, 8192, 8192), (8192, 8192, 1024), (64, 4096, 16384), (2048,) * 3]


def timed(device: Device = DEVICE, form: str = "bf16", extra: float = 0.0) -> list[Timed]:
    demands = [Gemm(m, n, k, form, form, "bf16") for m, n, k in SHAPES]
    return [Timed(demand, time_alone(demand, device).picoseconds / 1e12 + extra) for demand in demands]


def free(*names: str) -> list[constants.Constant]:
    return [constants.constant(name, DEVICE) for name in names]


def test_a_fit_finds_the_constants_that_made_the_times() -> None:
    truth = {"calibration.sustained_fraction.bf16": 0.7, "calibration.achieved_fraction.hbm.gemm": 0.6}
    found = calibrate(DEVICE, timed(constants.with_values(DEVICE, truth)), free(*truth))
    assert {each.constant.path: each.after for each in found.fitted} == pytest.approx(truth, rel=0.02)
    assert found.after.mean < 0.5 < found.before.mean
    assert not found.kept


def test_an_overhead_of_the_clock_is_found_and_not_given_to_the_device() -> None:
    found = calibrate(DEVICE, timed(extra=2e-5), free("overhead_seconds"))
    assert found.clock == pytest.approx({"overhead_seconds": 2e-5}, rel=0.02)
    assert found.device == DEVICE


def test_a_constant_that_no_row_depends_on_keeps_its_value() -> None:
    slow = constants.with_values(DEVICE, {"calibration.sustained_fraction.bf16": 0.7})
    found = calibrate(DEVICE, timed(slow), free("sustained_fraction.bf16", "sustained_fraction.fp8_e4m3fn"))
    assert [(each.constant.path, each.reason) for each in found.kept] == [
        ("calibration.sustained_fraction.fp8_e4m3fn", "no row depends on it")
    ]
    assert found.device.matrix.sustained_fraction["fp8_e4m3fn"] == DEVICE.matrix.sustained_fraction["fp8_e4m3fn"]


def test_times_shorter_than_the_peak_allows_are_refused() -> None:
    rows = [Timed(each.demand, each.seconds / 10) for each in timed()]
    with pytest.raises(ParameterError, match=r"determine at least one .* got none: .*sustained_fraction\.bf16"):
        calibrate(DEVICE, rows, free("sustained_fraction.bf16"))


def test_times_in_other_units_are_refused() -> None:
    rows = [Timed(each.demand, each.seconds * 1000) for each in timed()]
    with pytest.raises(ParameterError, match=r"got a factor of 1e\+03: check the units"):
        calibrate(DEVICE, rows, free("sustained_fraction.bf16"))


def test_a_kernel_timed_many_times_is_one_kernel() -> None:
    with pytest.raises(ParameterError, match="at least 3 different kernels, 3 to a constant, got 1"):
        calibrate(DEVICE, timed()[:1] * 12, free("sustained_fraction.bf16"))
    with pytest.raises(ParameterError, match="at least 3 different kernels to fit a constant, got 1"):
        fitting.usual(DEVICE, timed()[:1] * 12)


def test_constants_that_only_act_together_are_not_both_fitted() -> None:
    slow = constants.with_values(DEVICE, {"calibration.sustained_fraction.bf16": 0.7})
    large = [Gemm(8192, 8192, 256 * k, "bf16", "bf16", "bf16") for k in range(8, 20)]
    rows = [Timed(demand, time_alone(demand, slow).picoseconds / 1e12) for demand in large]
    found = calibrate(DEVICE, rows, free("sustained_fraction.bf16", "rate_fraction"))
    assert [each.constant.path for each in found.fitted] == ["calibration.sustained_fraction.bf16"]
    assert [(each.constant.path, each.reason) for each in found.kept] == [
        ("rate_fraction", "the rows do not tell it apart from the others")
    ]


def test_of_very_many_kernels_some_are_searched_and_all_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwmodel.measured.calibrate.MOST_KERNELS", 4)
    truth = {"calibration.sustained_fraction.bf16": 0.7}
    rows = timed(constants.with_values(DEVICE, truth))
    found = calibrate(DEVICE, rows * 2, free(*truth))
    assert (found.rows, found.after.rows) == (2 * len(rows), 2 * len(rows))
    assert found.fitted[0].after == pytest.approx(0.7, rel=0.02)


def test_the_clock_is_what_most_rows_are_treated_with_before_the_fit() -> None:
    rows = [Timed(each.demand, each.seconds, Treatment("additive", 1e-5)) for each in timed(extra=2e-5)]
    found = calibrate(DEVICE, rows, free("overhead_seconds"))
    assert found.fitted[0].before == 1e-5
    assert found.fitted[0].after == pytest.approx(2e-5, rel=0.02)


def test_more_constants_than_rows_support_are_refused() -> None:
    with pytest.raises(ParameterError, match="at least 9 different kernels, 3 to a constant, got 6"):
        calibrate(DEVICE, timed(), free("sustained_fraction.bf16", "launch_seconds", "tile_cycles"))
    with pytest.raises(ParameterError, match="at least one constant"):
        calibrate(DEVICE, timed(), [])


@pytest.mark.parametrize("path", constants.known_paths(DEVICE))
def test_every_constant_is_read_back_as_it_was_set(path: str) -> None:
    each = constants.constant(path, DEVICE)
    changed = constants.with_values(DEVICE, {path: each.high / 2})
    assert constants.value(each, changed) == pytest.approx(each.high / 2)


def test_an_unknown_constant_is_refused_with_the_nearest() -> None:
    with pytest.raises(ParameterError, match=r"did you mean 'calibration\.sustained_fraction\.bf16'"):
        constants.constant("sustained_fraction.bf61", DEVICE)


def row(device: str = "mine", source: str = "me", split: str = "", microseconds: float = 100.0) -> Row:
    said = {"source": source, "device": device, "dtype_a": "bf16", "dtype_b": "bf16", "dtype_out": "bf16"}
    counts = {"m": 4096, "n": 4096, "k": 4096, "batch": 1}
    return Row(2, {**said, "split": split}, counts, {"time_us": microseconds * MICROSECOND})


def pick(*rows: Row, machine: str | None = None, source: str | None = None) -> fitting.Picked:
    return fitting.pick(
        SUITES["gemm"],
        rows,
        DEVICE,
        load_sources(),
        machine=machine,
        source=source,
        form=None,
        shortest_seconds=1e-5,
    )


def test_rows_kept_aside_and_rows_of_transfer_sources_are_not_fitted() -> None:
    picked = pick(row(), row(split="validate"), row(split="fit"), row(source="pypto guide"), row(microseconds=1.0))
    assert (len(picked.fit), len(picked.held_out)) == (2, 1)
    assert picked.skipped == {"of a source that is never fitted (transfer)": 1, "took less than 10 us": 1}


def test_rows_of_several_devices_want_one_picked() -> None:
    with pytest.raises(ParameterError, match="rows name 2 devices, pick one: mine, yours"):
        pick(row(), row("yours"))
    assert len(pick(row(), row("yours"), machine="yours").fit) == 1
    assert len(pick(row(), row("Ascend 950DT"), row("yours")).fit) == 1
    with pytest.raises(ParameterError, match=r"got none \(1 took less than 10 us\)"):
        pick(row(microseconds=1.0))
    with pytest.raises(ParameterError, match=r"got none \(2 kept aside, with a split other than 'fit' or blank\)"):
        pick(row(split="validate"), row(split="Fit"))
    with pytest.raises(ParameterError, match="--machine: no row is of 'your'; did you mean 'yours'"):
        pick(row(), row("yours"), machine="your")
    with pytest.raises(ParameterError, match=r"--source: no row is of 'you'; .*known: me"):
        pick(row(), source="you")
    assert pick(row(), row("Ascend 950DT")).skipped == {"of other devices": 1}


def test_what_is_fitted_without_a_word_grows_with_the_rows() -> None:
    rows = timed()
    assert fitting.usual(DEVICE, rows) == (
        "calibration.sustained_fraction.bf16",
        "calibration.achieved_fraction.hbm.gemm",
    )
    with pytest.raises(ParameterError, match="at least 3 different kernels to fit a constant, got 2"):
        fitting.usual(DEVICE, rows[:2])


def test_a_clocks_constants_stand_in_for_the_rows_own() -> None:
    rows = [Timed(each.demand, each.seconds, Treatment("additive", 1.0)) for each in timed()]
    assert errors(DEVICE, rows, {"overhead_seconds": 0.0}).mean == pytest.approx(0.0, abs=1e-9)
