"""Whether a device has what a graph asks of its matrix units; all misses at once, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hwmodel.device.device import Device
    from hwmodel.graph import Graph

MATRIX_OPS = frozenset(("gemm", "attention"))


def check_supported(graphs: Iterable[Graph], device: Device) -> None:
    """Refuse graphs whose matrix work is in formats the device does not multiply.

    Raises:
        UnsupportedError: every (node, unit, format) the device lacks.
    """
    misses: dict[tuple[str, str, str], None] = {}
    unit = f"matrix unit of {device.name} (it has {', '.join(sorted(device.matrix_formats))})"
    for graph in graphs:
        for node in graph.nodes:
            if node.op in MATRIX_OPS:
                operands = node.inputs[:2] if node.op == "gemm" else node.inputs[:1]
                for name in operands:
                    number_format = graph.tensors[name].format
                    if number_format not in device.matrix_formats:
                        misses[node.name, unit, number_format] = None
    if misses:
        raise UnsupportedError(tuple(misses))
