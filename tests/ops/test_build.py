"""Writing graphs: what does not fit is refused at once, by name."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from hwmodel.errors import GraphError, ParameterError, RegistryError
from hwmodel.graph import TensorSpec
from hwmodel.ops import Builder
from hwmodel.ops.elapsed import ElapsedParams
from hwmodel.ops.gemm import GemmParams
from hwmodel.ops.residual_add import ResidualAddParams

ADD = ResidualAddParams()


def builder() -> Builder:
    made = Builder("g")
    made.input("x", (4, 8), "bf16")
    made.input("w", (8, 16), "bf16")
    return made


def test_a_graph_keeps_the_order_names_and_roles_it_was_written_with() -> None:
    made = builder()
    assert made.add("gemm", GemmParams(), ("x", "w"), ("y",), layer=3, role="fc1.fprop") == ("y",)
    made.add("bubble", ElapsedParams(5), (), (), after=("y",))
    made.add("residual_add", ADD, ("y", "y"), ("z",), name="sum")
    made.outputs("z")
    graph = made.graph()
    assert [node.name for node in graph.nodes] == ["y", "bubble.1", "sum"]
    assert (graph.nodes[0].layer, graph.nodes[0].role) == (3, "fc1.fprop")
    assert graph.nodes[1].after == ("y",)
    assert (graph.inputs, graph.outputs) == (("x", "w"), ("z",))
    assert made.spec("z") == graph.tensors["z"] == TensorSpec("z", (4, 16), "bf16")


def test_refusals() -> None:
    made = builder()
    made.add("residual_add", ADD, ("x", "x"), ("y",))
    cases: tuple[tuple[Any, dict[str, Any], str], ...] = (
        (("residual_add", ADD, ("x", "x"), ("z",)), {"name": "y"}, "graph 'g': two nodes are called 'y'"),
        (("residual_add", ADD, ("x", "x"), ("x",)), {}, "graph 'g': tensor 'x' exists already"),
        (("residual_add", ADD, ("x", "u"), ("z",)), {}, "graph 'g': node 'z' reads 'u', which no node has written yet"),
        (
            ("residual_add", ADD, ("x", "x"), ("z",)),
            {"after": ("late",)},
            "graph 'g': node 'z' waits for 'late', which is no node yet",
        ),
    )
    for arguments, keywords, message in cases:
        with pytest.raises(GraphError) as refused:
            made.add(*arguments, **keywords)
        assert str(refused.value) == message
    with pytest.raises(GraphError, match=r"^graph 'g': tensor 'x' exists already$"):
        made.input("x", (1,), "bf16")
    with pytest.raises(GraphError, match=r"^graph 'g': no tensor 'z' yet$"):
        made.outputs("z")
    with pytest.raises(
        ParameterError, match=r"^z\.outputs: op 'residual_add' gives 1 tensors here, got 2 names \(z, u\)$"
    ):
        made.add("residual_add", ADD, ("x", "x"), ("z", "u"))
    with pytest.raises(
        ParameterError, match=r"^z\.inputs: 'w' \(8, 16\) must have shape \(4, 8\): it is added to 'x'$"
    ):
        made.add("residual_add", ADD, ("x", "w"), ("z",))
    with pytest.raises(RegistryError, match=r"^unknown op 'residual_ad'; did you mean 'residual_add'"):
        made.add("residual_ad", ADD, ("x", "x"), ("z",))


def test_describing_work_never_loads_numpy_or_networkx() -> None:
    script = (
        "import sys; from hwmodel.ops import Builder; from hwmodel.ops.residual_add import ResidualAddParams as P\n"
        "b = Builder('g'); b.input('x', (2, 2), 'bf16'); b.add('residual_add', P(), ('x', 'x'), ('y',)); b.graph()\n"
        "print(sorted({'numpy', 'networkx'} & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
