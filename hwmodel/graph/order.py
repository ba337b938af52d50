"""Is a graph sound, and in which order may its nodes run. The one place in ``graph`` that knows networkx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hwmodel.errors import GraphError

if TYPE_CHECKING:
    import networkx as nx

    from hwmodel.graph.graph import Graph, Node

Edges = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One reason why a graph cannot be executed."""

    kind: Literal["name", "spec", "written", "read", "after", "output", "cycle"]
    message: str
    nodes: tuple[int, ...] = ()
    """Places of the nodes concerned, in the written order of nodes; of a cycle, in its own."""
    tensor: str = ""
    """The tensor concerned, where it is one."""


def faults(graph: Graph) -> tuple[Fault, ...]:
    """Every reason why a graph cannot be executed.

    Two nodes of one name, a tensor without a spec or under another name, a tensor that is written twice or is an input
    and written, a read of something that nothing writes, a wait for an unknown node, an output that nothing gives, and
    a cycle of each tangle of nodes.
    """
    return _examined(graph)[1]


def check(graph: Graph) -> None:
    """Refuse, by name, a graph that cannot be executed.

    Raises:
        GraphError: what `faults` finds, each on a line.
    """
    _sound_edges(graph)


def order(graph: Graph) -> tuple[Node, ...]:
    """The nodes such that each comes behind all it needs; of those that may come next the first written comes first.

    Raises:
        GraphError: as `check`.
    """
    edges = _sound_edges(graph)
    # If the written order is a possible one it is the least of all: nothing to search.
    if all(before < after for before, after in edges):
        return graph.nodes
    from networkx import lexicographical_topological_sort  # noqa: PLC0415 - 0.2 s that few graphs need

    return tuple(graph.nodes[index] for index in lexicographical_topological_sort(_digraph(graph, edges)))


def _sound_edges(graph: Graph) -> Edges:
    """The edges of a graph that can be executed."""
    edges, found = _examined(graph)
    if found:
        raise GraphError(graph.name, "\n".join(fault.message for fault in found))
    return edges


def _examined(graph: Graph) -> tuple[Edges, tuple[Fault, ...]]:
    """(before, after) as places in the written order, in that order, and what is wrong."""
    looking = _Look(graph)
    places = looking.places()
    writers = looking.writers()
    edges = looking.edges(places, writers)
    looking.outputs()
    if any(before >= after for before, after in edges):
        looking.found += _cycles(graph, edges)
    return edges, tuple(looking.found)


class _Look:
    """Reads a graph and notes what is wrong."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.given = set(graph.inputs)
        self.found: list[Fault] = []

    def places(self) -> dict[str, int]:
        """Place of each node in the written order; of several with one name, the first."""
        places: dict[str, int] = {}
        for place, node in enumerate(self.graph.nodes):
            first = places.setdefault(node.name, place)
            if first != place:
                self.found.append(Fault("name", f"two nodes are called {node.name!r}", (first, place)))
        return places

    def writers(self) -> dict[str, int]:
        """Place of the first node that writes each tensor."""
        for name in self.graph.inputs:
            self.spec("the list of graph inputs", name)
        writers: dict[str, int] = {}
        for place, node in enumerate(self.graph.nodes):
            for name in node.outputs:
                self.spec(f"node {node.name!r}", name, place)
                if name in self.given:
                    message = f"tensor {name!r} is a graph input and is written by node {node.name!r}"
                    self.found.append(Fault("written", message, (place,), name))
                elif name in writers:
                    first = self.graph.nodes[writers[name]].name
                    message = f"tensor {name!r} is written twice, by node {first!r} and by node {node.name!r}"
                    self.found.append(Fault("written", message, (writers[name], place), name))
                writers.setdefault(name, place)
        return writers

    def edges(self, places: dict[str, int], writers: dict[str, int]) -> Edges:
        """(before, after) of all that is read and waited for."""
        edges: Edges = []
        for place, node in enumerate(self.graph.nodes):
            for name in node.inputs:
                if name in self.given:
                    continue
                if name in writers:
                    edges.append((writers[name], place))
                elif self.spec(f"node {node.name!r}", name, place):
                    message = f"node {node.name!r} reads {name!r}, which no node writes and which is not a graph input"
                    self.found.append(Fault("read", message, (place,), name))
            for name in node.after:
                if name in places:
                    edges.append((places[name], place))
                else:
                    message = f"node {node.name!r} waits for {name!r}, which is not a node"
                    self.found.append(Fault("after", message, (place,)))
        return edges

    def outputs(self) -> None:
        """What the graph gives exists."""
        known = self.given.union(*(node.outputs for node in self.graph.nodes))
        for name in self.graph.outputs:
            if name not in known:
                message = f"output {name!r} is no graph input and no node writes it"
                self.found.append(Fault("output", message, tensor=name))

    def spec(self, where: str, name: str, place: int | None = None) -> bool:
        """Whether a tensor has a spec under its name."""
        nodes = () if place is None else (place,)
        spec = self.graph.tensors.get(name)
        if spec is None:
            self.found.append(Fault("spec", f"{where} names tensor {name!r}, which has no spec", nodes, name))
        elif spec.name != name:
            self.found.append(Fault("spec", f"the spec of tensor {name!r} is named {spec.name!r}", nodes, name))
        return spec is not None and spec.name == name


def _cycles(graph: Graph, edges: Edges) -> list[Fault]:
    """A cycle of each tangle of nodes that wait for each other, by the first node written."""
    import networkx as nx  # noqa: PLC0415 - 0.2 s that few graphs need

    digraph = _digraph(graph, edges)
    if nx.is_directed_acyclic_graph(digraph):
        return []
    # Looking inside one tangle at a time: a search over the whole graph takes seconds for thousands of nodes.
    loops = set(nx.nodes_with_selfloops(digraph))
    tangles = [tangle for tangle in nx.strongly_connected_components(digraph) if len(tangle) > 1 or tangle & loops]
    found = []
    for tangle in sorted(tangles, key=min):
        cycle = nx.find_cycle(nx.subgraph(digraph, tangle), source=min(tangle))
        places = _turned([edge[0] for edge in cycle])
        names = [graph.nodes[place].name for place in (*places, places[0])]
        found.append(Fault("cycle", "cycle: " + " -> ".join(f"{name!r}" for name in names), tuple(places)))
    return found


def _turned(cycle: list[int]) -> list[int]:
    """The same cycle, begun at the node that was written first."""
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]


def _digraph(graph: Graph, edges: Edges) -> nx.DiGraph[int]:
    from networkx import DiGraph  # noqa: PLC0415 - 0.2 s that few graphs need

    digraph: nx.DiGraph[int] = DiGraph()
    digraph.add_nodes_from(range(len(graph.nodes)))
    digraph.add_edges_from(edges)
    return digraph
