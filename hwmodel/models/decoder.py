"""The dense decoder as graphs: forward and backward of blocks, embedding and output head, for one rank.

Models call ``deliver`` and ``fetch`` of the lowering and never see a scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodel.errors import ParameterError
from hwmodel.graph import Layout, TensorSpec
from hwmodel.ops.attention import AttentionParams
from hwmodel.ops.collective import CollectiveParams
from hwmodel.ops.columns import SliceParams
from hwmodel.ops.cross_entropy import CrossEntropyParams
from hwmodel.ops.embedding import EmbeddingParams
from hwmodel.ops.residual_add import ResidualAddParams
from hwmodel.ops.rmsnorm import RmsNormParams
from hwmodel.ops.rope import RopeParams
from hwmodel.ops.swiglu import SwigluParams
from hwmodel.ops.views import ConcatParams
from hwmodel.recipes.copies import Delivery, Gather, LocalCopy, Operand

if TYPE_CHECKING:
    from hwmodel.models.spec import ModelSpec
    from hwmodel.recipes.lowering import Lowering

WEIGHTS = ("qkv", "proj", "fc1", "fc2")


@dataclass(frozen=True, slots=True)
class Dims:
    """Sizes of one rank's tensors, in elements."""

    tokens: int
    """Rows of a microbatch after the gather over the tensor-parallel group."""
    shard_tokens: int
    """Rows between tensor-parallel regions (sequence parallelism)."""
    hidden: int
    qkv: int
    queries: int
    keys_values: int
    feed_forward: int
    vocabulary: int
    heads: int
    key_value_heads: int
    sequence: int
    sequences: int

    def weight_shape(self, name: str) -> tuple[int, int]:
        """(output columns, input columns) of a linear layer's shard."""
        return {
            "qkv": (self.qkv, self.hidden),
            "proj": (self.hidden, self.queries),
            "fc1": (2 * self.feed_forward, self.hidden),
            "fc2": (self.hidden, self.feed_forward),
            "head": (self.vocabulary, self.hidden),
        }[name]


