"""Lowers one optimiser step of a training workload to graphs: weights, microbatch, and the tail in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from hwmodel.graph import Collective, Graph, Target
from hwmodel.models.decoder import WEIGHTS, Decoder, Dims, Weight, prepare_weight, rank_dims
from hwmodel.ops.build import Builder
from hwmodel.ops.collective import CollectiveParams
from hwmodel.ops.elapsed import ElapsedParams
from hwmodel.ops.optimizer_step import OptimizerParams
from hwmodel.recipes.lowering import Lowering
from hwmodel.units import ceil_div
from hwmodel.workload.stages import HEAD, Stage
from hwmodel.workload.workload import GRADIENT_BYTES

if TYPE_CHECKING:
    from hwmodel.recipes.recipe import Recipe, StepKind
    from hwmodel.workload.workload import Training


@dataclass(frozen=True, slots=True)
class StageGraphs:
    """What one pipeline rank runs in one step."""

    stage: Stage
    weights: Graph
    """Once per step: weights into the forms their GEMMs need."""
    microbatch: Graph
    """Forward and backward of one microbatch through all of the rank's pieces."""
    parameters: int
    """Weights this rank holds."""
    forward: frozenset[str]
    """Names of the microbatch's forward nodes."""
    saved_bytes: int
    """Activations one microbatch keeps from forward to backward."""
    defaults: Mapping[str, str]


def padded_sequence(workload: Training, recipe: Recipe) -> int:
    """Tokens of a sequence, padded so that every shard of a microbatch holds whole blocks."""
    batch, layout = workload.batch, workload.layout
    block = max(recipe.layout(role).columns or 1 for role in "xg") if recipe.scaled else 1
    rows = block * layout.sequence_shards
    unit = layout.cp * rows // gcd(rows, batch.micro_sequences)
    return ceil_div(batch.sequence, unit) * unit


def padded_tokens(workload: Training, recipe: Recipe) -> int:
    """Rows of a microbatch on a rank, padding included."""
    return workload.batch.micro_sequences * padded_sequence(workload, recipe) // workload.layout.cp


def _dims(workload: Training, recipe: Recipe) -> Dims:
    return rank_dims(
        workload.model,
        workload.layout,
        tokens=padded_tokens(workload, recipe),
        sequence=padded_sequence(workload, recipe),
        sequences=workload.batch.micro_sequences,
    )


def sliced_rows(workload: Training, recipe: Recipe) -> tuple[int, ...]:
    """Rows of every shape of tensor that is cast, in which slices of an amax are counted."""
    dims = _dims(workload, recipe)
    weights = (dims.weight_shape(kind)[0] for kind in WEIGHTS)
    return tuple(sorted({dims.tokens, dims.shard_tokens, *weights}))


def lower_stage(workload: Training, recipe: Recipe, target: Target, stage: Stage, step: StepKind) -> StageGraphs:
    """The graphs of one pipeline rank for one kind of step."""
    layout = workload.layout
    dims = _dims(workload, recipe)
    weights, prepared, prepared_defaults = _weights(workload, recipe, target, stage, step=step, dims=dims)
    low = _lowering(f"stage{stage.index}.microbatch", workload, recipe, target, step)
    low.gradient_format = workload.optimizer.gradient_format
    decoder = Decoder(low, workload.model, layout, dims, prepared)
    forward = _microbatch(decoder, workload, recipe, stage)
    raw = low.builder.graph()
    return StageGraphs(
        stage=stage,
        weights=weights,
        microbatch=low.graph(),
        parameters=_parameters(workload, stage, dims),
        forward=forward,
        saved_bytes=_saved_bytes(raw, forward),
        defaults={**prepared_defaults, **low.defaults},
    )


def _lowering(name: str, workload: Training, recipe: Recipe, target: Target, step: StepKind) -> Lowering:
    layout = workload.layout
    group = (layout.tp * layout.cp * layout.dp, 1)
    return Lowering(Builder(name), recipe, target, step=step, amax_group=group)


def _exempt(recipe: Recipe, layer: int, layers: int) -> bool:
    exceptions = recipe.exceptions
    return layer < exceptions.first_layers or layer >= layers - exceptions.last_layers


