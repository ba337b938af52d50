"""Whether a device has what a graph asks of its matrix units; all misses at once, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hwmodel.device.device import PROMOTIONS
from hwmodel.errors import UnsupportedError
from hwmodel.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hwmodel.device.device import Device
    from hwmodel.graph import Graph, Node

MATRIX_OPS = frozenset(("gemm", "attention"))
UNSCALED: Final = "bf16"
"""What operands are in where no recipe casts them."""
_ROLES: Final = {"fprop": ("x", "w"), "dgrad": ("g", "w"), "wgrad": ("g", "x")}
"""GEMM of a linear layer -> roles of its operands."""


def check_supported(graphs: Iterable[Graph], device: Device) -> None:
    """Refuse graphs whose matrix work is in formats, pairs of formats or kernels that the device does not have.

    Raises:
        UnsupportedError: every (node, unit, format) the device lacks.
    """
    misses: dict[tuple[str, str, str], str] = {}
    for graph in graphs:
        for node in graph.nodes:
            if node.op in MATRIX_OPS:
                for unit, lacks, path in _misses(node, graph, device):
                    misses.setdefault((node.name, unit, lacks), path)
    if misses:
        raise UnsupportedError(tuple(misses), tuple(misses.values()))


def _misses(node: Node, graph: Graph, device: Device) -> list[tuple[str, str, str]]:
    """(unit, what it lacks, path of what asks for it) of one matrix kernel."""
    has = device.matrix_formats
    operands = [graph.tensors[name].format for name in node.inputs[: 2 if node.op == "gemm" else 1]]
    unit = f"matrix unit of {device.name} (it has {', '.join(sorted(has))})"
    found = [(unit, name, _path(node, place, name)) for place, name in enumerate(operands) if name not in has]
    if not found and len(operands) == 2 and not FORMATS.get(operands[0]).multiplies(FORMATS.get(operands[1])):
        unit = f"matrix unit of {device.name} (it multiplies {_pairs(has)})"
        # The operand that is not cast stands out; of two casts, the first.
        odd = operands.index(UNSCALED) if UNSCALED in operands else 0
        path = _path(node, odd, "" if node.role.rpartition(".")[2] in _ROLES else operands[odd])
        found.append((unit, " by ".join(sorted(operands)), path))
    kernel = getattr(node.params, "kernel", "")
    if kernel and kernel not in (known := (*PROMOTIONS, *sorted(device.gemm_variants))):
        found.append((f"GEMM library of {device.name} (it has {', '.join(known)})", kernel, "params.kernel"))
    return found


def _path(node: Node, place: int, number_format: str) -> str:
    """The value that puts an operand in its format: of the recipe, of the device where no recipe does, or an input."""
    use = node.role.rpartition(".")[2]
    if number_format == UNSCALED and (node.op != "gemm" or use in _ROLES):
        return "matrix.formats"
    return f"recipe.formats.{_ROLES[use][place]}" if node.op == "gemm" and use in _ROLES else f"inputs.{place}"


def _pairs(names: Iterable[str]) -> str:
    """The formats that go together, in words."""
    families: dict[str, list[str]] = {}
    for name in sorted(names):
        families.setdefault(FORMATS.get(name).family, []).append(name)
    mixed = [" and ".join(members) for family, members in families.items() if family and len(members) > 1]
    return ", ".join([f"{members} in any mix" for members in mixed] + ["any other format by itself"])
