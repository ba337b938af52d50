"""Facts of a device as kernels ask for them: rates by format, achieved bandwidth, bytes of stages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.errors import ParameterError
from hwmodel.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hwmodel.device.device import Device, Path, StageFact

CONTIGUOUS = "contiguous"


def matrix_rate(device: Device, name: str) -> int:
    """Multiply-accumulates per cycle of one core at the peak, in the format ``name``.

    Raises:
        ParameterError: the matrix unit has no rate for it.
    """
    return device.matrix.macs_per_cycle[listed_format(device, name)]


def reached_rate(device: Device, share: Mapping[str, float], formats: Iterable[str]) -> float:
    """Multiply-accumulates per cycle of one core at ``share`` of the peak, in the slowest of ``formats``.

    Args:
        device: the device.
        share: what is reached of the peak, by format; 1 where a format is not listed.
        formats: of the operands.

    Raises:
        ParameterError: the matrix unit has no rate for one of them.
    """
    rates = device.matrix.macs_per_cycle
    return min(rates[listed] * share.get(listed, 1.0) for listed in (listed_format(device, name) for name in formats))


def listed_format(device: Device, name: str) -> str:
    """``name``, or the format whose rate it shares.

    Raises:
        ParameterError: the matrix unit has no rate for either.
    """
    rates = device.matrix.macs_per_cycle
    if name in rates:
        return name
    other = FORMATS.get(name).rate_as
    if other in rates:
        return other
    raise ParameterError(
        "matrix.macs_per_cycle", f"device '{device.name}' has no rate for '{name}'; known: {', '.join(sorted(rates))}"
    )


def vector_rate(device: Device, instruction: str) -> float:
    """Elements per cycle of one vector core.

    Raises:
        ParameterError: the device has no rate for this class.
    """
    rate = device.vector.elements_per_cycle.get(instruction, 0.0)
    if rate <= 0:
        known = ", ".join(sorted(device.vector.elements_per_cycle))
        raise ParameterError(
            "vector.elements_per_cycle", f"device '{device.name}' has no rate for '{instruction}'; known: {known}"
        )
    return rate


def achieved_rate(device: Device, name: str, access: str = CONTIGUOUS) -> int:
    """Bytes per second that well-written kernels reach on the resource ``name``, a whole number >= 1."""
    resource = device.resources[name]
    shares = resource.achieved_fraction
    return max(1, int(resource.bytes_per_second * shares.get(access, shares.get(CONTIGUOUS, 1.0))))


def achieved_rates(device: Device, paths: Iterable[Path], access: str = CONTIGUOUS) -> tuple[tuple[str, int], ...]:
    """(resource, bytes per second reached) of all resources on ``paths`` and of device memory."""
    names = {name for path in paths for name in path.resources} | {device.memory_resource}
    return tuple((name, achieved_rate(device, name, access)) for name in sorted(names))


def path_cycles(path: Path, count: int, cores: int) -> int:
    """Cycles that ``count`` bytes take on the path, shared by ``cores`` cores; 0 where the path sets no rate."""
    if not path.bytes_per_cycle:
        return 0
    return whole_cycles(count / (path.bytes_per_cycle * cores))


def whole_cycles(cycles: float) -> int:
    """Rounded up."""
    whole = int(cycles)
    return whole if whole == cycles else whole + 1


def moved(fact: StageFact, amounts: dict[str, int]) -> int:
    """Sum of ``amounts`` over what the stage moves."""
    total = 0
    for move in fact.moves:
        total += amounts.get(move, 0)
    return total


def traffic(device: Device, path: Path, passing: int, memory: int) -> tuple[tuple[str, int], ...]:
    """(resource, bytes): ``memory`` on device memory, ``passing`` on every other resource of the path."""
    if not path.resources:
        return ()
    return tuple([(name, memory if name == device.memory_resource else passing) for name in path.resources])
