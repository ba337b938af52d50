"""Devices as sources timed them: kernel times with a source's overhead and its library's share of the rate."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from hwmodel.config.device import load_device
from hwmodel.config.locate import names
from hwmodel.device.kernel import KernelTimer
from hwmodel.errors import RegistryError
from hwmodel.units import PICOSECONDS_PER_SECOND

if TYPE_CHECKING:
    from hwmodel.config.measured import Treatment
    from hwmodel.device import Device
    from hwmodel.graph.demand import Demand


class Bench:
    """Devices by name, each with a timer for every share of the matrix rate."""

    def __init__(self, devices: dict[str, Device] | None = None) -> None:
        """``devices`` stand for those of their names, or of paths."""
        self._devices: dict[str, Device | None] = dict(devices or {})
        self._timer = cache(self._make_timer)

    def device(self, name: str) -> Device | None:
        """The device called ``name``, None if nobody has described it.

        Raises:
            ConfigError: a mistake in its file.
        """
        if name not in self._devices:
            self._devices[name] = load_device(name) if name in names("devices") else None
        return self._devices[name]

    def seconds(self, demand: Demand, name: str, treatment: Treatment | None = None) -> float:
        """What the source would have read for ``demand`` on the device called ``name``.

        Raises:
            ParameterError: the device lacks what the demand needs.
        """
        timer = self._timer(name, 1.0 if treatment is None else treatment.rate_fraction)
        alone = timer.time(demand).picoseconds / PICOSECONDS_PER_SECOND
        return alone if treatment is None else with_overhead(alone, treatment)

    def _make_timer(self, name: str, rate_fraction: float) -> KernelTimer:
        device = self.device(name)
        if device is None:
            raise RegistryError("device", name, tuple(self._devices))
        return KernelTimer(slowed(device, rate_fraction))


def with_overhead(seconds: float, treatment: Treatment) -> float:
    """A kernel's time with what the source's clock counts beside it."""
    if treatment.overhead == "floor":
        return max(seconds, treatment.overhead_seconds)
    return seconds + treatment.overhead_seconds


def slowed(device: Device, rate_fraction: float) -> Device:
    """``device`` whose matrix units sustain a share of what they do."""
    if rate_fraction == 1:
        return device
    matrix = device.matrix
    shares = (matrix.sustained_fraction, matrix.power_fraction)
    sustained, power = (
        {name: rate_fraction * share.get(name, 1.0) for name in matrix.macs_per_cycle} for share in shares
    )
    return replace(device, matrix=replace(matrix, sustained_fraction=sustained, power_fraction=power))
