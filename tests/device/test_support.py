"""A device refuses matrix work in formats it does not multiply, all at once and before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hwmodel.api import compare, simulate
from hwmodel.errors import ConfigError, UnsupportedError

if TYPE_CHECKING:
    from pathlib import Path

SMALL = ("model.layers=2", "batch.global=8", "batch.sequence=2048")


@pytest.mark.parametrize(
    ("device", "recipe", "number_format"), [("h100", "mxfp8", "mxfp8_e4m3fn"), ("gpu", "hif8_delayed", "hif8")]
)
def test_a_format_the_device_lacks_is_refused_with_the_nodes_that_need_it(
    device: str, recipe: str, number_format: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        simulate("quickstart", device, recipe=recipe, sets=SMALL)
    assert isinstance(caught.value.__cause__, UnsupportedError)
    text = str(caught.value)
    assert text.startswith(
        f"--recipe: recipe.formats.x: matrix unit of {device} (it has bf16, fp16, fp8_e4m3fn, fp8_e5m2"
    )
    assert f") does not support '{number_format}', which L0.qkv_out.fprop, " in text
    assert text.endswith(" more nodes would need") or "more nodes" in text
    assert "\n" not in text


def test_the_default_list_leaves_out_what_the_device_lacks() -> None:
    comparison = compare("quickstart", "h100", sets=SMALL)
    assert [row.recipe.preset for row in comparison.rows] == ["bf16", "delayed", "current"]
    assert comparison.left_out == ("mxfp8",)


def test_software_that_cannot_overlap_gradients_exposes_them() -> None:
    steps = [
        simulate("quickstart", "gpu", recipe="bf16", sets=(*SMALL, *edits)).step_seconds
        for edits in ((), ("software.gradient_reduce=[]",), ("software.parameter_gather=[]",))
    ]
    assert steps[0] < steps[1]
    assert steps[0] < steps[2]


def test_operands_of_a_hand_graph_that_do_not_go_together_are_refused_at_the_tensor(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(
        "kind: graph\nname: g\ntensors:\n  a: {shape: [64, 64], format: fp8_e4m3fn}\n"
        "  b: {shape: [64, 64], format: bf16}\nops:\n  - {op: gemm, name: h, inputs: [a, b], outputs: [y]}\n",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError, match=r"w.yaml:5: tensors.b.format: .* does not support 'bf16 by fp8_e4m3fn'"):
        simulate(str(path), "gpu")
