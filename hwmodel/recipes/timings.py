"""When a per-tensor scale is known: one small function per timing, each adding the nodes it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodel.formats import ScaleLayout
from hwmodel.ops.amax import AmaxParams
from hwmodel.ops.columns import SliceParams
from hwmodel.ops.update_scale import UpdateScaleParams
from hwmodel.registry import Registry

if TYPE_CHECKING:
    from hwmodel.recipes.lowering import Lowering


@dataclass(frozen=True, slots=True)
class ScaleRequest:
    """A tensor about to be cast with scales that cover blocks no single kernel sees at once."""

    tensor: str
    name: str
    """Stem of the names of what is added."""
    role: str
    """x, w or g: which number format."""
    layout: ScaleLayout
    """Blocks as seen from ``tensor`` as it is stored."""
    rows_sharded: bool
    label: str
    layer: int | None


@dataclass(frozen=True, slots=True)
class KnownScale:
    """The encode_scale and decode_scale tensors of one cast, and whether the cast's kernel finds the amax as well."""

    encode: str
    decode: str
    cast_finds_amax: bool = False


Timing = Callable[["Lowering", ScaleRequest], KnownScale]
TIMINGS: Registry[Timing] = Registry("timing")


def direct(low: Lowering, request: ScaleRequest) -> KnownScale:
    """Cast as the values are: the scale is one."""
    return _state(low, request, stem="one")


def static(low: Lowering, request: ScaleRequest) -> KnownScale:
    """A scale fixed before the run."""
    return _state(low, request, stem=request.name)


def current(low: Lowering, request: ScaleRequest) -> KnownScale:
    """This tensor's own amax: a pass over it, agreed over its shards, then the scale; the cast waits for all of it."""
    amax = low.add_amax(request, AmaxParams(layout=request.layout, launches=low.target.count("amax_launches", 1)))
    if request.layout.crosses_shard(rows_sharded=request.rows_sharded, columns_sharded=False):
        amax = low.agree_amax(amax, request)
    params = UpdateScaleParams(
        format=low.recipe.formats.of(request.role),
        margin_bits=low.recipe.margin_bits,
        powers_of_two=request.layout.powers_of_two,
        from_current=True,
    )
    encode, decode = low.builder.add(
        "update_scale",
        params,
        (amax,),
        (f"{request.name}.encode_scale", f"{request.name}.decode_scale"),
        name=f"{request.name}.scale",
        layer=request.layer,
        role=f"{request.label}.scale",
    )
    if low.step.cold_start and low.recipe_keeps_state:
        low.note_amax(amax, request.role)
    return KnownScale(encode, decode)


def delayed(low: Lowering, request: ScaleRequest) -> KnownScale:
    """The scale left by earlier steps; the amax of this step, where it is due, goes to the history."""
    known = _state(low, request, stem=request.name)
    recipe = low.recipe
    if recipe.interval_steps is None:
        return known
    if recipe.amax.kernel == "fused":
        return KnownScale(known.encode, known.decode, cast_finds_amax=True)
    if recipe.amax.sampling == "split":
        amax = _slice_amax(low, request)
        if amax:
            low.note_amax(amax, request.role)
    elif low.step.amax_due:
        low.note_amax(low.add_amax(request, AmaxParams(layout=request.layout)), request.role)
    return known


def slice_range(rows: int, pieces: int, index: int) -> tuple[int, int]:
    """Rows from and to of slice ``index`` of ``pieces`` as even as can be; together they cover every row once."""
    base, extra = divmod(rows, pieces)
    start = index * base + min(index, extra)
    return start, start + base + (index < extra)


def _slice_amax(low: Lowering, request: ScaleRequest) -> str:
    """Amax of this step's slice of ``interval_steps`` along the rows; '' where there are more steps than rows left."""
    rows = low.builder.spec(request.tensor).shape[0]
    start, stop = slice_range(rows, low.recipe.interval_steps or 1, low.step.slice_index)
    if start == stop:
        return ""
    (piece,) = low.builder.add(
        "slice",
        SliceParams(axis=0, start=start, stop=stop),
        (request.tensor,),
        (f"{request.name}.slice",),
        layer=request.layer,
        role=f"{request.label}.slice",
    )
    return low.add_amax(request, AmaxParams(layout=request.layout), tensor=piece)


def _state(low: Lowering, request: ScaleRequest, *, stem: str) -> KnownScale:
    """Scales that exist before the step: inputs of the graph."""
    encode = low.state(f"{stem}.encode_scale", (1,), "fp32")
    return KnownScale(encode, low.state(f"{stem}.decode_scale", (1,), "fp32"))


TIMINGS.register("direct", direct)
TIMINGS.register("static", static)
TIMINGS.register("current", current)
TIMINGS.register("delayed", delayed)
