"""Graphs that cannot be executed are refused by name; order is written order wherever there is a choice."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from hwmodel.errors import GraphError
from hwmodel.graph import Graph, Node, TensorSpec
from hwmodel.graph.order import check, order


def node(name: str, reads: str = "", writes: str = "", after: str = "") -> Node:
    return Node(name, "residual_add", None, tuple(reads.split()), tuple(writes.split()), tuple(after.split()))


def graph(*nodes: Node, inputs: str = "x", outputs: str = "", without: str = "") -> Graph:
    named = {name for each in nodes for name in (*each.inputs, *each.outputs)} | set(inputs.split())
    tensors = {name: TensorSpec(name, (2, 2), "bf16") for name in sorted(named) if name != without}
    return Graph("g", tensors, nodes, tuple(inputs.split()), tuple(outputs.split()))


def names(made: Graph) -> list[str]:
    return [each.name for each in order(made)]


def test_a_sound_graph_passes_and_keeps_its_written_order() -> None:
    made = graph(node("a", "x", "t"), node("b", "x", "u"), node("c", "t u", "y"), outputs="y x")
    check(made)
    assert order(made) is made.nodes


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (graph(node("a", "x", "t"), node("a", "x", "u")), "two nodes are called 'a'"),
        (graph(node("a", "x", "t"), without="x"), "the list of graph inputs names tensor 'x', which has no spec"),
        (graph(node("a", "x", "t"), without="t"), "node 'a' names tensor 't', which has no spec"),
        (graph(node("a", "x u", "t"), without="u"), "node 'a' names tensor 'u', which has no spec"),
        (
            graph(node("a", "x", "t"), node("b", "x", "t")),
            "tensor 't' is written twice, by node 'a' and by node 'b'",
        ),
        (graph(node("a", "x", "t t")), "tensor 't' is written twice, by node 'a' and by node 'a'"),
        (graph(node("a", "x", "x")), "tensor 'x' is a graph input and is written by node 'a'"),
        (
            graph(node("a", "x lost", "t")),
            "node 'a' reads 'lost', which no node writes and which is not a graph input",
        ),
        (graph(node("a", "x", "t", after="z")), "node 'a' waits for 'z', which is not a node"),
        (graph(node("a", "x", "t"), outputs="t y"), "output 'y' is no graph input and no node writes it"),
        (graph(node("a", "u", "t"), node("b", "t", "u")), "cycle: 'a' -> 'b' -> 'a'"),
        (graph(node("a", "x", "t", after="a")), "cycle: 'a' -> 'a'"),
        (
            graph(node("free", "x", "s"), node("c", "t", "u"), node("a", "v", "t"), node("b", "u", "v", after="free")),
            "cycle: 'c' -> 'b' -> 'a' -> 'c'",
        ),
    ],
)
def test_a_graph_that_cannot_be_executed_is_refused(made: Graph, message: str) -> None:
    for judge in (check, order):
        with pytest.raises(GraphError) as refused:
            judge(made)
        assert str(refused.value) == f"graph 'g': {message}"


def test_a_spec_under_another_name_is_refused() -> None:
    made = Graph("g", {"x": TensorSpec("y", (1,), "bf16")}, (), ("x",))
    with pytest.raises(GraphError, match=r"^graph 'g': the spec of tensor 'x' is named 'y'$"):
        check(made)


def test_nodes_written_too_early_move_behind_what_they_need_and_no_others_move() -> None:
    late = node("late", "t", "y")
    made = graph(late, node("b", "x", "u"), node("a", "x", "t"), node("c", "x", "v"))
    assert names(made) == ["b", "a", "late", "c"]


def test_after_orders_nodes_that_share_no_tensor() -> None:
    assert names(graph(node("a", "x", "t", after="c"), node("b", "x", "u"), node("c", "x", "v"))) == ["b", "c", "a"]


def test_order_does_not_depend_on_the_hash_seed() -> None:
    script = (
        "from tests_order import graph, names, node\n"
        "made = graph(node('e', 'd', 'e'), *(node(n, 'x', n) for n in 'cadb'), node('f', 'a b', 'f'))\n"
        "print(names(made))\n"
    )
    loader = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('tests_order', {__file__!r})\n"
        "sys.modules['tests_order'] = module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
    )
    root = Path(__file__).parent.parent.parent
    printed = set()
    for seed in ("0", "1"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        run = subprocess.run(
            [sys.executable, "-c", loader + script], env=environment, capture_output=True, text=True, check=True
        )
        printed.add(run.stdout)
    assert printed == {"['c', 'a', 'd', 'e', 'b', 'f']\n"}


def test_three_thousand_shuffled_nodes_each_come_behind_what_they_read() -> None:
    generator = random.Random(7)
    nodes = [node(f"n{place}", f"t{max(place - generator.randint(1, 9), 0)}", f"t{place + 1}") for place in range(3000)]
    generator.shuffle(nodes)
    made = graph(*nodes, inputs="t0")
    ordered = order(made)
    done = {"t0"}
    assert len(ordered) == len(nodes)
    for each in ordered:
        assert set(each.inputs) <= done
        done.update(each.outputs)


def test_a_long_cycle_is_found() -> None:
    ring = [node(f"n{place}", f"t{place}", f"t{(place + 1) % 3000}") for place in range(3000)]
    with pytest.raises(GraphError, match=r"cycle: 'n0' -> 'n1' -> .* -> 'n2999' -> 'n0'$"):
        check(graph(*ring))
