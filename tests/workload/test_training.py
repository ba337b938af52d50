"""What each recipe puts into a transformer block, counted on the lowered graph of a small model.

The expected inventories are what production libraries launch: one cast for each of eight activations and gradients
(X1 input of QKV, X2 of the projection, X3 of gate and up, X4 of down; G1 to G4 their gradients) and each of four
weights, a second copy where a block cannot be transposed, and what scaling adds around them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hwmodel.config.recipe import presets
from hwmodel.errors import ParameterError
from hwmodel.graph import REFERENCE, Graph, Layout, NativeScaling, Node, Target
from hwmodel.graph.order import check
from hwmodel.models import ModelSpec
from hwmodel.ops import demand_node
from hwmodel.recipes.recipe import AmaxAxes, Exceptions, Recipe, StepKind
from hwmodel.workload import Batch, Optimizer, Training
from hwmodel.workload.stages import stages
from hwmodel.workload.training import (
    StageGraphs,
    bubble_picoseconds,
    exposed_picoseconds,
    lower_stage,
    padded_tokens,
    signature,
    tail,
    tail_traffic,
)

LAYERS, TP, TOKENS, HIDDEN = 2, 4, 2048, 1024
SPEC = ModelSpec("small", LAYERS, HIDDEN, heads=8, key_value_heads=4, head_size=128, feed_forward=2048, vocabulary=4096)
ANY_LAYOUT = REFERENCE
K_CONTIGUOUS = replace(REFERENCE, name="k-contiguous", any_operand_layout=False, native_scaling=())
ONE_KERNEL = replace(REFERENCE, switches={"one_kernel_for_both_directions": True, "scales_in_gemm_order": True})
PRESETS = presets()
SHARDED = Layout(tp=TP)
DUE = StepKind()
PER_TENSOR = ("delayed", "current", "static", "direct", "hif8_current", "hif8_delayed", "hif8_direct")
CURRENT = ("current", "hif8_current")
GATHERED = ("qkv", "fc1", "proj.grad", "fc2.grad")
"""Labels of X1, X3, G3 and G1, which are cut along the sequence between tensor-parallel regions."""


def training(spec: ModelSpec = SPEC, layout: Layout = SHARDED, **fields: object) -> Training:
    batch = Batch(4 * layout.dp, 1, TOKENS * layout.cp)
    return Training("small", spec, batch, layout, **fields)  # type: ignore[arg-type]  # fields by name


def graphs(
    recipe: Recipe | str,
    target: Target = ANY_LAYOUT,
    *,
    layout: Layout = SHARDED,
    step: StepKind = DUE,
    fusion: str = "none",
    spec: ModelSpec = SPEC,
) -> StageGraphs:
    chosen = replace(PRESETS[recipe] if isinstance(recipe, str) else recipe, fusion=fusion)
    workload = training(spec, layout)
    made = lower_stage(workload, chosen, target, stages(spec.layers, layout)[0], step)
    check(made.microbatch)
    check(made.weights)
    return made


def block(recipe: Recipe | str, target: Target = ANY_LAYOUT, **options: object) -> Counter[str]:
    """Kernels of one block, forward and backward."""
    made = graphs(recipe, target, **options)  # type: ignore[arg-type]  # options by name
    counts = [Counter(node.op for node in made.microbatch.nodes if node.layer == layer) for layer in range(LAYERS)]
    assert counts[0] == counts[1]
    return counts[0]


def weights(recipe: Recipe | str, target: Target = ANY_LAYOUT) -> Counter[str]:
    """Kernels of one block's weights."""
    nodes = graphs(recipe, target).weights.nodes
    return Counter(node.op for node in nodes if node.layer == 0)


# --------------------------------------------------------------------------------------------------- what a block holds


