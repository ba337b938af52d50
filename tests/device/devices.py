"""Small devices made by hand: an NPU with separate vector cores, a GPU whose cores do both, and changes to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hwmodel.device.device import (
    Device,
    Level,
    MatrixUnit,
    Path,
    PromotionFact,
    Resource,
    StageFact,
    Tile,
    VectorUnit,
)
from hwmodel.graph.demand import INSTRUCTION_CLASSES

CLOCK_HZ = 1_000_000_000
"""One cycle is 1000 picoseconds."""
BF16_MACS = 1024
FP8_MACS = 2048
HBM_BYTES_PER_SECOND = 1e12


def tiny_npu(**changes: Any) -> Device:
    """Eight matrix cores with two vector cores each, apart from them; MX and per-tensor scales are native."""
    device = Device(
        name="tiny_npu",
        title="Tiny NPU",
        clock_hz=CLOCK_HZ,
        matrix=MatrixUnit(
            cores=8,
            macs_per_cycle={"bf16": BF16_MACS, "fp8_e4m3fn": FP8_MACS, "hif8": FP8_MACS},
            issue_cycles=4,
            sustained_fraction={},
            tiles=(Tile(128, 256, 128), Tile(128, 128, 128), Tile(64, 64, 128)),
            accumulator_bytes=256 * 1024,
            operand_buffer_bytes=512 * 1024,
            scales_share_accumulator=False,
            epilogue_overlaps=True,
        ),
        vector=VectorUnit(16, dict.fromkeys(INSTRUCTION_CLASSES, 64.0), reduction_cycles=500, piece_bytes=16384),
        resources={
            "hbm": Resource("hbm", HBM_BYTES_PER_SECOND, achieved_fraction={"contiguous": 0.8, "transpose": 0.5}),
            "l2": Resource("l2", 4e12),
            "cube": Resource("cube", units=8),
            "vector": Resource("vector", units=16),
            "link": Resource("link", 100e9),
            "nic": Resource("nic", 10e9),
        },
        paths={
            "gm_to_l1": Path("gm_to_l1", ("hbm", "l2"), 128.0, 200),
            "l1_to_l0": Path("l1_to_l0", (), 256.0, 30),
            "l0c_to_gm": Path("l0c_to_gm", ("hbm", "l2"), 64.0, 50),
            "l0c_to_ub": Path("l0c_to_ub", (), 256.0),
            "gm_to_ub": Path("gm_to_ub", ("hbm", "l2"), 64.0, 200),
            "ub_to_gm": Path("ub_to_gm", ("hbm", "l2"), 64.0, 100),
        },
        gemm_stages=(
            StageFact("load", ("a", "b", "scales"), path="gm_to_l1"),
            StageFact("feed", ("a", "b"), path="l1_to_l0"),
            StageFact("multiply", ("matrix",), unit="cube"),
            StageFact("store", ("output",), path="l0c_to_gm"),
        ),
        stream_stages=(
            StageFact("load", ("read",), path="gm_to_ub"),
            StageFact("work", ("vector",), unit="vector"),
            StageFact("store", ("write",), path="ub_to_gm"),
        ),
        levels=(
            Level("node", 8, "link", 1.0, 1e-6, memory_bytes_per_link_byte=2.0),
            Level("network", 1024, "nic", 1.0, 5e-6, memory_bytes_per_link_byte=2.0),
        ),
        memory_bytes=10**9,
        memory_resource="hbm",
        cache_bytes=16 * 2**20,
        launch_seconds=2e-6,
        collective_launch_seconds=5e-6,
        matrix_formats=frozenset({"bf16", "fp8_e4m3fn", "mxfp8_e4m3fn", "hif8"}),
        any_operand_layout=True,
        native_scaling=((32, "e8m0"),),
        promotion=PromotionFact(64.0, "l0c_to_ub", ("vector",), 128 * 256),
        gemm_holds=("cube",),
        stream_holds=("vector",),
        attention_fraction={"forward": 0.7, "backward": 0.5},
    )
    return replace(device, **changes)


def tiny_gpu(**changes: Any) -> Device:
    """Eight cores that do both matrix and vector work, and of which collectives hold some."""
    npu = tiny_npu()
    device = replace(
        npu,
        name="tiny_gpu",
        title="Tiny GPU",
        matrix=replace(
            npu.matrix,
            macs_per_cycle={"bf16": BF16_MACS, "fp8_e4m3fn": FP8_MACS},
            issue_cycles=0,
            tiles=(Tile(256, 256, 128, 2), *npu.matrix.tiles),
            operand_buffer_bytes=224 * 1024,
            epilogue_overlaps=False,
        ),
        vector=VectorUnit(8, dict.fromkeys(INSTRUCTION_CLASSES, 128.0), reduction_cycles=500),
        resources={
            "hbm": npu.resources["hbm"],
            "l2": npu.resources["l2"],
            "sm": Resource("sm", units=8),
            "link": npu.resources["link"],
            "nic": npu.resources["nic"],
        },
        paths={
            "load": Path("load", ("hbm", "l2"), 64.0, 500),
            "store": Path("store", ("hbm", "l2"), 64.0, 300),
        },
        gemm_stages=(
            StageFact("load", ("a", "b", "scales"), path="load"),
            StageFact("multiply", ("matrix",), unit="sm"),
            StageFact("store", ("output",), path="store"),
        ),
        stream_stages=(
            StageFact("load", ("read",), path="load"),
            StageFact("work", ("vector",), unit="sm"),
            StageFact("store", ("write",), path="store"),
        ),
        levels=(
            Level("node", 8, "link", 1.0, 1e-6, cores_held=2, memory_bytes_per_link_byte=2.0),
            Level("network", 1024, "nic", 1.0, 5e-6, cores_held=1, memory_bytes_per_link_byte=2.0),
        ),
        native_scaling=(),
        promotion=PromotionFact(128.0, largest_tile_elements=128 * 128),
        gemm_holds=("sm",),
        stream_holds=("sm",),
    )
    return replace(device, **changes)


def tiny_shared_port() -> Device:
    """The NPU with one port between the vector cores' memory and the rest, which matrix results pass too."""
    npu = tiny_npu()
    shared = ("gm_to_ub", "ub_to_gm", "l0c_to_gm")
    paths = {
        name: replace(path, resources=(*path.resources, "ub_port")) if name in shared else path
        for name, path in npu.paths.items()
    }
    return replace(npu, name="tiny_shared_port", paths=paths, resources={**npu.resources, "ub_port": PORT})