def signature(workload: Training, recipe: Recipe, stage: Stage) -> tuple[tuple[int, ...], ...]:
    """What decides a stage's time: per piece its units, with layers told apart only by whether the recipe applies."""
    layers = workload.model.layers
    return tuple(
        tuple(unit if unit < 0 else int(_exempt(recipe, unit, layers)) for unit in piece) for piece in stage.pieces
    )


def _weights(
    workload: Training, recipe: Recipe, target: Target, stage: Stage, *, step: StepKind, dims: Dims
) -> tuple[Graph, dict[str, Weight], dict[str, str]]:
    low = _lowering(f"stage{stage.index}.weights", workload, recipe, target, step)
    prepared: dict[str, Weight] = {}
    for layer in stage.layers:
        exempt = _exempt(recipe, layer, workload.model.layers)
        for kind in WEIGHTS:
            name = f"L{layer}.{kind}"
            prepared[name] = prepare_weight(low, name, dims.weight_shape(kind), layer=layer, exempt=exempt)
    if stage.heads:
        prepared["head"] = prepare_weight(low, "head", dims.weight_shape("head"), layer=None, exempt=True)
    low.update_state("weights")
    return low.builder.graph(), prepared, low.defaults


def _microbatch(decoder: Decoder, workload: Training, recipe: Recipe, stage: Stage) -> frozenset[str]:
    """Forward through the rank's pieces, then backward; gives the names of the forward nodes.

    Each piece's result goes to the next rank under what follows.

    In the steady state of an interleaved pipeline the piece that runs next belongs to another microbatch, so nothing
    here waits for a neighbour; the last transfer of one microbatch is drawn at the start of the next.
    """
    low, dims, layers = decoder.low, decoder.dims, workload.model.layers
    sends = workload.layout.pp > 1
    shape = (dims.shard_tokens, dims.hidden)
    if sends:
        _send(decoder, workload, low.state("previous.gradient", shape, "bf16"), "previous")
    ends: list[str] = []
    for turn, piece in enumerate(stage.pieces):
        x = (
            decoder.embed()
            if piece and piece[0] < 0 and piece[0] != HEAD
            else low.state(f"piece{turn}.in", shape, "bf16")
        )
        for layer in piece:
            if layer >= 0:
                x = decoder.forward(x, layer, exempt=_exempt(recipe, layer, layers))
        if HEAD in piece:
            x = decoder.head(x)
        elif sends and piece:
            _send(decoder, workload, x, f"piece{turn}.forward")
        ends.append(x)
    low.update_state("forward")
    forward = low.builder.node_names()
    for turn in range(len(stage.pieces) - 1, -1, -1):
        piece = stage.pieces[turn]
        grad = ends[turn] if HEAD in piece else low.state(f"piece{turn}.gradient", shape, "bf16")
        for layer in reversed(piece):
            if layer >= 0:
                grad = decoder.backward(grad, layer, exempt=_exempt(recipe, layer, layers))
        if piece and piece[0] < 0 and piece[0] != HEAD:
            decoder.embed_backward(grad)
        elif sends and turn:
            _send(decoder, workload, grad, f"piece{turn}.backward")
    low.update_state("backward")
    return forward


def _send(decoder: Decoder, workload: Training, tensor: str, label: str) -> None:
    ranks, stride = workload.layout.group("pp")
    params = CollectiveParams(
        group="pp",
        ranks=ranks,
        stride=stride,
        overlapped=decoder.low.target.overlap("pipeline", "plain"),
        overlap_name="pipeline",
    )
    decoder.builder.add("send_recv", params, (tensor,), (f"{label}.sent",), role=f"pipeline.{label}")


def _parameters(workload: Training, stage: Stage, dims: Dims) -> int:
    matrices = sum(rows * columns for rows, columns in (dims.weight_shape(kind) for kind in WEIGHTS))
    total = len(stage.layers) * (matrices + 2 * dims.hidden)
    table = dims.vocabulary * dims.hidden
    total += table if stage.embeds else 0
    own_head = stage.heads and not (workload.model.tied_embeddings and stage.embeds)
    return total + (table + dims.hidden if own_head else dims.hidden if stage.heads else 0)