@pytest.mark.parametrize("name", list(PRESETS))
@pytest.mark.parametrize("target", [ANY_LAYOUT, K_CONTIGUOUS], ids=lambda target: target.name)
def test_every_block_has_its_gemms_and_reductions_whatever_the_recipe(name: str, target: Target) -> None:
    counts = block(name, target)
    assert counts["gemm"] == 4 * 3
    assert counts["reduce_scatter"] == 4
    assert (counts["rmsnorm"], counts["swiglu"], counts["attention"], counts["rope"]) == (4, 2, 2, 2)
    assert counts["residual_add"] == 4


def test_bf16_casts_nothing_and_gathers_six_times() -> None:
    counts = block("bf16")
    assert not counts.keys() & {"amax", "quantise", "transpose", "rearrange_scales", "update_scale", "all_reduce"}
    assert counts["all_gather"] == 2 + 2 + 2  # X1, X3 forward; the same again for wgrad; G1, G3
    assert not graphs("bf16").weights.nodes


@pytest.mark.parametrize("name", PER_TENSOR)
def test_a_scale_for_the_whole_tensor_needs_one_cast_where_any_layout_is_read(name: str) -> None:
    counts = block(name)
    assert (counts["quantise"], counts["transpose"], counts["rearrange_scales"]) == (8, 0, 0)
    assert counts["all_gather"] == 6
    assert weights(name)["quantise"] == 4


@pytest.mark.parametrize("name", PER_TENSOR)
def test_where_operands_lie_along_k_gathered_tensors_are_transposed_and_others_cast_twice_at_once(name: str) -> None:
    made = graphs(name, K_CONTIGUOUS)
    casts = [node for node in made.microbatch.nodes if node.op == "quantise" and node.layer == 0]
    gathered = [node for node in casts if node.role.removesuffix(".quantise") in GATHERED]
    assert (len(casts), len(gathered)) == (8, 4)
    assert [node.params.transposed_copy for node in gathered] == [False] * 4
    assert all(node.params.transposed_copy for node in casts if node not in gathered)
    assert block(name, K_CONTIGUOUS)["transpose"] == 4
    assert all(node.params.transposed_copy for node in made.weights.nodes if node.op == "quantise")


@pytest.mark.parametrize("name", list(PRESETS))
def test_an_amax_of_its_own_is_read_only_where_a_block_is_seen_by_no_single_kernel(name: str) -> None:
    expected = 8 if name in (*CURRENT, "row") else 0
    counts = block(name)
    assert (counts["amax"], counts["update_scale"]) == (expected, expected)


@pytest.mark.parametrize("name", list(PRESETS))
def test_current_scales_of_sharded_tensors_are_agreed_before_the_cast_and_block_scales_never(name: str) -> None:
    made = graphs(name).microbatch
    agreed = [node for node in made.nodes if node.op == "all_reduce" and node.layer == 0]
    assert len(agreed) == (4 if name in (*CURRENT, "row") else 0)
    for node in agreed:
        assert node.params.reduction == "max"
        assert (node.params.group, node.params.ranks, node.params.overlapped) == ("tp", TP, False)
        label = node.role.removesuffix(".amax_all_reduce")
        assert label in GATHERED
        casts = [cast for cast in made.nodes if cast.role == f"{label}.quantise" and cast.layer == 0]
        assert [reaches(made, node, cast) for cast in casts if len(cast.inputs) == 2] == [True]


def reaches(graph: Graph, first: Node, last: Node) -> bool:
    """A path of tensors leads from one node to another."""
    known = set(first.outputs)
    for node in graph.nodes:
        if known & set(node.inputs):
            known.update(node.outputs)
            if node is last:
                return True
    return False


def test_without_tensor_parallelism_nothing_is_agreed_or_gathered() -> None:
    for name in PRESETS:
        counts = block(name, layout=Layout())
        assert not counts.keys() & {"all_reduce", "all_gather", "reduce_scatter"}, name


