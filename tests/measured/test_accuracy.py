"""How far predictions are from measured GEMMs that no fit has seen, and how many constants are fitted."""

from __future__ import annotations

import pytest

from hwmodel.config.device import load_device
from hwmodel.config.locate import names
from tests.measured.shipped import errors

MOST_FITTED = 12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "machine", "formats", "mean", "median"),
    [
        ("OpenXLA perf tables", "H100 (sm_90)", ("bf16",), 3.5, 2.5),
        ("OpenXLA perf tables", "B200 (sm_100)", ("bf16", "fp8_e4m3fn", "tf32"), 5.0, 4.0),
        ("torchao benchmarks", "H100", ("fp16",), 5.0, 5.0),
    ],
)
def test_gemms_are_as_close_as_asked(
    source: str, machine: str, formats: tuple[str, ...], mean: float, median: float
) -> None:
    found = errors("gemm", source, machine, *formats)
    assert found.mean <= mean
    assert found.median <= median


@pytest.mark.slow
def test_long_gemms_of_the_npu_are_as_close_as_asked() -> None:
    found = errors("gemm", "DeepGEMM-Ascend", "Ascend 950DT", shortest_seconds=1e-4)
    assert found.mean <= 2.5


@pytest.mark.parametrize("name", names("devices"))
def test_few_constants_of_a_device_are_fitted(name: str) -> None:
    fitted = [note.path for note in load_device(name).sources if note.confidence == "F"]
    assert len(fitted) <= MOST_FITTED
    assert all(path.startswith("calibration.") for path in fitted)


def test_a_fitted_constant_says_to_what() -> None:
    notes = [note for name in names("devices") for note in load_device(name).sources if note.confidence == "F"]
    assert notes
    assert all("fitted by hwmodel calibrate to" in note.source for note in notes)