def _saved_bytes(graph: Graph, forward: frozenset[str]) -> int:
    """Bytes written by forward and read by backward: what a microbatch keeps alive."""
    made = {name for node in graph.nodes if node.name in forward for name in node.outputs}
    made.update(name for name in graph.inputs if name.startswith("piece") and name.endswith(".in"))
    kept = {name for node in graph.nodes if node.name not in forward for name in node.inputs if name in made}
    return sum(graph.tensors[name].bytes for name in sorted(kept))


# The tail of a step: what has a first closed form


@dataclass(frozen=True, slots=True)
class TailTraffic:
    """The data-parallel transfers of one rank, over data and context parallel ranks joined."""

    gradients: Collective
    parameters: Collective


def tail_traffic(workload: Training, parameters: int) -> TailTraffic:
    """Reduce-scatter of gradients and all-gather of parameters (an all-reduce where the optimiser is not sharded)."""
    ranks, stride = workload.layout.group("dp_cp")
    gradient_bytes = GRADIENT_BYTES[workload.optimizer.gradient_format]
    sharded = workload.optimizer.sharded
    gradients = Collective(
        "reduce_scatter" if sharded else "all_reduce", "dp_cp", ranks, parameters * gradient_bytes, stride
    )
    gathered = Collective("all_gather", "dp_cp", ranks if sharded else 1, parameters * 2, stride)
    return TailTraffic(gradients, gathered)


def exposed_picoseconds(traffic_picoseconds: int, pass_picoseconds: int, workload: Training, *, layers: int) -> int:
    """Part of a data-parallel transfer that no compute hides, where software can overlap it.

    The transfer is cut in pieces. A piece's gradients are ready when its last microbatch has passed, and the pieces
    before it still run, so that all but the last piece's share can move meanwhile. With virtual stages a piece is one
    of them, and one group of pp microbatches passes before the next (the order of an interleaved pipeline); else a
    piece is a layer of the last microbatch. Parameters mirror it at the start of a step.
    """
    layout = workload.layout
    pieces, group = (layout.vp, min(layout.pp, workload.microbatches)) if layout.vp > 1 else (max(1, layers), 1)
    window = pass_picoseconds * group * (pieces - 1) // pieces
    return max(ceil_div(traffic_picoseconds, pieces), traffic_picoseconds - window) if traffic_picoseconds else 0


def bubble_picoseconds(microbatch_picoseconds: int, send_picoseconds: int, workload: Training) -> int:
    """Waits for other stages while the pipeline fills and drains (1F1B, interleaved).

    (pp - 1) / vp microbatches together, and on each way pp - 1 transfers that no compute hides yet.
    """
    waits = workload.layout.pp - 1
    return ceil_div(microbatch_picoseconds * waits, workload.layout.vp) + 2 * waits * send_picoseconds


def waiting(picoseconds: int) -> Graph:
    """A wait for a slower pipeline rank."""
    builder = Builder("wait")
    if picoseconds:
        builder.add("bubble", ElapsedParams(picoseconds), (), (), name="pipeline.wait", role="pipeline.wait")
    return builder.graph()


def tail(workload: Training, parameters: int, *, gradients: int, gathered: int, bubble: int) -> Graph:
    """End of the step as named nodes, given the closed-form times in picoseconds."""
    builder = Builder("tail")
    last: tuple[str, ...] = ()
    for op, name, picoseconds in (
        ("bubble", "pipeline.bubble", bubble),
        ("exposed_traffic", "gradients.exposed", gradients),
    ):
        if picoseconds:
            builder.add(op, ElapsedParams(picoseconds), (), (), name=name, role=name, after=last)
            last = (name,)
    ranks, _ = workload.layout.group("dp_cp")
    optimizer = workload.optimizer
    shard = ceil_div(parameters, ranks) if optimizer.sharded else parameters
    params = OptimizerParams(
        parameters=shard,
        master_bytes=optimizer.master_bytes,
        moment_bytes=optimizer.moment_bytes,
        gradient_bytes=GRADIENT_BYTES[optimizer.gradient_format],
    )
    state = builder.input("optimizer.state", (shard,), "fp32")
    builder.add("optimizer_step", params, (state,), ("optimizer.next",), name="optimizer", role="optimizer", after=last)
    if gathered:
        builder.add(
            "exposed_traffic", ElapsedParams(gathered), (), (), name="parameters.exposed", role="parameters.exposed",
            after=("optimizer",),
        )  # fmt: skip
    return builder.graph()
