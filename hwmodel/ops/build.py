"""Writing a graph node by node: shapes and formats are inferred, and a name that does not fit is refused at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.errors import GraphError
from hwmodel.graph import Graph, Node, Params, TensorSpec
from hwmodel.graph.order import check
from hwmodel.ops.base import OPS, inferred

if TYPE_CHECKING:
    from collections.abc import Sequence


class Builder:
    """A graph being written. Nodes stand in the order they are added and read only what exists by then."""

    __slots__ = ("_inputs", "_nodes", "_outputs", "_tensors", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._tensors: dict[str, TensorSpec] = {}
        self._nodes: dict[str, Node] = {}
        self._inputs: list[str] = []
        self._outputs: list[str] = []

    def input(self, name: str, shape: tuple[int, ...], format: str) -> str:
        """Add a tensor that exists before the first node; gives its name.

        Raises:
            GraphError: the name is taken.
        """
        self._add_tensor(TensorSpec(name, shape, format))
        self._inputs.append(name)
        return name

    def add(
        self,
        op: str,
        params: Params,
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        name: str | None = None,
        layer: int | None = None,
        role: str = "",
        after: Sequence[str] = (),
    ) -> tuple[str, ...]:
        """Add a node and the tensors it writes; gives their names.

        Args:
            op: name of a registered op.
            params: its params record.
            inputs: names of tensors, in the op's order.
            outputs: names for what it gives, in the op's order.
            name: of the node; without one that of its first output, or op and place.
            layer: as in `Node`.
            role: as in `Node`.
            after: names of nodes already added that must end first.

        Raises:
            GraphError: a name is taken, or names nothing that exists yet.
            ParameterError: inputs or params the op refuses, or another number of outputs than names.
            RegistryError: unknown op.
        """
        if name is None:
            name = outputs[0] if outputs else f"{op}.{len(self._nodes)}"
        if name in self._nodes:
            raise GraphError(self.name, f"two nodes are called {name!r}")
        for before in after:
            if before not in self._nodes:
                raise GraphError(self.name, f"node {name!r} waits for {before!r}, which is no node yet")
        node = Node(name, op, params, tuple(inputs), tuple(outputs), tuple(after), layer, role)
        read = tuple(self._read(tensor, name) for tensor in node.inputs)
        for spec in inferred(OPS.get(op), params, read, node.outputs, name):
            self._add_tensor(spec)
        self._nodes[name] = node
        return node.outputs

    def node_names(self) -> frozenset[str]:
        """Names of the nodes added so far."""
        return frozenset(self._nodes)

    def has(self, name: str) -> bool:
        """A tensor of that name exists."""
        return name in self._tensors

    def spec(self, name: str) -> TensorSpec:
        """Shape and format of a tensor that exists.

        Raises:
            GraphError: there is none of that name yet.
        """
        try:
            return self._tensors[name]
        except KeyError:
            raise GraphError(self.name, f"no tensor {name!r} yet") from None

    def outputs(self, *names: str) -> None:
        """Name tensors that the graph gives.

        Raises:
            GraphError: there is none of that name yet.
        """
        self._outputs += [self.spec(name).name for name in names]

    def graph(self) -> Graph:
        """What has been written so far."""
        nodes = tuple(self._nodes.values())
        graph = Graph(self.name, dict(self._tensors), nodes, tuple(self._inputs), tuple(self._outputs))
        check(graph)
        return graph

    def _read(self, tensor: str, node: str) -> TensorSpec:
        spec = self._tensors.get(tensor)
        if spec is None:
            raise GraphError(self.name, f"node {node!r} reads {tensor!r}, which no node has written yet")
        return spec

    def _add_tensor(self, spec: TensorSpec) -> None:
        if spec.name in self._tensors:
            raise GraphError(self.name, f"tensor {spec.name!r} exists already")
        self._tensors[spec.name] = spec
