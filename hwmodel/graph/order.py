"""Is a graph sound, and in which order may its nodes run. The one place in ``graph`` that knows networkx."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.errors import GraphError

if TYPE_CHECKING:
    import networkx as nx

    from hwmodel.graph.graph import Graph, Node


def check(graph: Graph) -> None:
    """Refuse, by name, a graph that cannot be executed.

    Raises:
        GraphError: two nodes of one name, a tensor without a spec or under another name, a tensor that is written
            twice or is an input and written, a read of something that nothing writes, a wait for an unknown node, an
            output that nothing gives, or a cycle.
    """
    edges = _edges(graph)
    _check_outputs(graph)
    if any(before >= after for before, after in edges):
        _check_cycle(graph, edges)


def order(graph: Graph) -> tuple[Node, ...]:
    """The nodes such that each comes behind all it needs; of those that may come next the first written comes first.

    Raises:
        GraphError: as `check`.
    """
    check(graph)
    edges = _edges(graph)
    # If the written order is a possible one it is the least of all: nothing to search.
    if all(before < after for before, after in edges):
        return graph.nodes
    from networkx import lexicographical_topological_sort  # noqa: PLC0415 - 0.2 s that few graphs need

    return tuple(graph.nodes[index] for index in lexicographical_topological_sort(_digraph(graph, edges)))


def _edges(graph: Graph) -> list[tuple[int, int]]:
    """(before, after) as places in the written order, in that order; refuses names that do not fit together."""
    places = _places(graph)
    writers = _writers(graph)
    given = set(graph.inputs)
    edges: list[tuple[int, int]] = []
    for place, node in enumerate(graph.nodes):
        for name in node.inputs:
            writer = writers.get(name)
            if writer is not None:
                edges.append((writer, place))
            elif name not in given:
                _check_spec(graph, f"node {node.name!r}", name)
                message = f"node {node.name!r} reads {name!r}, which no node writes and which is not a graph input"
                raise GraphError(graph.name, message)
        for name in node.after:
            if name not in places:
                raise GraphError(graph.name, f"node {node.name!r} waits for {name!r}, which is not a node")
            edges.append((places[name], place))
    return edges


def _places(graph: Graph) -> dict[str, int]:
    """Place of each node in the written order."""
    places: dict[str, int] = {}
    for place, node in enumerate(graph.nodes):
        if node.name in places:
            raise GraphError(graph.name, f"two nodes are called {node.name!r}")
        places[node.name] = place
    return places


def _writers(graph: Graph) -> dict[str, int]:
    """Place of the node that writes each tensor."""
    for name in graph.inputs:
        _check_spec(graph, "the list of graph inputs", name)
    given = set(graph.inputs)
    writers: dict[str, int] = {}
    for place, node in enumerate(graph.nodes):
        for name in node.outputs:
            _check_spec(graph, f"node {node.name!r}", name)
            if name in given:
                raise GraphError(graph.name, f"tensor {name!r} is a graph input and is written by node {node.name!r}")
            if name in writers:
                first = graph.nodes[writers[name]].name
                message = f"tensor {name!r} is written twice, by node {first!r} and by node {node.name!r}"
                raise GraphError(graph.name, message)
            writers[name] = place
    return writers


def _check_spec(graph: Graph, where: str, name: str) -> None:
    spec = graph.tensors.get(name)
    if spec is None:
        raise GraphError(graph.name, f"{where} names tensor {name!r}, which has no spec")
    if spec.name != name:
        raise GraphError(graph.name, f"the spec of tensor {name!r} is named {spec.name!r}")


def _check_outputs(graph: Graph) -> None:
    known = set(graph.inputs).union(*(node.outputs for node in graph.nodes))
    for name in graph.outputs:
        if name not in known:
            raise GraphError(graph.name, f"output {name!r} is no graph input and no node writes it")


def _check_cycle(graph: Graph, edges: list[tuple[int, int]]) -> None:
    import networkx as nx  # noqa: PLC0415 - 0.2 s that few graphs need

    digraph = _digraph(graph, edges)
    if nx.is_directed_acyclic_graph(digraph):
        return
    # Looking inside one tangle only: a search over the whole graph takes seconds for thousands of nodes.
    loops = set(nx.nodes_with_selfloops(digraph))
    tangles = [tangle for tangle in nx.strongly_connected_components(digraph) if len(tangle) > 1 or tangle & loops]
    tangle = min(tangles, key=min)
    found = nx.find_cycle(nx.subgraph(digraph, tangle), source=min(tangle))
    names = [graph.nodes[place].name for place in _turned([edge[0] for edge in found])]
    raise GraphError(graph.name, "cycle: " + " -> ".join(f"{name!r}" for name in (*names, names[0])))


def _turned(cycle: list[int]) -> list[int]:
    """The same cycle, begun at the node that was written first."""
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]


def _digraph(graph: Graph, edges: list[tuple[int, int]]) -> nx.DiGraph[int]:
    from networkx import DiGraph  # noqa: PLC0415 - 0.2 s that few graphs need

    digraph: nx.DiGraph[int] = DiGraph()
    digraph.add_nodes_from(range(len(graph.nodes)))
    digraph.add_edges_from(edges)
    return digraph
