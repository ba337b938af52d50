"""Collectives: rings on the level of the interconnect that joins the group, or recursive doubling for few bytes.

A group that leaves its inner domains has one ring for each rank it has in a domain, and every ring leaves by another
device's link: a device's outer link carries its share of the rings' bytes, its inner link all of them (the way NCCL
lays its channels).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.device.kernel.facts import achieved_rate
from hwmodel.device.kernel.pipeline import Phase, Pipeline, Stage
from hwmodel.errors import ParameterError
from hwmodel.units import ceil_div, seconds_to_picoseconds

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
    sent, hops = demand.sent_bytes, _ring_hops(demand)
    inner = _inner(demand, level, device)
    if inner is None:
        yield _pipeline("ring", {level.resource: sent}, sent, hops=hops, level=level, device=device)
    else:
        domain, rings = inner
        links = {level.resource: ceil_div(sent, rings), domain.resource: sent}
        yield _pipeline(f"{rings} rings", links, sent, hops=hops, level=level, device=device)
    if demand.kind == "all_reduce":
        hops = (demand.ranks - 1).bit_length()
        sent = hops * demand.full_bytes
        yield _pipeline("recursive doubling", {level.resource: sent}, sent, hops=hops, level=level, device=device)


def _inner(demand: Collective, level: Level, device: Device) -> tuple[Level, int] | None:
    """The widest level inside ``level`` that joins several ranks of the group by another link, and how many."""
    if demand.kind == "send_recv":
        return None
    inside = [other for other in device.levels if other.ranks < level.ranks and other.resource != level.resource]
    for other in sorted(inside, key=lambda other: -other.ranks):
        if other.ranks // demand.stride > 1:
            return other, min(demand.ranks, other.ranks // demand.stride)
    return None


def _ring_hops(demand: Collective) -> int:
    """Steps one after the other on a ring."""
    if demand.kind == "send_recv":
        return 1
    return (demand.ranks - 1) * (2 if demand.kind == "all_reduce" else 1)


def _pipeline(name: str, links: dict[str, int], sent: int, *, hops: int, level: Level, device: Device) -> Pipeline:
    """``sent`` bytes per rank in ``hops`` dependent steps on ``level``; ``links`` says what each link carries of it."""
    traffic = list(links.items())
    achieved = {other.resource: other.achieved_fraction for other in device.levels} | {
        level.resource: level.achieved_fraction
    }
    rates = [(link, max(1, int(device.resources[link].bytes_per_second * achieved[link]))) for link in links]
    beside = round(sent * level.memory_bytes_per_link_byte)
    if beside and device.memory_resource not in links:
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
