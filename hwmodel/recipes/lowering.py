"""Delivers tensors to the GEMMs that use them: decides copies, direction, order of gather and cast.

Models call `Lowering.deliver` where a tensor is made and `Lowering.fetch` where a GEMM needs it; they never see a
scale. After lowering no code asks which recipe it was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hwmodel.formats import FORMATS, ScaleLayout
from hwmodel.ops.collective import CollectiveParams
from hwmodel.ops.gemm import GemmParams
from hwmodel.ops.rearrange_scales import RearrangeScalesParams
from hwmodel.ops.transpose import TransposeParams
from hwmodel.ops.update_scale import UpdateScaleParams
from hwmodel.ops.views import ConcatParams, SplitParams
from hwmodel.recipes.cast import Cast
from hwmodel.recipes.copies import ROW_USES, Delivery, Gather, LocalCopy, Operand, Place, payload, travelling
from hwmodel.recipes.fusion import fuse
from hwmodel.recipes.timings import TIMINGS, KnownScale, ScaleRequest

if TYPE_CHECKING:
    from hwmodel.graph import Graph, Target
    from hwmodel.ops.amax import AmaxParams
    from hwmodel.ops.build import Builder
    from hwmodel.recipes.recipe import Recipe, StepKind

AMAX_STREAM_OVERLAP = "amax_reduction"


class Lowering:
    """One graph under construction with the recipe, target and kind of step it is built for."""

    def __init__(
        self, builder: Builder, recipe: Recipe, target: Target, *, step: StepKind, amax_group: tuple[int, int] = (1, 1)
    ) -> None:
        """``amax_group`` is (ranks, stride) of the group over which delayed scaling agrees its amaxes."""
        self.builder = builder
        self.recipe_keeps_state = recipe.keeps_state
        self.recipe = recipe.as_current() if step.cold_start and recipe.keeps_state else recipe
        self.target = target
        self.step = step
        self.amax_group = amax_group
        self.defaults: dict[str, str] = {}
        self._noted: list[tuple[str, str]] = []

    # Inputs that exist before the graph runs

    def state(self, name: str, shape: tuple[int, ...], number_format: str) -> str:
        """A tensor carried from an earlier step (a scale, a weight copy, a saved activation)."""
        return name if self.builder.has(name) else self.builder.input(name, shape, number_format)

    def graph(self) -> Graph:
        """The graph as it runs: what the recipe and the target's software merge is merged."""
        amax_fuses = self.recipe.timing == "current" or self.recipe.amax.kernel == "fused_producer"
        return fuse(self.builder.graph(), self.recipe.fusion, self.target, amax_fuses=amax_fuses)

    # Delivery

    def deliver(
        self,
        tensor: str,
        *,
        role: str,
        uses: tuple[str, ...],
        label: str,
        layer: int | None = None,
        gather: Gather | None = None,
        exempt: bool = False,
    ) -> Delivery:
        """Bring ``tensor`` (rows, columns) of ``role`` x, w or g into the forms its ``uses`` need.

        ``exempt`` keeps it in its own format (an exception layer, the output projection).
        """
        precise = tuple(use for use in uses if exempt or self.recipe.high_precision(use))
        scaled = tuple(use for use in uses if use not in precise)
        copies = {use: LocalCopy(tensor) for use in precise}
        if scaled and FORMATS.get(self.recipe.formats.of(role)).is_eight_bit:
            copies.update(self._quantised(tensor, role, scaled, Place(label, layer, gather)))
        else:
            copies.update({use: LocalCopy(tensor) for use in scaled})
        return Delivery(tensor, role, copies, gather, label, layer)

    def _quantised(self, tensor: str, role: str, uses: tuple[str, ...], place: Place) -> dict[str, LocalCopy]:
        by_layout: dict[ScaleLayout, list[str]] = {}
        for use in uses:
            by_layout.setdefault(self._effective_layout(role, use), []).append(use)
        copies: dict[str, LocalCopy] = {}
        for index, (layout, same) in enumerate(by_layout.items()):
            name = tensor if index == 0 else f"{tensor}.{index}"
            cast = Cast(self, tensor, name, role=role, layout=layout, place=place)
            copies.update(cast.copies(tuple(same)))
        return copies

    def _effective_layout(self, role: str, use: str) -> ScaleLayout:
        """The recipe's layout, with powers of two where the target applies its blocks only that way."""
        layout = self.recipe.layout(role, use)
        if layout.columns is not None and not layout.powers_of_two and self.emulated(layout):
            self.defaults["recipe.scale_rounding"] = (
                f"power_of_two: {self.target.name} applies scales of {layout.columns} elements as E8M0"
            )
            return replace(layout, powers_of_two=True)
        return layout

    def emulated(self, layout: ScaleLayout) -> bool:
        """Blocks that the target applies natively under another scale format, after a conversion of the scales."""
        return not self.target.scales_natively(layout.columns, layout.scale_format) and any(
            native.columns == layout.columns for native in self.target.native_scaling
        )

    # Amax and scale

    def known_scale(self, request: ScaleRequest) -> KnownScale:
        """The scales of a cast whose blocks no single kernel sees at once, by the recipe's timing."""
        return TIMINGS.get(self.recipe.timing)(self, request)

    def add_amax(self, request: ScaleRequest, params: AmaxParams, *, tensor: str = "") -> str:
        """A pass over the tensor that finds its amax."""
        (amax,) = self.builder.add(
            "amax",
            params,
            (tensor or request.tensor,),
            (f"{request.name}.amax",),
            layer=request.layer,
            role=f"{request.label}.amax",
        )
        return amax

    def agree_amax(self, amax: str, request: ScaleRequest) -> str:
        """The largest amax over the shards of one logical tensor; the cast waits for it."""
        group, (ranks, stride) = self.shard_group
        if ranks == 1:
            return amax
        (agreed,) = self.builder.add(
            "all_reduce",
            CollectiveParams(group=group, ranks=ranks, stride=stride, reduction="max", overlap_name="amax"),
            (amax,),
            (f"{amax}.agreed",),
            layer=request.layer,
            role=f"{request.label}.amax_all_reduce",
        )
        return agreed

    gradient_format: str = "fp32"
    """Format in which weight gradients are accumulated; set by whoever lowers a workload."""
    shard_group: tuple[str, tuple[int, int]] = ("tp", (1, 1))
    """Group (name, (ranks, stride)) over which rows of activations are sharded; set by the model."""

    def note_amax(self, amax: str, role: str) -> None:
        """Remember the amax of a tensor of ``role`` that the pass's state update will take."""
        self._noted.append((amax, self.recipe.formats.of(role)))

    def update_state(self, label: str) -> None:
        """End of a pass: agree all noted amaxes in one message, then update history and scales, a kernel per format."""
        noted, self._noted = self._noted, []
        if not noted or not (self.step.amax_due or self.recipe.amax.sampling == "split"):
            return
        agreed = self._agree_noted(label, [amax for amax, _ in noted])
        formats = [number_format for _, number_format in noted]
        recipe = self.recipe
        for number_format in dict.fromkeys(formats):
            own = [amax for amax, chosen in zip(agreed, formats, strict=True) if chosen == number_format]
            stem = f"{label}.{number_format}"
            history = self.state(f"{stem}.history", (recipe.history_steps, len(own)), "fp32")
            params = UpdateScaleParams(
                format=number_format,
                margin_bits=recipe.margin_bits,
                powers_of_two=recipe.scale_rounding == "power_of_two",
                history_steps=recipe.history_steps,
                history_rule=recipe.history_rule,
                tensors=len(own),
            )
            self.builder.add(
                "update_scale",
                params,
                (*own, history),
                (f"{stem}.next.encode_scale", f"{stem}.next.decode_scale", f"{stem}.next.history"),
                name=f"{stem}.update",
                role=f"{label}.scale",
            )

    def _agree_noted(self, label: str, noted: list[str]) -> list[str]:
        ranks, stride = self.amax_group
        if ranks == 1:
            return noted
        params = CollectiveParams(
            group="amax",
            ranks=ranks,
            stride=stride,
            reduction="max",
            overlapped=self.target.overlap(AMAX_STREAM_OVERLAP, "plain"),
            overlap_name=AMAX_STREAM_OVERLAP,
        )
        name = f"{label}.amax_all_reduce"
        agreed = [f"{amax}.{label}.agreed" for amax in noted]
        return list(self.builder.add("all_reduce", params, noted, agreed, name=name, role=name))

    # Fetching an operand where a GEMM needs it

    def fetch(self, delivery: Delivery, use: str) -> Operand:
        """The operand for ``use``: gathered where the tensor is sharded, transposed and with its scales in order."""
        return self.finish(self.start(delivery, use), delivery, use)

    def start(self, delivery: Delivery, use: str) -> Operand:
        """Begin to bring the operand for ``use``; a transfer that may overlap runs until `finish` is called."""
        copy = delivery.copies[use]
        gather = delivery.gather
        if gather is None or gather.ranks == 1:
            return Operand((copy,))
        overlap = gather.overlaps.get(use, "")
        overlapped = bool(overlap) and self.target.overlap(overlap, payload(copy))
        if overlapped and use in gather.ring:
            return self._ring(copy, delivery, use, gather, overlap)
        return Operand((self._gathered(copy, delivery, use, gather, overlap, overlapped=overlapped),))

    def finish(self, operand: Operand, delivery: Delivery, use: str) -> Operand:
        """The operand as the GEMM reads it, with what must be done to it on the main stream."""
        return Operand(tuple(self._ready(piece, delivery, use) for piece in operand.pieces))

    def _gathered(
        self, copy: LocalCopy, delivery: Delivery, use: str, gather: Gather, overlap: str, *, overlapped: bool
    ) -> LocalCopy:
        parts = travelling(copy)
        params = CollectiveParams(
            group=gather.group,
            ranks=gather.ranks,
            stride=gather.stride,
            axis=1 if copy.turned else 0,
            overlapped=overlapped,
            overlap_name=overlap,
        )
        stem = f"{copy.data}.{use}"
        names = tuple(f"{stem}.gathered{index or ''}" for index in range(len(parts)))
        self.builder.add(
            "all_gather",
            params,
            parts,
            names,
            name=f"{stem}.gather",
            layer=delivery.layer,
            role=f"{delivery.label}.{use}.gather",
        )
        return replace(copy, data=names[0], scale=names[1] if len(names) > 1 else copy.scale)

    def _ring(self, copy: LocalCopy, delivery: Delivery, use: str, gather: Gather, overlap: str) -> Operand:
        """Ring exchange: this rank's own piece first, then one piece per step from the neighbour."""
        own = self._ready(copy, delivery, use)
        pieces = [own]
        params = CollectiveParams(
            group=gather.group, ranks=gather.ranks, stride=gather.stride, overlapped=True, overlap_name=overlap
        )
        for index in range(1, gather.ranks):
            parts = travelling(pieces[-1])
            names = tuple(f"{own.data}.{use}.ring{index}{'s' if part else ''}" for part in range(len(parts)))
            self.builder.add(
                "send_recv",
                params,
                parts,
                names,
                name=f"{own.data}.{use}.exchange{index}",
                layer=delivery.layer,
                role=f"{delivery.label}.{use}.gather",
            )
            pieces.append(replace(own, data=names[0], scale=names[1] if len(names) > 1 else own.scale))
        return Operand(tuple(pieces))

    def start_again(self, delivery: Delivery, use: str, first: Operand, first_use: str) -> Operand:
        """As `start` for a second ``use``: what came for the first where both read one copy, else its own transfer."""
        if delivery.copies[use].data != delivery.copies[first_use].data:
            return self.start(delivery, use)
        return self.whole(first, f"{delivery.label}.{use}", delivery.layer)

    @staticmethod
    def is_block_scaled(delivery: Delivery, use: str) -> bool:
        """The copy for ``use`` carries a table of scales (rows or blocks), which overlap support may not cover."""
        return payload(delivery.copies[use]) == "block_scaled"

    def split_rows(self, operand: Operand, pieces: int, *, blocks: int, label: str, layer: int | None) -> Operand:
        """Views of ``pieces`` equal parts of the rows, each with as many rows of every one of ``blocks`` row blocks."""
        copy = operand.copy
        sharded_scale = copy.layout is not None and not copy.layout.per_tensor

        def view(name: str, index: int) -> str:
            params = SplitParams(axis=0, pieces=pieces, index=index, blocks=blocks)
            (part,) = self.builder.add(
                "split", params, (name,), (f"{name}.{label}.{index}",), layer=layer, role=f"{label}.split"
            )
            return part

        return Operand(
            tuple(
                replace(
                    copy, data=view(copy.data, index), scale=view(copy.scale, index) if sharded_scale else copy.scale
                )
                for index in range(pieces)
            )
        )

    def whole(self, operand: Operand, label: str, layer: int | None) -> Operand:
        """All pieces of a ring as one operand (they already lie side by side: no kernel)."""
        if len(operand.pieces) == 1:
            return operand
        first = operand.pieces[0]
        axis = 1 if first.turned else 0

        def joined(names: list[str], suffix: str) -> str:
            (whole,) = self.builder.add(
                "concat",
                ConcatParams(axis=axis),
                names,
                (f"{first.data}.{suffix}",),
                layer=layer,
                role=f"{label}.{suffix}",
            )
            return whole

        data = joined([piece.data for piece in operand.pieces], "whole")
        sharded_scale = first.layout is not None and not first.layout.per_tensor
        scale = joined([piece.scale for piece in operand.pieces], "whole_scale") if sharded_scale else first.scale
        return Operand((replace(first, data=data, scale=scale),))

    def _ready(self, copy: LocalCopy, delivery: Delivery, use: str) -> LocalCopy:
        """Second-direction transpose on devices that read only k-contiguous operands; scales in the GEMM's order."""
        if copy.layout is None:
            return copy
        column_use = (delivery.role, use) not in ROW_USES
        if column_use and not copy.turned and not self.target.any_operand_layout:
            (turned,) = self._once(
                "transpose",
                TransposeParams(),
                (copy.data,),
                (f"{copy.data}.turned",),
                delivery=delivery,
                label=f"{use}.transpose",
            )
            copy = replace(copy, data=turned, turned=True)
        if not copy.in_gemm_order:
            (ordered,) = self._once(
                "rearrange_scales",
                RearrangeScalesParams(),
                (copy.scale,),
                (f"{copy.scale}.{use}.ordered",),
                delivery=delivery,
                label=f"{use}.rearrange",
            )
            copy = replace(copy, scale=ordered, in_gemm_order=True)
        return copy

    def _once(
        self,
        op: str,
        params: object,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        *,
        delivery: Delivery,
        label: str,
    ) -> tuple[str, ...]:
        if self.builder.has(outputs[0]):
            return outputs
        return self.builder.add(op, params, inputs, outputs, layer=delivery.layer, role=f"{delivery.label}.{label}")

    # GEMMs

    def gemm(
        self,
        a: Operand,
        b: Operand,
        *,
        use: str,
        out: str,
        label: str,
        layer: int | None = None,
        accumulator: str = "",
    ) -> tuple[str, ...]:
        """One GEMM per piece of ``a`` (rows), in the order the pieces come; returns the outputs."""
        right = b.copy
        outputs: list[str] = []
        for index, left in enumerate(a.pieces):
            params = self._gemm_params(left, right, use=use, accumulates=bool(accumulator))
            inputs = [left.data, right.data]
            inputs += [left.scale] if params.a_scale else []
            inputs += [right.scale] if params.b_scale else []
            inputs += [accumulator] if accumulator else []
            suffix = f".{index}" if len(a.pieces) > 1 else ""
            outputs += self.builder.add(
                "gemm", params, inputs, (f"{out}{suffix}",), name=f"{out}.{use}{suffix}", layer=layer, role=label
            )
        return tuple(outputs)

    def _gemm_params(self, a: LocalCopy, b: LocalCopy, *, use: str, accumulates: bool) -> GemmParams:
        wgrad = use == "wgrad"
        k = self._contraction(a, wgrad=wgrad)
        broken = [copy.layout for copy in (a, b) if copy.layout is not None and copy.layout.breaks_contraction(k)]
        native = bool(broken) and all(self._native(layout) for layout in broken)
        promote = 0 if native or not broken else min(layout.columns or k for layout in broken)
        vectors = sum(copy.layout is not None and copy.layout.rows == 1 for copy in (a, b))
        return GemmParams(
            out_format=self.gradient_format if wgrad else "bf16",
            transpose_a=wgrad and not a.turned,
            transpose_b=b.turned if use != "fprop" else True,
            a_scale=a.layout,
            b_scale=b.layout,
            accumulates=accumulates,
            native_block_scales=native,
            promote_every=promote,
            epilogue_scale_vectors=0 if native else vectors,
            kernel=self.target.kernel("promotion") if promote else self.target.kernel("block_scaled") if native else "",
        )

    def _native(self, layout: ScaleLayout) -> bool:
        return self.target.scales_natively(layout.columns, layout.scale_format) or self.emulated(layout)

    def _contraction(self, a: LocalCopy, *, wgrad: bool) -> int:
        spec = self.builder.spec(a.data)
        return spec.rows if wgrad and not a.turned else spec.columns
