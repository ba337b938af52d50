"""What a device refuses about itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hwmodel.device.device import GemmVariant, Path, Resource, StageFact
from hwmodel.errors import ParameterError
from tests.device.devices import tiny_gpu, tiny_npu


def test_a_stage_names_a_path_or_a_unit() -> None:
    with pytest.raises(ParameterError, match=r"stages.load: must name exactly one of path and unit"):
        StageFact("load", ("a",), path="gm_to_l1", unit="cube")
    with pytest.raises(ParameterError, match="must name exactly one of path and unit"):
        StageFact("load", ("a",))


def test_a_path_moves_data_and_a_unit_works() -> None:
    with pytest.raises(ParameterError, match=r"stages.load.moves: must be among a, b, scales, .*, got 'matrix'"):
        StageFact("load", ("matrix",), path="gm_to_l1")
    with pytest.raises(ParameterError, match=r"must be among matrix, vector, got 'a'"):
        StageFact("multiply", ("a",), unit="cube")


def test_a_variant_promotes_in_a_known_way() -> None:
    with pytest.raises(ParameterError, match=r"promotion: must be one of two_group, serial, got 'both'"):
        GemmVariant(promotion="both")
    with pytest.raises(ParameterError, match=r"accumulators: must be >= 0, got -1"):
        GemmVariant(accumulators=-1)


def test_names_within_a_device_exist() -> None:
    device = tiny_npu()
    with pytest.raises(ParameterError, match=r"unknown resource 'port'; known: cube, hbm"):
        replace(device, paths={**device.paths, "gm_to_ub": Path("gm_to_ub", ("port",))})
    with pytest.raises(ParameterError, match=r"stages.load.path: unknown path 'nowhere'"):
        replace(device, stream_stages=(StageFact("load", ("read",), path="nowhere"),))


def test_a_resource_is_a_rate_or_units() -> None:
    with pytest.raises(ParameterError, match=r"exactly one of bytes_per_second and units"):
        Resource("hbm", 1e12, units=2)
    with pytest.raises(ParameterError, match=r"policy: must be one of fair, proportional, got 'first'"):
        Resource("hbm", 1e12, policy="first")


def test_collectives_cannot_hold_every_core() -> None:
    device = tiny_gpu()
    held = tuple(replace(level, cores_held=device.matrix.cores) for level in device.levels)
    with pytest.raises(ParameterError, match=r"levels\.\w+\.cores_held: must be < the \d+ cores of the device"):
        replace(device, levels=held)


def test_a_rate_below_a_byte_per_second_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"bytes_per_second: must be >= 1, got 0.5"):
        Resource("hbm", bytes_per_second=0.5)
