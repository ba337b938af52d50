"""The built-in schedules: transfers beside compute, or everything on one stream."""

from __future__ import annotations

from hwmodel.graph import Collective, Demand, Elapsed, Node
from hwmodel.schedules.plan import MAIN_STREAM
from hwmodel.schedules.registry import SCHEDULES


def overlap(node: Node, demand: Demand) -> str:
    """Transfers that software can overlap run on a stream per communication group, all else on the main stream.

    Time that passes elsewhere (another stage's bubble, exposed traffic) has a lane of its own.
    """
    if isinstance(demand, Elapsed):
        return node.op
    if isinstance(demand, Collective) and node.params.overlapped:
        return f"comm.{demand.group}"
    return MAIN_STREAM


def serial(node: Node, demand: Demand) -> str:
    """One stream: nothing overlaps, the step is the sum of its kernels."""
    del node, demand
    return MAIN_STREAM


SCHEDULES.register("overlap", overlap)
SCHEDULES.register("serial", serial)
