"""The family of schedules and the one function that turns a graph into a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hwmodel.graph import Attention, Collective, Demand, Elapsed, Fused, Gemm, Graph, Node, Stream
from hwmodel.ops import OPS, demand_node
from hwmodel.registry import Registry
from hwmodel.schedules.plan import Plan, Task, TaskInfo, Variant
from hwmodel.units import ceil_div

if TYPE_CHECKING:
    from hwmodel.device import Device
    from hwmodel.device.kernel import KernelTimer

Schedule = Callable[[Node, Demand], str]
"""The stream a node runs on. Order on every stream is the order the graph was written in."""

SCHEDULES: Registry[Schedule] = Registry("schedule")


def write_plan(graph: Graph, device: Device, timer: KernelTimer, schedule: str) -> Plan:
    """The graph's nodes as tasks with their time alone, on the streams of ``schedule``, in written order.

    Views (splits, joins) cost nothing and are no tasks; their readers wait for what the view shows.
    """
    place = SCHEDULES.get(schedule)
    tasks: list[Task] = []
    made_by: dict[str, tuple[int, ...]] = {}
    ended_by: dict[str, tuple[int, ...]] = {}
    for node in graph.nodes:
        waits = {index for name in node.inputs for index in made_by.get(name, ())}
        waits.update(index for name in node.after for index in ended_by[name])
        demand = demand_node(node, graph)
        if isinstance(demand, Elapsed) and demand.picoseconds == 0:
            owners = tuple(sorted(waits))
        else:
            stream = place(node, demand)
            after = tuple(sorted(index for index in waits if tasks[index].stream != stream))
            tasks.append(_task(node, demand, graph, stream=stream, after=after, timer=timer))
            owners = (len(tasks) - 1,)
        ended_by[node.name] = owners
        made_by.update(dict.fromkeys(node.outputs, owners))
    policies = tuple(sorted((name, resource.policy) for name, resource in device.resources.items()))
    return Plan(graph.name, tuple(tasks), policies, cores=device.matrix.cores)


def _task(node: Node, demand: Demand, graph: Graph, *, stream: str, after: tuple[int, ...], timer: KernelTimer) -> Task:
    op = OPS.get(node.op)
    alone = timer.time(demand)
    info = TaskInfo(
        op=node.op,
        role=node.role or node.op,
        layer=node.layer,
        bytes=demand.bytes,
        flops=demand.flops,
        bound=alone.bound,
        shape=_shape(demand, node, graph),
        parts=alone.parts,
        launches=_launches(node, demand),
    )
    variants = tuple(Variant(cores, time.picoseconds, time.demands) for cores, time in timer.variants(demand))
    return Task(
        name=node.name,
        stream=stream,
        kind=op.kind,
        alone_picoseconds=alone.picoseconds,
        demands=alone.demands,
        after=after,
        cores_held=alone.cores_held,
        variants=variants if len(variants) > 1 else (),
        info=info,
    )


def _launches(node: Node, demand: Demand) -> int:
    if isinstance(demand, Elapsed):
        return int(OPS.get(node.op).kind == "collective")
    if isinstance(demand, Fused):
        return demand.whole.launches
    return demand.launches if isinstance(demand, Stream) else 1


def _shape(demand: Demand, node: Node, graph: Graph) -> str:
    if isinstance(demand, Gemm):
        return f"{demand.m}x{demand.n}x{demand.k} {demand.a_format}"
    if isinstance(demand, Attention):
        return f"{demand.query_heads} heads, {demand.query_rows}x{demand.key_value_rows}x{demand.qk_head_size}"
    if isinstance(demand, Collective):
        shard = ceil_div(demand.full_bytes, demand.ranks)
        return f"{demand.full_bytes} B full, {shard} B per rank, {demand.ranks} ranks"
    if isinstance(demand, Elapsed) or not node.inputs:
        return ""
    spec = graph.tensors[node.inputs[0]]
    return f"{'x'.join(str(extent) for extent in spec.shape)} {spec.format}"