@pytest.mark.parametrize(
    ("name", "copies"),
    [("row", 2), ("block", 2), ("subchannel", 2), ("mxfp8", 2), ("row_bf16_wgrad", 1)],
)
def test_blocks_that_do_not_transpose_need_a_cast_for_each_direction(name: str, copies: int) -> None:
    for target in (ANY_LAYOUT, K_CONTIGUOUS):
        assert block(name, target)["quantise"] == 8 * copies
        assert block(name, target)["transpose"] == 0


@pytest.mark.parametrize("name", ["block", "subchannel", "mxfp8"])
def test_one_kernel_may_write_both_directions(name: str) -> None:
    assert block(name, ONE_KERNEL)["quantise"] == 8
    assert weights(name, ONE_KERNEL)["quantise"] == 4


def test_square_blocks_of_weights_are_cast_once_and_only_their_bytes_are_transposed() -> None:
    assert weights("block") == {"quantise": 4}
    assert weights("block", K_CONTIGUOUS) == {"quantise": 4, "transpose": 4}
    assert weights("subchannel") == weights("subchannel", K_CONTIGUOUS) == {"quantise": 8}


@pytest.mark.parametrize("name", ["row", "block", "subchannel", "mxfp8"])
def test_gradients_travel_twice_where_each_direction_has_its_copy(name: str) -> None:
    made = graphs(name).microbatch
    roles = Counter(node.role for node in made.nodes if node.op == "all_gather" and node.layer == 0)
    assert roles == Counter(
        [
            *("qkv.fprop.gather", "fc1.fprop.gather", "qkv.wgrad.gather", "fc1.wgrad.gather"),
            *("fc2.grad.dgrad.gather", "fc2.grad.wgrad.gather", "proj.grad.dgrad.gather", "proj.grad.wgrad.gather"),
        ]
    )


@pytest.mark.parametrize("name", PER_TENSOR)
def test_one_copy_of_a_gradient_travels_once(name: str) -> None:
    made = graphs(name).microbatch
    roles = [node.role for node in made.nodes if node.op == "all_gather" and node.layer == 0]
    assert [role for role in roles if ".grad." in role] == ["fc2.grad.dgrad.gather", "proj.grad.dgrad.gather"]


def test_scales_in_blocks_travel_with_their_codes_in_one_transfer() -> None:
    made = graphs("mxfp8").microbatch
    gathers = [node for node in made.nodes if node.op == "all_gather" and node.layer == 0]
    assert all(len(node.inputs) == 2 for node in gathers)
    for node in gathers:
        codes, table = made.specs(node.inputs)
        assert codes.bytes == 32 * table.bytes


def test_mx_scales_are_brought_into_the_order_of_each_operand() -> None:
    assert block("mxfp8")["rearrange_scales"] + weights("mxfp8")["rearrange_scales"] == 24
    # A quantiser that writes the order itself leaves those that travel: both copies of X1, X3, G1 and G3.
    assert block("mxfp8", ONE_KERNEL)["rearrange_scales"] == 8
    assert weights("mxfp8", ONE_KERNEL)["rearrange_scales"] == 0
    # Without hardware that reads the scales there is no order to keep.
    assert block("mxfp8", K_CONTIGUOUS)["rearrange_scales"] == 0


@pytest.mark.parametrize("name", list(PRESETS))
def test_weights_are_cast_once_for_a_step_and_never_in_a_microbatch(name: str) -> None:
    made = graphs(name)
    sources = {f"L{layer}.{kind}" for layer in range(LAYERS) for kind in ("qkv", "proj", "fc1", "fc2")}
    assert not [node for node in made.microbatch.nodes if node.op == "quantise" and sources & set(node.inputs)]
    cast = {name for node in made.weights.nodes if node.op == "quantise" for name in sources & set(node.inputs)}
    assert cast == (sources if PRESETS[name].scaled else set())


# ------------------------------------------------------------------------------------------------------ delayed scaling