def rank_dims(spec: ModelSpec, layout: Layout, *, tokens: int, sequence: int, sequences: int) -> Dims:
    """Sizes on one rank of ``layout`` for a microbatch of ``tokens`` rows.

    Raises:
        ParameterError: a size does not divide by the degree that shards it.
    """
    for field, value in (("heads", spec.heads), ("feed_forward", spec.feed_forward), ("hidden", spec.hidden)):
        if value % layout.tp:
            raise ParameterError("parallel.tp", f"must divide the model's {field}={value}, got {layout.tp}")
    if spec.key_value_heads % layout.tp and layout.tp % spec.key_value_heads:
        raise ParameterError(
            "parallel.tp", f"must divide or be a multiple of key_value_heads={spec.key_value_heads}, got {layout.tp}"
        )
    if tokens % layout.sequence_shards:
        raise ParameterError("parallel.tp", f"must divide the {tokens} rows of a microbatch on a rank, got {layout.tp}")
    key_value_heads = max(1, spec.key_value_heads // layout.tp)
    queries = spec.query_width // layout.tp
    keys_values = 2 * key_value_heads * spec.head_size
    return Dims(
        tokens=tokens,
        shard_tokens=tokens // layout.sequence_shards,
        hidden=spec.hidden,
        qkv=queries + keys_values,
        queries=queries,
        keys_values=keys_values,
        feed_forward=spec.feed_forward // layout.tp,
        vocabulary=-(-spec.vocabulary // layout.tp),
        heads=spec.heads // layout.tp,
        key_value_heads=key_value_heads,
        sequence=sequence,
        sequences=sequences,
    )


@dataclass(frozen=True, slots=True)
class Weight:
    """The operands of one weight as earlier work left them: use -> copy, and the specs of every tensor named."""

    operands: Mapping[str, Operand]
    specs: Mapping[str, TensorSpec]
    shape: tuple[int, int]


def prepare_weight(low: Lowering, name: str, shape: tuple[int, int], *, layer: int | None, exempt: bool) -> Weight:
    """Bring one weight into the forms its GEMMs need, once per optimiser step."""
    source = low.state(name, shape, "bf16")
    label = name.rsplit(".", 1)[-1]
    delivery = low.deliver(source, role="w", uses=("fprop", "dgrad"), label=label, layer=layer, exempt=exempt)
    operands = {use: low.fetch(delivery, use) for use in ("fprop", "dgrad")}
    names = {part for operand in operands.values() for part in (operand.copy.data, operand.copy.scale) if part}
    return Weight(operands, {part: low.builder.spec(part) for part in names}, shape)


class Decoder:
    """Adds blocks to the graph of a `Lowering`; keeps what backward needs from forward."""

    def __init__(
        self, low: Lowering, spec: ModelSpec, layout: Layout, dims: Dims, weights: Mapping[str, Weight]
    ) -> None:
        self.low = low
        self.builder = low.builder
        self.spec = spec
        self.layout = layout
        self.dims = dims
        self.weights = weights
        low.shard_group = ("tp", layout.group("tp"))
        self._saved: dict[str, str] = {}
        self._deliveries: dict[str, Delivery] = {}

    # Building blocks

    def _add(self, op: str, params: object, inputs: tuple[str, ...], out: str, *, layer: int | None, role: str) -> str:
        (name,) = self.builder.add(op, params, inputs, (out,), layer=layer, role=role)
        return name

    def _gather(self, overlaps: Mapping[str, str], ring: tuple[str, ...]) -> Gather | None:
        ranks, stride = self.layout.group("tp")
        if ranks == 1 or not self.layout.sp:
            return None
        return Gather("tp", ranks, stride, overlaps, frozenset(ring))

    def _weight(self, name: str, use: str) -> Operand:
        weight = self.weights[name]
        operand = weight.operands[use]
        for part in (operand.copy.data, operand.copy.scale):
            if part:
                spec = weight.specs[part]
                self.low.state(part, spec.shape, spec.format)
        return operand

    def _reduce(self, partial: str, out: str, layer: int | None, role: str, overlap: str) -> str:
        """Sum partial results over the tensor-parallel group, scattered along rows under sequence parallelism."""
        ranks, stride = self.layout.group("tp")
        if ranks == 1:
            return partial
        params = CollectiveParams(
            group="tp",
            ranks=ranks,
            stride=stride,
            overlapped=self.low.target.overlap(overlap, "plain"),
            overlap_name=overlap,
        )
        return self._add(
            "reduce_scatter" if self.layout.sp else "all_reduce", params, (partial,), out, layer=layer, role=role
        )

    def _row_parallel(self, delivery: Delivery, weight: str, out: str, layer: int | None, label: str) -> str:
        """Fprop whose output is summed over the group: in pieces, each reduced under the next one's GEMM."""
        low, ranks = self.low, self.layout.tp
        a = low.fetch(delivery, "fprop")
        b = self._weight(weight, "fprop")
        payload = "block_scaled" if a.copy.layout is not None and not a.copy.layout.per_tensor else "plain"
        overlap = "fprop_reduce_scatter"
        pieces = ranks if ranks > 1 and self.layout.sp and low.target.overlap(overlap, payload) else 1
        if self.dims.tokens % (pieces * pieces):
            pieces = 1
        if pieces == 1:
            (partial,) = low.gemm(a, b, use="fprop", out=f"{out}.partial", label=f"{label}.fprop", layer=layer)
            blocking = overlap if low.target.overlap(overlap, payload) else ""
            return self._reduce(partial, out, layer, f"{label}.reduce_scatter", blocking)
        parts = low.split_rows(a, pieces, blocks=ranks, label=label, layer=layer)
        partials = low.gemm(parts, b, use="fprop", out=f"{out}.partial", label=f"{label}.fprop", layer=layer)
        reduced = tuple(
            self._reduce(partial, f"{out}.{index}", layer, f"{label}.reduce_scatter", overlap)
            for index, partial in enumerate(partials)
        )
        return self._add("concat", ConcatParams(axis=0), reduced, out, layer=layer, role=f"{label}.concat")

    def _join(self, pieces: tuple[str, ...], out: str, layer: int | None, label: str) -> str:
        if len(pieces) == 1:
            return pieces[0]
        return self._add("concat", ConcatParams(axis=0), pieces, out, layer=layer, role=f"{label}.concat")

    def _wgrad(self, name: str, g: Operand, x: Operand, layer: int | None, label: str) -> None:
        """Add this microbatch's weight gradient to the FP32 main gradient."""
        main = self.low.state(f"{name}.grad", self.weights[name].shape, self.low.gradient_format)
        self.low.gemm(g, x, use="wgrad", out=f"{name}.grad.next", label=f"{label}.wgrad", layer=layer, accumulator=main)

    def _norm_weight(self, name: str) -> str:
        return self.low.state(name, (self.dims.hidden,), "bf16")

    # Forward

    def forward(self, x: str, layer: int, *, exempt: bool) -> str:
        """One block; returns its output, sharded as its input."""
        d, low, p = self.dims, self.low, f"L{layer}"
        overlaps = {"fprop": "gather_fprop", "wgrad": "bulk_gather_wgrad"}
        x1 = self._add(
            "rmsnorm", RmsNormParams(), (x, self._norm_weight(f"{p}.norm1")), f"{p}.x1", layer=layer, role="norm1"
        )
        gathered = self._gather(overlaps, ("fprop",))
        dx1 = low.deliver(
            x1, role="x", uses=("fprop", "wgrad"), label="qkv", layer=layer, gather=gathered, exempt=exempt
        )
        pieces = low.gemm(
            low.fetch(dx1, "fprop"), self._weight(f"{p}.qkv", "fprop"), use="fprop", out=f"{p}.qkv_out",
            label="qkv.fprop", layer=layer,
        )  # fmt: skip
        qkv = self._join(pieces, f"{p}.qkv_out", layer, "qkv")
        rotated = self._add(
            "rope",
            RopeParams(rotated_columns=d.qkv - d.keys_values // 2),
            (qkv,),
            f"{p}.rotated",
            layer=layer,
            role="rope",
        )
        attended = self._attention(rotated, layer)
        dx2 = low.deliver(attended, role="x", uses=("fprop", "wgrad"), label="proj", layer=layer, exempt=exempt)
        projected = self._row_parallel(dx2, f"{p}.proj", f"{p}.proj_out", layer, "proj")
        middle = self._add(
            "residual_add", ResidualAddParams(), (x, projected), f"{p}.middle", layer=layer, role="residual1"
        )
        x3 = self._add(
            "rmsnorm", RmsNormParams(), (middle, self._norm_weight(f"{p}.norm2")), f"{p}.x3", layer=layer, role="norm2"
        )
        dx3 = low.deliver(
            x3, role="x", uses=("fprop", "wgrad"), label="fc1", layer=layer, gather=gathered, exempt=exempt
        )
        pieces = low.gemm(
            low.fetch(dx3, "fprop"), self._weight(f"{p}.fc1", "fprop"), use="fprop", out=f"{p}.gate_up",
            label="fc1.fprop", layer=layer,
        )  # fmt: skip
        gate_up = self._join(pieces, f"{p}.gate_up", layer, "fc1")
        x4 = self._add("swiglu", SwigluParams(), (gate_up,), f"{p}.x4", layer=layer, role="swiglu")
        dx4 = low.deliver(x4, role="x", uses=("fprop", "wgrad"), label="fc2", layer=layer, exempt=exempt)
        down = self._row_parallel(dx4, f"{p}.fc2", f"{p}.fc2_out", layer, "fc2")
        out = self._add("residual_add", ResidualAddParams(), (middle, down), f"{p}.out", layer=layer, role="residual2")
        self._deliveries.update({f"{p}.qkv": dx1, f"{p}.proj": dx2, f"{p}.fc1": dx3, f"{p}.fc2": dx4})
        self._saved.update({f"{p}.x": x, f"{p}.rotated": rotated, f"{p}.attended": attended})
        self._saved.update({f"{p}.middle": middle, f"{p}.gate_up": gate_up})
        return out

    def _attention_params(self, *, backward: bool) -> AttentionParams:
        d = self.dims
        return AttentionParams(
            query_heads=d.heads,
            key_value_heads=d.key_value_heads,
            qk_head_size=self.spec.head_size,
            v_head_size=self.spec.head_size,
            queries=d.sequence,
            keys=d.sequence,
            sequences=d.sequences,
            shards=self.layout.cp,
            backward=backward,
        )

    def _attention(self, rotated: str, layer: int) -> str:
        d, p = self.dims, f"L{layer}"
        inputs: tuple[str, ...] = (rotated,)
        ranks, stride = self.layout.group("cp")
        if ranks > 1:
            own = self._add(
                "slice", SliceParams(axis=1, start=d.queries, stop=d.qkv), (rotated,), f"{p}.kv", layer=layer, role="kv"
            )
            params = CollectiveParams(
                group="cp", ranks=ranks, stride=stride, overlap_name="context_gather",
                overlapped=self.low.target.overlap("context_gather", "plain"),
            )  # fmt: skip
            whole = self._add("all_gather", params, (own,), f"{p}.kv_all", layer=layer, role="attention.gather")
            self._saved[f"{p}.kv_all"] = whole
            inputs = (rotated, whole)
        return self._add(
            "attention", self._attention_params(backward=False), inputs, f"{p}.x2", layer=layer, role="attention"
        )

    # Backward

    def backward(self, grad: str, layer: int, *, exempt: bool) -> str:
        """Backward of one block; returns the gradient of its input."""
        p = f"L{layer}"
        grad_x4 = self._row_parallel_backward(grad, "fc2", layer, exempt=exempt)
        grad_gate_up = self._add(
            "swiglu", SwigluParams(backward=True), (grad_x4, self._saved[f"{p}.gate_up"]), f"{p}.g2", layer=layer,
            role="swiglu.backward",
        )  # fmt: skip
        grad_x3 = self._column_parallel_backward(grad_gate_up, "fc1", layer, exempt=exempt)
        grad_middle = self._norm_backward(grad_x3, grad, f"{p}.middle", "norm2", layer=layer, out=f"{p}.g3")
        grad_x2 = self._row_parallel_backward(grad_middle, "proj", layer, exempt=exempt)
        grad_rotated = self._attention_backward(grad_x2, layer)
        d = self.dims
        params = RopeParams(rotated_columns=d.qkv - d.keys_values // 2, backward=True)
        grad_qkv = self._add("rope", params, (grad_rotated,), f"{p}.g4", layer=layer, role="rope.backward")
        grad_x1 = self._column_parallel_backward(grad_qkv, "qkv", layer, exempt=exempt)
        return self._norm_backward(grad_x1, grad_middle, f"{p}.x", "norm1", layer=layer, out=f"{p}.gx")

    def _norm_backward(self, grad: str, residual: str, saved: str, norm: str, *, layer: int, out: str) -> str:
        inputs = (grad, self._saved[saved], self._norm_weight(f"L{layer}.{norm}"))
        inner = self._add(
            "rmsnorm", RmsNormParams(backward=True), inputs, f"{out}.inner", layer=layer, role=f"{norm}.backward"
        )
        return self._add(
            "residual_add", ResidualAddParams(), (inner, residual), out, layer=layer, role=f"{norm}.residual.backward"
        )

    def _row_parallel_backward(self, grad: str, name: str, layer: int, *, exempt: bool) -> str:
        """Proj and fc2: gather the gradient (in ring pieces under dgrad where software can), dgrad, wgrad."""
        low, p = self.low, f"L{layer}"
        gather = self._gather({"dgrad": "gather_dgrad", "wgrad": "bulk_gather_wgrad"}, ("dgrad",))
        # The gradient is also a residual's, so its casts carry the linear layer's name.
        delivered = low.deliver(
            grad, role="g", uses=("dgrad", "wgrad"), label=f"{name}.grad", layer=layer, gather=gather, exempt=exempt
        )
        first = low.fetch(delivered, "dgrad")
        second = low.start_again(delivered, "wgrad", first, "dgrad")
        pieces = low.gemm(
            first, self._weight(f"{p}.{name}", "dgrad"), use="dgrad", out=f"{p}.{name}.grad_in",
            label=f"{name}.dgrad", layer=layer,
        )  # fmt: skip
        grad_in = self._join(pieces, f"{p}.{name}.grad_in", layer, name)
        x = low.fetch(self._deliveries[f"{p}.{name}"], "wgrad")
        self._wgrad(f"{p}.{name}", low.finish(second, delivered, "wgrad"), x, layer, name)
        return grad_in

    def _column_parallel_backward(self, grad: str, name: str, layer: int, *, exempt: bool) -> str:
        """Qkv and fc1: re-gather the input under dgrad, reduce-scatter dgrad's output under wgrad."""
        low, p = self.low, f"L{layer}"
        delivered = low.deliver(
            grad, role="g", uses=("dgrad", "wgrad"), label=f"{name}.grad", layer=layer, exempt=exempt
        )
        saved = self._deliveries[f"{p}.{name}"]
        started = low.start(saved, "wgrad")
        (partial,) = low.gemm(
            low.fetch(delivered, "dgrad"), self._weight(f"{p}.{name}", "dgrad"), use="dgrad",
            out=f"{p}.{name}.grad_in.partial", label=f"{name}.dgrad", layer=layer,
        )  # fmt: skip
        scaled = low.is_block_scaled(delivered, "dgrad")
        overlap = "dgrad_reduce_scatter"
        if scaled and not low.target.overlap(overlap, "block_scaled"):
            overlap = ""
        grad_in = self._reduce(partial, f"{p}.{name}.grad_in", layer, f"{name}.reduce_scatter", overlap)
        x = low.finish(started, saved, "wgrad")
        self._wgrad(f"{p}.{name}", low.fetch(delivered, "wgrad"), x, layer, name)
        return grad_in

    def _attention_backward(self, grad: str, layer: int) -> str:
        p = f"L{layer}"
        saved, params = self._saved, self._attention_params(backward=True)
        if self.layout.cp == 1:
            inputs = (grad, saved[f"{p}.rotated"], saved[f"{p}.attended"])
            return self._add("attention", params, inputs, f"{p}.grad_rotated", layer=layer, role="attention.backward")
        inputs4 = (grad, saved[f"{p}.rotated"], saved[f"{p}.kv_all"], saved[f"{p}.attended"])
        grad_qkv, grad_kv = self.builder.add(
            "attention", params, inputs4, (f"{p}.grad_rotated.own", f"{p}.grad_kv_all"), layer=layer,
            role="attention.backward",
        )  # fmt: skip
        ranks, stride = self.layout.group("cp")
        scatter = CollectiveParams(
            group="cp", ranks=ranks, stride=stride, overlap_name="context_gather",
            overlapped=self.low.target.overlap("context_gather", "plain"),
        )  # fmt: skip
        own = self._add(
            "reduce_scatter", scatter, (grad_kv,), f"{p}.grad_kv", layer=layer, role="attention.reduce_scatter"
        )
        columns = SliceParams(axis=1, start=self.dims.queries, stop=self.dims.qkv)
        return self._add(
            "overlay", columns, (grad_qkv, own), f"{p}.grad_rotated", layer=layer, role="attention.overlay"
        )

    # Ends of the model

    def embed(self) -> str:
        """Token embedding, sharded over the vocabulary, summed over the group."""
        d = self.dims
        tokens = self.low.state("tokens", (d.tokens,), "int32")
        table = self.low.state("embedding.table", (d.vocabulary, d.hidden), "bf16")
        params = EmbeddingParams(vocabulary=d.vocabulary, hidden=d.hidden)
        looked_up = self._add("embedding", params, (tokens, table), "embedding.partial", layer=None, role="embedding")
        return self._reduce(looked_up, "embedding.out", None, "embedding.reduce_scatter", "")

    def embed_backward(self, grad: str) -> None:
        """Gradient of the table: gathered rows scattered into it."""
        d = self.dims
        gather = self._gather({"fprop": ""}, ())
        delivered = self.low.deliver(grad, role="x", uses=("fprop",), label="embedding", gather=gather, exempt=True)
        whole = self.low.fetch(delivered, "fprop").copy.data
        params = EmbeddingParams(vocabulary=d.vocabulary, hidden=d.hidden, backward=True)
        tokens = self.low.state("tokens", (d.tokens,), "int32")
        self._add("embedding", params, (whole, tokens), "embedding.grad", layer=None, role="embedding.backward")

    def head(self, x: str) -> str:
        """Final norm, output projection in BF16, loss and their backward; returns the gradient of ``x``."""
        d, low = self.dims, self.low
        normed = self._add(
            "rmsnorm", RmsNormParams(), (x, self._norm_weight("final_norm")), "head.x", layer=None, role="final_norm"
        )
        gather = self._gather({"fprop": "gather_fprop", "wgrad": "bulk_gather_wgrad"}, ())
        delivered = low.deliver(normed, role="x", uses=("fprop", "wgrad"), label="head", gather=gather, exempt=True)
        (logits,) = low.gemm(
            low.fetch(delivered, "fprop"), self._weight("head", "fprop"), use="fprop", out="head.logits",
            label="head.fprop",
        )  # fmt: skip
        targets = low.state("targets", (d.tokens,), "int32")
        loss = self._add(
            "cross_entropy", CrossEntropyParams(), (logits, targets), "loss.partial", layer=None, role="loss"
        )
        ranks, stride = self.layout.group("tp")
        if ranks > 1:
            params = CollectiveParams(group="tp", ranks=ranks, stride=stride)
            loss = self._add("all_reduce", params, (loss,), "loss", layer=None, role="loss.all_reduce")
        grad_logits = self._add(
            "cross_entropy", CrossEntropyParams(backward=True), (logits, targets, loss), "head.grad_logits", layer=None,
            role="loss.backward",
        )  # fmt: skip
        grad = LocalCopy(grad_logits)
        (partial,) = low.gemm(
            Operand((grad,)), self._weight("head", "dgrad"), use="dgrad", out="head.grad_in.partial", label="head.dgrad"
        )
        again = low.fetch(delivered, "wgrad")
        reduced = self._reduce(partial, "head.grad_in", None, "head.reduce_scatter", "dgrad_reduce_scatter")
        self._wgrad("head", Operand((grad,)), again, None, "head")
        inputs = (reduced, x, self._norm_weight("final_norm"))
        return self._add(
            "rmsnorm", RmsNormParams(backward=True), inputs, "head.gx", layer=None, role="final_norm.backward"
        )
