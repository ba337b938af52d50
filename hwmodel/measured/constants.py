"""Constants of a device that measurements can fit: where they stand in its file, their bounds, and how to set them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hwmodel.device import Device
from hwmodel.errors import ParameterError, suggestion

if TYPE_CHECKING:
    from hwmodel.device.device import Resource

SECTION: Final = "calibration"
OVERHEAD: Final = "overhead_seconds"
RATE: Final = "rate_fraction"
CLOCK: Final = (OVERHEAD, RATE)
"""What belongs to whoever timed and not to the device: see ``treatments`` in ``measured/sources.yaml``."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Something to fit: a path in a device file, or a name of `CLOCK`."""

    path: str
    low: float
    high: float
    unit: str = ""
    """'s', or nothing for shares and cycles."""
    whole: bool = False
    """Written as a whole number."""

    @property
    def of_device(self) -> bool:
        """It stands in the device's file."""
        return self.path not in CLOCK


_SHARE: Final = (0.3, 1.0)
"""No kernel does more than the peak; where it does less than a third, something else limits it."""
_LAUNCH: Final = (1e-7, 1e-4)
"""From a hardware queue to a slow framework, in seconds."""
_CYCLES: Final = (30.0, 10000.0)
"""From one trip to on-chip memory up to some microseconds."""


def constant(path: str, device: Device) -> Constant:
    """The constant at ``path``, such as ``calibration.sustained_fraction.bf16``; the section may be left out.

    Raises:
        ParameterError: ``device`` has none there.
    """
    name = path.removeprefix(f"{SECTION}.")
    if name == OVERHEAD:
        return Constant(OVERHEAD, *_LAUNCH, unit="s")
    if name == RATE:
        return Constant(RATE, *_SHARE)
    full, known = f"{SECTION}.{name}", known_paths(device)
    if full not in known:
        raise ParameterError("--constants", f"unknown constant {path!r}{suggestion(full, [*known, *CLOCK])}")
    scalar = _SCALARS.get(name)
    return Constant(full, *scalar.bounds, scalar.unit, scalar.whole) if scalar else Constant(full, *_SHARE)


def known_paths(device: Device) -> tuple[str, ...]:
    """All constants of ``device`` that can be fitted."""
    names: list[str] = list(_SCALARS)
    for family in ("sustained_fraction", "power_fraction"):
        names += (f"{family}.{name}" for name in device.matrix.macs_per_cycle)
    rated = [name for name, resource in device.resources.items() if resource.bytes_per_second]
    names += (f"achieved_fraction.{name}.{access}" for name in rated for access in ACCESSES)
    return tuple(f"{SECTION}.{name}" for name in names)


ACCESSES: Final = ("contiguous", "transpose", "latency", "gemm")


def value(constant: Constant, device: Device) -> float:
    """What ``device`` has at the path of one of its constants."""
    family, _, rest = constant.path.removeprefix(f"{SECTION}.").partition(".")
    if family in _SCALARS:
        return _SCALARS[family].get(device)
    if family == "achieved_fraction":
        name, _, access = rest.partition(".")
        shares = device.resources[name].achieved_fraction
        return shares.get(access, shares.get("contiguous", 1.0))
    shares = getattr(device.matrix, family)
    return float(shares.get(rest, 1.0))


def with_values(device: Device, values: Mapping[str, float]) -> Device:
    """``device`` with constants of its file set, by path."""
    matrix = {name: dict(getattr(device.matrix, name)) for name in ("sustained_fraction", "power_fraction")}
    resources: dict[str, Resource] = dict(device.resources)
    for path, number in values.items():
        family, _, rest = path.removeprefix(f"{SECTION}.").partition(".")
        if family in matrix:
            matrix[family][rest] = number
        elif family == "achieved_fraction":
            name, _, access = rest.partition(".")
            kept = resources[name]
            resources[name] = replace(kept, achieved_fraction={**kept.achieved_fraction, access: number})
    sustained, power = matrix["sustained_fraction"], matrix["power_fraction"]
    unit = replace(device.matrix, sustained_fraction=sustained, power_fraction=power)
    changed = replace(device, matrix=unit, resources=resources)
    for path, number in values.items():
        scalar = _SCALARS.get(path.removeprefix(f"{SECTION}."))
        if scalar is not None:
            changed = scalar.set(changed, number)
    return changed


def usual(device: Device, formats: Iterable[str]) -> tuple[str, ...]:
    """What a GEMM fit frees, what matters most first.

    Args:
        device: the device.
        formats: of the operands, as its matrix unit lists them, commonest first.
    """
    formats = tuple(formats)
    memory = device.memory_resource
    shared = [name for path in device.paths.values() for name in path.resources if name != memory]
    names = [f"sustained_fraction.{name}" for name in formats]
    names += [f"achieved_fraction.{memory}.gemm", "launch_seconds", "tile_cycles"]
    names += (f"power_fraction.{name}" for name in formats)
    names += (f"achieved_fraction.{name}.gemm" for name in dict.fromkeys(shared))
    return tuple(f"{SECTION}.{name}" for name in names)


@dataclass(frozen=True, slots=True)
class _Scalar:
    bounds: tuple[float, float]
    unit: str
    whole: bool
    get: Callable[[Device], float]
    set: Callable[[Device, float], Device]


def _matrix_cycles(device: Device, number: float) -> Device:
    return replace(device, matrix=replace(device.matrix, tile_cycles=round(number)))


def _reduction(device: Device, number: float) -> Device:
    return replace(device, vector=replace(device.vector, reduction_cycles=round(number)))


_SCALARS: Final[Mapping[str, _Scalar]] = {
    "launch_seconds": _Scalar(
        _LAUNCH, "s", False, lambda device: device.launch_seconds, lambda device, x: replace(device, launch_seconds=x)
    ),
    "tile_cycles": _Scalar(_CYCLES, "", True, lambda device: device.matrix.tile_cycles, _matrix_cycles),
    "reduction_cycles": _Scalar(_CYCLES, "", True, lambda device: device.vector.reduction_cycles, _reduction),
}