@pytest.mark.parametrize("name", ["delayed", "hif8_delayed"])
def test_delayed_scaling_agrees_all_amaxes_of_a_pass_in_one_message(name: str) -> None:
    made = graphs(name, layout=Layout(tp=TP, dp=2))
    messages = [node for node in made.microbatch.nodes if node.op == "all_reduce" and node.params.group == "amax"]
    updates = [node for node in made.microbatch.nodes if node.op == "update_scale"]
    assert [node.name in made.forward for node in messages] == [True, False]
    assert [node.name in made.forward for node in updates] == [True, False]
    # Four activations, four gradients in each of the layers; every rank of tp x dp takes part.
    assert [len(node.inputs) for node in messages] == [4 * LAYERS, 4 * LAYERS]
    assert {node.params.ranks for node in messages} == {TP * 2}
    assert [node.op for node in made.weights.nodes].count("all_reduce") == 1


def test_a_step_without_a_due_amax_updates_nothing() -> None:
    idle = StepKind(amax_due=False)
    for name in ("delayed", "hif8_delayed"):
        made = graphs(name, step=idle)
        assert not [node for node in (*made.weights.nodes, *made.microbatch.nodes) if node.op == "update_scale"]


def test_a_separate_amax_is_a_pass_on_due_steps_only() -> None:
    separate = replace(PRESETS["hif8_delayed"], amax=AmaxAxes("separate"))
    assert block(separate)["amax"] == 8
    assert block(separate, step=StepKind(amax_due=False))["amax"] == 0
    assert block(replace(separate, interval_steps=None), step=StepKind(amax_due=False))["amax"] == 0


def test_a_split_amax_reads_its_share_at_every_step() -> None:
    split = replace(PRESETS["hif8_delayed"], interval_steps=4, amax=AmaxAxes("separate", "split"))
    whole = replace(split, amax=AmaxAxes("separate"))
    assert block(split)["amax"] == 8

    def read(recipe: Recipe) -> int:
        made = graphs(recipe).microbatch
        return sum(spec.bytes for node in made.nodes if node.op == "amax" for spec in made.specs(node.inputs))

    assert 4 * read(split) == read(whole)


def test_the_first_step_scales_by_its_own_amax_and_fills_the_history() -> None:
    made = graphs("delayed", step=StepKind(cold_start=True))
    counts = Counter(node.op for node in made.microbatch.nodes if node.layer == 0)
    assert (counts["amax"], counts["all_reduce"]) == (8, 4)
    ends = [node for node in made.microbatch.nodes if node.op == "update_scale" and node.layer is None]
    assert [len(node.inputs) - 1 for node in ends] == [4 * LAYERS, 4 * LAYERS]


# ----------------------------------------------------------------------------------------------------- bytes of casting


def cast_bytes(recipe: Recipe | str, target: Target, label: str) -> float:
    """Bytes per element that casts and amaxes of one tensor move."""
    made = graphs(recipe, target).microbatch
    kernels = [node for node in made.nodes if node.layer == 0 and node.role in (f"{label}.quantise", f"{label}.amax")]
    elements = made.tensors[kernels[0].inputs[0]].elements
    return sum(demand_node(node, made).bytes for node in kernels) / elements


@pytest.mark.parametrize("label", ["proj", "fc2", "qkv.grad", "fc1.grad"])
@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        ("delayed", ANY_LAYOUT, 3),
        ("delayed", K_CONTIGUOUS, 4),
        ("current", ANY_LAYOUT, 5),
        ("current", K_CONTIGUOUS, 6),
        ("hif8_delayed", ANY_LAYOUT, 3),
        ("row", ANY_LAYOUT, 8),
        ("row_bf16_wgrad", ANY_LAYOUT, 3),
        ("block", ONE_KERNEL, 4 + 2 * 4 / 128),
        ("block", ANY_LAYOUT, 6 + 2 * 4 / 128),
        ("mxfp8", ONE_KERNEL, 4 + 2 / 32),
        ("mxfp8", ANY_LAYOUT, 6 + 2 / 32),
    ],
)
def test_a_tensor_that_stays_on_its_rank_moves_these_bytes(
    name: str, target: Target, expected: float, label: str
) -> None:
    # A scale for each row or column is a few bytes on hundreds of elements.
    few = 0.08 if name.startswith("row") else 1e-3
    assert cast_bytes(name, target, label) == pytest.approx(expected, abs=few)


