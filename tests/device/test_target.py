"""What a device offers together with a software set."""

from __future__ import annotations

import pytest

from hwmodel.config.device import load_device, load_software
from hwmodel.config.locate import names
from hwmodel.device.software import Software
from hwmodel.device.target import target
from hwmodel.errors import ParameterError
from hwmodel.graph.target import NativeScaling


@pytest.mark.parametrize("device", names("devices"))
@pytest.mark.parametrize("software", names("software"))
def test_every_device_goes_with_every_set(device: str, software: str) -> None:
    made = target(load_device(device), load_software(software))
    assert made.name == f"{device}/{software}"
    assert made.count("amax_launches", 0) == 2
    assert "rmsnorm+quantise" in made.fused_kernels
    assert made.overlap("gather_fprop", "plain")


def test_formats_layouts_and_block_scales_come_from_the_device() -> None:
    software = Software("none")
    gpu, h100 = target(load_device("gpu"), software), target(load_device("h100"), software)
    assert NativeScaling(32, "e8m0") in gpu.native_scaling
    assert gpu.scales_natively(128, "e8m0")
    assert not gpu.scales_natively(128, "fp32")
    assert "mxfp8_e4m3fn" in gpu.matrix_formats
    assert h100.native_scaling == ()
    assert "mxfp8_e4m3fn" not in h100.matrix_formats
    assert gpu.any_operand_layout
    assert not h100.any_operand_layout


def test_switches_counts_kernels_and_overlap_come_from_the_set() -> None:
    npu = load_device("npu")
    early, mature = target(npu, load_software("early")), target(npu, load_software("mature"))
    assert (early.kernel("promotion"), mature.kernel("promotion")) == ("", ""), "each device has its own"
    assert target(npu, load_software("mature", ["kernels.promotion=serial"])).kernel("promotion") == "serial"
    for switch in ("one_kernel_for_both_directions", "scales_in_gemm_order"):
        assert not early.switch(switch)
        assert mature.switch(switch)
    assert not early.overlap("gather_fprop", "block_scaled")
    assert mature.overlap("gather_fprop", "block_scaled")
    assert not mature.overlap("no such collective", "plain")


def test_an_empty_set_offers_nothing() -> None:
    made = target(load_device("npu"), Software("none"))
    assert made.fused_kernels == frozenset()
    assert not made.switch("scales_in_gemm_order")
    assert made.kernel("promotion") == ""


def test_a_kernel_the_device_lacks_is_refused() -> None:
    with pytest.raises(ParameterError) as caught:
        target(load_device("npu"), Software("mine", kernels={"promotion": "two_grop"}))
    assert str(caught.value) == (
        "software.kernels.promotion: device 'npu' has no GEMM kernel 'two_grop'; did you mean 'two_group'? "
        "known: serial, two_group"
    )


def test_a_set_made_in_python_meets_the_same_names() -> None:
    with pytest.raises(ParameterError, match=r"switches: unknown name 'fast'"):
        Software("mine", switches={"fast": True})
    with pytest.raises(ParameterError, match=r"overlap.pipeline: must be of plain, block_scaled, got 'packed'"):
        Software("mine", overlaps={"pipeline": frozenset({"packed"})})
