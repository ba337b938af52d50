"""Collectives: a ring on the level of the interconnect that joins the group, or recursive doubling for few bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.device.kernel.facts import achieved_rate
from hwmodel.device.kernel.pipeline import Phase, Pipeline, Stage
from hwmodel.errors import ParameterError
from hwmodel.units import seconds_to_picoseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hwmodel.device.device import Device, Level
    from hwmodel.graph.demand import Collective


def level_of(demand: Collective, device: Device) -> Level:
    """The smallest level that joins the whole group.

    Raises:
        ParameterError: no level of the device is wide enough.
    """
    span = demand.ranks * demand.stride
    for level in sorted(device.levels, key=lambda level: level.ranks):
        if span <= level.ranks:
            return level
    widest = max((level.ranks for level in device.levels), default=1)
    raise ParameterError(
        "levels", f"device '{device.name}' joins at most {widest} devices, group '{demand.group}' spans {span}"
    )


def candidates(demand: Collective, device: Device) -> Iterator[Pipeline]:
    """A ring; for an all_reduce recursive doubling too, with fewer hops and all bytes on each."""
    level = level_of(demand, device)
    yield _pipeline("ring", demand.sent_bytes, _ring_hops(demand), level, device)
    if demand.kind == "all_reduce":
        hops = (demand.ranks - 1).bit_length()
        yield _pipeline("recursive doubling", hops * demand.full_bytes, hops, level, device)


def _ring_hops(demand: Collective) -> int:
    """Steps one after the other on a ring."""
    if demand.kind == "send_recv":
        return 1
    return (demand.ranks - 1) * (2 if demand.kind == "all_reduce" else 1)


def _pipeline(name: str, sent: int, hops: int, level: Level, device: Device) -> Pipeline:
    """``sent`` bytes per rank in ``hops`` dependent steps on ``level``."""
    link = device.resources[level.resource]
    traffic = [(level.resource, sent)]
    rates = [(level.resource, max(1, int(link.bytes_per_second * level.achieved_fraction)))]
    beside = round(sent * level.memory_bytes_per_link_byte)
    if beside and level.resource != device.memory_resource:
        traffic.append((device.memory_resource, beside))
        rates.append((device.memory_resource, achieved_rate(device, device.memory_resource)))
    transfer = Stage("transfer", level.resource, 0, sent, 0, tuple(traffic))
    phase = Phase("transfer", 1, 1, hops, 1, (transfer,), latency_picoseconds=hops * _hop_picoseconds(level))
    return Pipeline(
        name=f"{name} on {level.name}",
        clock_hz=device.clock_hz,
        phases=(phase,),
        rates=tuple(sorted(rates)),
        launch_picoseconds=seconds_to_picoseconds(device.collective_launch_seconds),
        cores_held=level.cores_held,
    )


def _hop_picoseconds(level: Level) -> int:
    """Fixed time of one step."""
    return seconds_to_picoseconds(level.latency_seconds)