def test_a_weight_of_square_blocks_moves_three_bytes_for_each_element() -> None:
    made = graphs("block").weights
    node = next(node for node in made.nodes if node.role == "fc1.quantise")
    elements = made.tensors[node.inputs[0]].elements
    assert demand_node(node, made).bytes / elements == pytest.approx(3 + 4 / 128**2)


# ----------------------------------------------------------------------------------------------------------- the K loop


@pytest.mark.parametrize(("name", "every"), [("block", 128), ("subchannel", 128), ("mxfp8", 32)])
def test_blocks_the_hardware_does_not_scale_break_the_k_loop(name: str, every: int) -> None:
    gemms = [node.params for node in graphs(name, K_CONTIGUOUS).microbatch.nodes if node.op == "gemm"]
    scaled = [gemm for gemm in gemms if gemm.a_scale is not None]
    assert len(scaled) == 4 * 3 * LAYERS
    assert {(gemm.promote_every, gemm.native_block_scales) for gemm in scaled} == {(every, False)}


def test_blocks_the_hardware_scales_do_not() -> None:
    native = replace(REFERENCE, native_scaling=(NativeScaling(32, "e8m0"), NativeScaling(128, "fp32")))
    for name in ("mxfp8", "block", "subchannel"):
        scaled = [
            node.params for node in graphs(name, native).microbatch.nodes if node.op == "gemm" and node.layer == 0
        ]
        assert {(gemm.promote_every, gemm.native_block_scales) for gemm in scaled} == {(0, True)}, name


@pytest.mark.parametrize(("name", "vectors"), [("current", 0), ("delayed", 0), ("row", 2)])
def test_scales_that_do_not_change_along_k_are_applied_at_the_end(name: str, vectors: int) -> None:
    scaled = [node.params for node in graphs(name).microbatch.nodes if node.op == "gemm" and node.layer == 0]
    assert {(gemm.promote_every, gemm.epilogue_scale_vectors) for gemm in scaled} == {(0, vectors)}


# --------------------------------------------------------------------------------------------------------------- fusion


def fused_roles(name: str, fusion: str, target: Target = ANY_LAYOUT) -> list[str]:
    made = graphs(name, target, fusion=fusion).microbatch
    return sorted(node.role for node in made.nodes if node.op == "fused" and node.layer == 0)


def test_norms_take_their_casts_along_as_far_as_the_level_goes() -> None:
    production = replace(ANY_LAYOUT, fused_kernels=frozenset({"rmsnorm+quantise", "rmsnorm+amax"}))
    norms = ["norm1+quantise", "norm2+quantise"]
    assert fused_roles("delayed", "none", production) == []
    assert fused_roles("delayed", "production", production) == norms
    assert fused_roles("delayed", "ideal") == [*norms, "swiglu+quantise", "swiglu.backward+quantise"]
    assert fused_roles("current", "production", production) == ["norm1+amax", "norm2+amax"]
    assert fused_roles("mxfp8", "production", production) == []


def test_a_norm_with_its_cast_writes_one_byte_less_for_each_element_than_in_bf16() -> None:
    plain, cast = graphs("bf16").microbatch, graphs("delayed", fusion="ideal").microbatch

    def moved(graph: Graph) -> int:
        (node,) = (node for node in graph.nodes if node.name == "L0.x1")
        return demand_node(node, graph).bytes

    elements = TOKENS // TP * HIDDEN
    assert moved(plain) - moved(cast) == pytest.approx(elements, abs=16)


# ------------------------------------------------------------------------------------------------------------- overlaps