PORT = Resource("ub_port", 2e12)


def with_matrix(device: Device, **changes: Any) -> Device:
    """``device`` with other facts of its matrix unit; collectives hold none of the cores of a single one."""
    matrix = replace(device.matrix, **changes)
    levels = tuple(replace(level, cores_held=min(level.cores_held, matrix.cores - 1)) for level in device.levels)
    return replace(device, matrix=matrix, levels=levels)


def with_rate(device: Device, name: str, bytes_per_second: float) -> Device:
    """``device`` with another rate of one resource."""
    changed = replace(device.resources[name], bytes_per_second=bytes_per_second)
    return replace(device, resources={**device.resources, name: changed})


def unlimited(device: Device, tiles: tuple[Tile, ...]) -> Device:
    """``device`` where nothing but matrix work takes time, on one list of tiles."""
    resources = {
        name: replace(resource, bytes_per_second=1e21, achieved_fraction={}) if resource.bytes_per_second else resource
        for name, resource in device.resources.items()
    }
    paths = {name: Path(name, path.resources) for name, path in device.paths.items()}
    matrix = replace(device.matrix, tiles=tiles, issue_cycles=0, sustained_fraction={}, epilogue_overlaps=True)
    return replace(device, resources=resources, paths=paths, matrix=matrix, launch_seconds=0.0)