def test_a_gather_that_software_overlaps_comes_in_pieces_under_a_split_gemm() -> None:
    target = replace(ANY_LAYOUT, overlaps={"gather_fprop": frozenset({"plain"})})
    made = graphs("delayed", target).microbatch
    exchanged = [node for node in made.nodes if node.op == "send_recv" and node.role == "qkv.fprop.gather"]
    pieces = [node for node in made.nodes if node.op == "gemm" and node.role == "qkv.fprop" and node.layer == 0]
    assert (len(exchanged), len(pieces)) == ((TP - 1) * LAYERS, TP)
    assert all(node.params.overlapped for node in exchanged)


def test_an_overlap_stated_for_plain_payloads_is_none_for_blocks() -> None:
    target = replace(ANY_LAYOUT, overlaps={"gather_fprop": frozenset({"plain"})})
    made = graphs("mxfp8", target).microbatch
    gathers = [node for node in made.nodes if node.role == "qkv.fprop.gather"]
    assert {(node.op, node.params.overlapped) for node in gathers} == {("all_gather", False)}


# ----------------------------------------------------------------------------------------------------------- exceptions


def test_exempt_layers_stay_in_bf16() -> None:
    recipe = replace(PRESETS["mxfp8"], exceptions=Exceptions(first_layers=1))
    made = graphs(recipe).microbatch
    casts = Counter(node.layer for node in made.nodes if node.op == "quantise")
    assert casts == {1: 16}


def test_exempt_gemms_stay_in_bf16() -> None:
    recipe = replace(PRESETS["current"], exceptions=Exceptions(gemms=("wgrad",)))
    made = graphs(recipe).microbatch
    for node in made.nodes:
        if node.op == "gemm" and node.layer == 0:
            wide = [made.tensors[name].format for name in node.inputs[:2]] == ["bf16", "bf16"]
            assert wide == node.role.endswith(".wgrad")


def test_embedding_and_head_are_in_bf16_in_every_recipe() -> None:
    made = graphs("current").microbatch
    ends = [node for node in made.nodes if node.layer is None]
    assert {"embedding", "cross_entropy", "gemm"} <= {node.op for node in ends}
    assert not [node for node in ends if node.op in ("quantise", "amax")]


# -------------------------------------------------------------------------------------------------------------- padding


@pytest.mark.parametrize(
    ("name", "padded"), [("mxfp8", 32_000), ("block", 32_256), ("delayed", 31_936), ("bf16", 31_936)]
)
def test_padding_is_for_the_shard_and_not_for_the_whole(name: str, padded: int) -> None:
    workload = replace(training(), batch=Batch(4, 1, 31_936))
    assert padded_tokens(workload, PRESETS[name]) == padded
    made = lower_stage(workload, PRESETS[name], ANY_LAYOUT, stages(LAYERS, workload.layout)[0], StepKind())
    assert made.microbatch.tensors["L0.x1"].rows == padded // TP


@pytest.mark.parametrize("micro", [1, 2, 3])
def test_a_padded_microbatch_is_whole_sequences(micro: int) -> None:
    workload = replace(training(layout=Layout(tp=2, cp=2)), batch=Batch(6, micro, 1028))
    rows = padded_tokens(workload, PRESETS["mxfp8"])
    assert rows % (32 * 2) == 0
    assert rows % micro == 0
    assert rows >= micro * 1028 // 2


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (Layout(tp=3), "parallel.tp: must divide the model's heads=8, got 3"),
        (Layout(tp=16), "parallel.tp: must divide the model's heads=8, got 16"),
    ],
)
def test_a_layout_that_does_not_divide_the_model_is_refused(layout: Layout, text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        graphs("bf16", layout=layout)
    assert str(caught.value) == text


# -------------------------------------------------------------------------------------------------- stages and the tail


@pytest.mark.parametrize("layout", [Layout(), Layout(pp=2), Layout(pp=2, vp=2), Layout(pp=4)])
def test_all_stages_together_hold_the_model(layout: Layout) -> None:
    workload = training(layout=layout)
    held = [
        lower_stage(workload, Recipe(), ANY_LAYOUT, stage, StepKind()).parameters for stage in stages(LAYERS, layout)
    ]
    assert sum(held) == SPEC.parameters


def test_a_tied_table_lies_on_both_ends_and_counts_once_on_one() -> None:
    tied = replace(SPEC, tied_embeddings=True)
    table = SPEC.vocabulary * SPEC.hidden
    for layout, copies in ((Layout(), 1), (Layout(pp=2), 2)):
        workload = training(tied, layout)
        cut = stages(LAYERS, layout)
        held = sum(lower_stage(workload, Recipe(), ANY_LAYOUT, stage, StepKind()).parameters for stage in cut)
        assert held == tied.parameters + (copies - 1) * table


def test_stages_that_differ_only_in_layer_numbers_are_one_kind() -> None:
    layout = Layout(pp=4)
    workload = training(replace(SPEC, layers=14), layout)
    kinds = [signature(workload, Recipe(), stage) for stage in stages(14, layout)]
    assert len(set(kinds)) == 3
    assert kinds[1] == kinds[2]
    exempt = Recipe(exceptions=Exceptions(first_layers=4))
    kinds = [signature(workload, exempt, stage) for stage in stages(14, layout)]
    assert kinds[1] != kinds[2]


def test_gradients_are_reduced_and_parameters_gathered_over_data_and_context_ranks() -> None:
    layout = Layout(tp=TP, cp=2, dp=4)
    sharded = tail_traffic(training(layout=layout), 1000)
    assert (sharded.gradients.kind, sharded.gradients.ranks, sharded.gradients.full_bytes) == (
        "reduce_scatter",
        8,
        4000,
    )
    assert (sharded.parameters.kind, sharded.parameters.ranks, sharded.parameters.full_bytes) == ("all_gather", 8, 2000)
    optimizer = Optimizer(sharded=False, gradient_format="bf16")
    whole = tail_traffic(training(layout=layout, optimizer=optimizer), 1000)
    assert (whole.gradients.kind, whole.gradients.full_bytes, whole.parameters.sent_bytes) == ("all_reduce", 2000, 0)


def test_traffic_is_exposed_by_what_its_window_does_not_hide() -> None:
    alone = training()
    assert exposed_picoseconds(0, 1000, alone, layers=4) == 0
    assert exposed_picoseconds(400, 1000, alone, layers=4) == 100, "the last layer's share always"
    assert exposed_picoseconds(4000, 1000, alone, layers=4) == 4000 - 750
    interleaved = training(layout=Layout(pp=2, vp=2))
    window = 1000 * min(2, interleaved.microbatches) // 2
    assert exposed_picoseconds(8000, 1000, interleaved, layers=4) == 8000 - window
    assert exposed_picoseconds(10, 1000, interleaved, layers=4) == 5


def test_the_bubble_is_that_of_one_forward_one_backward() -> None:
    assert bubble_picoseconds(1000, 0, training()) == 0
    assert bubble_picoseconds(1000, 0, training(layout=Layout(pp=4))) == 3000
    assert bubble_picoseconds(1000, 0, training(layout=Layout(pp=2, vp=2))) == 500
    assert bubble_picoseconds(1000, 7, training(layout=Layout(pp=4))) == 3000 + 2 * 3 * 7


def test_the_tail_runs_in_order_and_leaves_out_what_takes_no_time() -> None:
    graph = tail(training(), 1000, gradients=5, gathered=7, bubble=3)
    assert [node.name for node in graph.nodes] == [
        *("pipeline.bubble", "gradients.exposed", "optimizer", "parameters.exposed"),
    ]
    assert [node.after for node in graph.nodes] == [(), ("pipeline.bubble",), ("gradients.exposed",), ("optimizer",)]
    assert [node.name for node in tail(training(), 1000, gradients=0, gathered=0, bubble=0).nodes] == ["optimizer"]
