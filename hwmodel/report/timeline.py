"""The timeline as a figure: a lane for each stream and a strip for each resource, one section per recipe.

Plotly is imported when a figure is drawn, and nowhere else in the package. What is drawn comes from `timeline_rows`;
the page around the figure is `timeline_page`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hwmodel.engine.trace import SequenceTrace
from hwmodel.report import wording
from hwmodel.report.breakdown import KEYS
from hwmodel.report.timeline_rows import (
    LIMIT_BARS,
    Block,
    Merged,
    ResourceUse,
    TimelineRow,
    blocks,
    merge,
    resource_use,
    rows,
)
from hwmodel.schedules.plan import MAIN_STREAM
from hwmodel.units import PICOSECONDS_PER_SECOND, format_bytes

COLOURS: Final = {
    "gemm": "#3b6fb6",
    "attention": "#7cc4e8",
    "elementwise": "#44aa99",
    "quantise": "#d9576b",
    "amax": "#8c1d4f",
    "transpose": "#b07cc6",
    "scale": "#f0b93a",
    "collective": "#2f7d3b",
    "optimizer": "#a3a12f",
    "bubble": "#d9dce1",
    "host": "#6b7280",
    "idle": "#eef0f3",
}
"""One fixed colour per kind, told apart by hue and by lightness (after P. Tol, 'Colour schemes', muted set)."""
OTHER_COLOUR: Final = "#9aa0a6"

USE_STEPS: Final = 2_000
"""Steps of time in which the use of resources is shown; with more starts and ends than that it is averaged."""

_NAMED_BARS = 1_500
"""Bars of a section up to which names stand inside them where they fit; more would make zooming slow."""

_LANE_PIXELS = 34
_STRIP_PIXELS = 20
_TITLE_PIXELS = 64
_TOP_PIXELS = 36
_BOTTOM_PIXELS = 38
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_INK = "#1f2933"
_FAINT = "#6b7280"


@dataclass(frozen=True, slots=True)
class Section:
    """One run on the page."""

    title: str
    """Name of the recipe."""
    trace: SequenceTrace
    breakdown: Mapping[str, int] | None = None
    """Picoseconds by key; None where the kinds of the trace are no keys (parts of one kernel)."""
    speedup: float | None = None
    hidden: Mapping[str, int] | None = None
    """Picoseconds of amax and collectives that other work covered, for the page's table."""
    detail: str = ""
    """More to say in the title."""

    @property
    def step_picoseconds(self) -> int:
        """Time of the whole run."""
        return self.trace.makespan_picoseconds


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a section's lanes and strips stand: 0 is the highest, each one lower by 1 or by a strip's share."""

    lanes: Mapping[str, float]
    strips: Mapping[str, float]
    has_blocks: bool
    bottom: float

    @property
    def pixels(self) -> float:
        return (self.bottom + 0.5) * _LANE_PIXELS


def merged_rows(sections: Sequence[Section], limit: int = LIMIT_BARS) -> Merged:
    """The bars of a page."""
    return merge([rows(section.trace) for section in sections], limit)


def figure(sections: Sequence[Section], *, limit: int = LIMIT_BARS) -> Any:
    """A Plotly figure with one row of lanes per section on a common time axis; equal runs give equal figures."""
    return draw(sections, merged_rows(sections, limit))


def draw(sections: Sequence[Section], merged: Merged) -> Any:
    """`figure` of rows already merged."""
    import plotly.graph_objects as go  # noqa: PLC0415 - heavy, and only timelines need it

    uses = [resource_use(section.trace, USE_STEPS) for section in sections]
    found = [blocks(section.trace) for section in sections]
    places = [
        _place(bars, [resource for resource, _ in use.used_fractions], _several(items))
        for bars, use, items in zip(merged.sections, uses, found, strict=True)
    ]
    longest = max((items[-1].end_picoseconds for items in found if items), default=1)
    scale, unit = _time_scale(longest)
    height = _TOP_PIXELS + _BOTTOM_PIXELS + sum(_TITLE_PIXELS + place.pixels for place in places)
    chart = go.Figure()
    legend: set[str] = set()
    axes: dict[str, Any] = {}
    notes: list[dict[str, Any]] = []
    used = float(_TOP_PIXELS)
    for number, (section, bars, use, items, place) in enumerate(
        zip(sections, merged.sections, uses, found, places, strict=True), start=1
    ):
        suffix = "" if number == 1 else str(number)
        plot = height - _TOP_PIXELS - _BOTTOM_PIXELS
        top = 1 - (used + _TITLE_PIXELS - 22 - _TOP_PIXELS) / plot
        used += _TITLE_PIXELS + place.pixels
        bottom = max(0.0, 1 - (used - 22 - _TOP_PIXELS) / plot)
        axes |= _axes(number, suffix, place, (bottom, top), longest / scale, last=number == len(sections), unit=unit)
        notes.append(_title_note(section, top))
        for trace in _traces(bars, use, items, place, scale=scale, suffix=suffix, legend=legend):
            chart.add_trace(trace)
    for kind in sorted(legend, key=_legend_rank):  # an entry for each kind, in the order of the breakdown
        chart.add_trace(_legend_entry(kind))
    chart.update_layout(**_layout(height), **axes, annotations=notes)
    return chart


def hover_text(row: TimelineRow) -> str:
    """What a bar says when pointed at, names as plain text."""
    name = row.name or (f"{row.count} events" if row.count > 1 else row.kind)
    lines = [f"<b>{wording.plain(name)}</b>"]
    if row.count > 1:
        lines.append(f"{row.count:,} {wording.plain(row.kind)} events merged, total times exact")
    where = [row.kind, row.role, f"layer {row.layer}" if row.layer is not None else ""]
    lines.append(" · ".join(wording.plain(word) for word in where if word))
    if row.note:
        lines.append(wording.plain(row.note))
    began = wording.duration(row.step_start_picoseconds)
    until = f" to {wording.duration(row.step_end_picoseconds)}" if row.count > 1 else ""
    lines.append(f"start {began}{until}")
    lines.append(f"duration {wording.duration(row.elapsed_picoseconds)}{_slowdown(row)}")
    seconds = row.elapsed_picoseconds / PICOSECONDS_PER_SECOND
    if row.bytes:
        rate = f" at {format_bytes(row.bytes / seconds)}/s" if seconds else ""
        lines.append(f"{format_bytes(row.bytes)}{rate}")
    if row.flops:
        rate = f" at {wording.flops(row.flops / seconds)}/s" if seconds else ""
        lines.append(f"{wording.flops(row.flops)}{rate}")
    if row.shape:
        lines.append(f"shape {wording.plain(row.shape)}")
    if row.bound:
        lines.append(f"bound by {wording.plain(row.bound)}")
    if row.parts:
        whole = sum(alone for _, alone in row.parts)
        shares = ", ".join(f"{wording.plain(kind)} {wording.percent(alone, whole)}" for kind, alone in row.parts)
        lines.append(f"fused: {shares}")
    return "<br>".join(lines)


def _slowdown(row: TimelineRow) -> str:
    """How much sharing the device cost, if anything."""
    if not 0 < row.alone_picoseconds < row.elapsed_picoseconds:
        return ""
    return (
        f" (alone {wording.duration(row.alone_picoseconds)}, "
        f"{row.elapsed_picoseconds / row.alone_picoseconds:.2f}x as long here)"
    )


def _place(bars: Sequence[TimelineRow], resources: Sequence[str], several: bool) -> _Place:
    # The main stream first; sorting keeps the others in order of first use.
    names = sorted(dict.fromkeys(row.lane for row in bars), key=lambda name: name.split(" (")[0] != MAIN_STREAM)
    first = 1 if several else 0
    lanes = {name: float(first + number) for number, name in enumerate(names)}
    strip = _STRIP_PIXELS / _LANE_PIXELS
    at = first + len(names) - 0.5 + (0.12 if resources else 0)
    strips = {name: at + (number + 0.5) * strip for number, name in enumerate(resources)}
    return _Place(lanes, strips, several, at + len(resources) * strip)


def _several(items: Sequence[Block]) -> bool:
    return len(items) > 1 or any(item.copies > 1 for item in items)


def _time_scale(longest: int) -> tuple[int, str]:
    """Picoseconds per unit of the axis, and the unit."""
    for scale, unit in ((10**12, "s"), (10**9, "ms"), (10**6, "us"), (10**3, "ns")):
        if longest >= scale * (1 if unit != "s" else 10):
            return scale, unit
    return 1, "ps"


def _traces(
    bars: Sequence[TimelineRow],
    use: ResourceUse,
    items: Sequence[Block],
    place: _Place,
    *,
    scale: int,
    suffix: str,
    legend: set[str],
) -> list[Any]:
    """Everything drawn in one section."""
    found = []
    if place.has_blocks:
        found.append(_block_trace(items, scale, suffix))
    by_kind: dict[str, list[TimelineRow]] = {}
    for row in bars:
        if row.elapsed_picoseconds:
            by_kind.setdefault(row.kind, []).append(row)
    named = len(bars) <= _NAMED_BARS
    legend.update(by_kind)
    found += [
        _kind_trace(kind, by_kind[kind], place, scale, suffix, named=named)
        for kind in sorted(by_kind, key=_legend_rank)
    ]
    edges = [edge / scale for edge in use.edges_picoseconds]
    found += [_strip_trace(resource, levels, edges, place, suffix) for resource, levels in use.used_fractions]
    return found


def _kind_trace(kind: str, bars: Sequence[TimelineRow], place: _Place, scale: int, suffix: str, *, named: bool) -> Any:
    import plotly.graph_objects as go  # noqa: PLC0415 - as in draw

    return go.Bar(
        orientation="h",
        base=[row.start_picoseconds / scale for row in bars],
        x=[row.elapsed_picoseconds / scale for row in bars],
        y=[place.lanes[row.lane] for row in bars],
        width=0.72,
        offset=-0.36,
        marker={"color": _colour(kind), "line": {"width": 0}, **_hatching(bars)},
        name=wording.plain(kind),
        legendgroup=wording.plain(kind),
        showlegend=False,
        text=[wording.plain(_bar_label(row)) for row in bars] if named else None,
        textposition="inside" if named else "none",
        insidetextanchor="middle",
        insidetextfont={"size": 11},
        textangle=0,
        customdata=[hover_text(row) for row in bars],
        hovertemplate="%{customdata}<extra></extra>",
        xaxis=f"x{suffix}",
        yaxis=f"y{suffix}",
    )


def _hatching(bars: Sequence[TimelineRow]) -> dict[str, Any]:
    """Stripes on fused kernels in the colour of the last part that is of another kind."""
    others = [next((kind for kind, _ in reversed(row.parts) if kind != row.kind), None) for row in bars]
    if not any(others):
        return {}
    return {
        "pattern": {
            "shape": ["" if kind is None else "/" for kind in others],
            "fgcolor": ["rgba(0,0,0,0)" if kind is None else _colour(kind) for kind in others],
            "fillmode": "overlay",
            "size": 7,
            "solidity": 0.4,
        }
    }


def _bar_label(row: TimelineRow) -> str:
    """What stands inside a bar once it is wide enough."""
    return row.name if row.count == 1 else f"{row.count:,} x {row.name or row.kind}"


def _block_trace(items: Sequence[Block], scale: int, suffix: str) -> Any:
    """The strip of blocks, each labelled where its label fits."""
    import plotly.graph_objects as go  # noqa: PLC0415 - as in draw

    return go.Bar(
        orientation="h",
        base=[item.start_picoseconds / scale for item in items],
        x=[(item.end_picoseconds - item.start_picoseconds) / scale for item in items],
        y=[0] * len(items),
        width=0.62,
        offset=-0.31,
        marker={
            "color": ["#e4e9f2" if number % 2 == 0 else "#d3dbe8" for number in range(len(items))],
            "line": {"width": 1, "color": "#ffffff"},
        },
        text=[wording.plain(item.label) for item in items],
        textposition="inside",
        insidetextanchor="middle",
        insidetextfont={"color": _INK, "size": 12},
        textangle=0,
        constraintext="inside",
        showlegend=False,
        customdata=[_block_hover(item) for item in items],
        hovertemplate="%{customdata}<extra></extra>",
        xaxis=f"x{suffix}",
        yaxis=f"y{suffix}",
    )


def _block_hover(item: Block) -> str:
    lines = [
        f"<b>{wording.plain(item.label)}</b>",
        f"{wording.duration(item.end_picoseconds - item.start_picoseconds)}",
    ]
    if item.copies > 1:
        lines[1] += f" each, {item.copies} copies {wording.duration(item.total_picoseconds)}"
        lines.append("drawn once, counted every time")
    return "<br>".join(lines)


def _strip_trace(resource: str, levels: Sequence[float], edges: Sequence[float], place: _Place, suffix: str) -> Any:
    """How much of a resource is in use over time, the darker the more."""
    import numpy as np  # noqa: PLC0415 - as Plotly in draw
    import plotly.graph_objects as go  # noqa: PLC0415 - as in draw

    half = _STRIP_PIXELS / _LANE_PIXELS / 2
    middle = place.strips[resource]
    return go.Heatmap(
        z=np.array([levels], dtype=np.float32) * 100,
        x=np.array(edges),
        y=[middle - half, middle + half],
        zmin=0,
        zmax=100,
        colorscale=[[0, "#f6f7f9"], [0.02, "#fdeee0"], [0.5, "#f0a35e"], [1, "#b3420f"]],
        showscale=False,
        ygap=3,
        hovertemplate=f"<b>{_template_text(resource)}</b><br>%{{z:.0f}} % in use at %{{x:.4~f}}<extra></extra>",
        xaxis=f"x{suffix}",
        yaxis=f"y{suffix}",
    )


def _template_text(name: str) -> str:
    """A name inside a hover template, where a percent sign before a brace would start a variable."""
    return wording.plain(name).replace("{", "&#123;")


def _legend_entry(kind: str) -> Any:
    """A mark in the legend that shows and hides a kind in every section."""
    import plotly.graph_objects as go  # noqa: PLC0415 - as in draw

    return go.Bar(
        x=[None],
        y=[None],
        marker={"color": _colour(kind)},
        name=wording.plain(kind),
        legendgroup=wording.plain(kind),
        showlegend=True,
        hoverinfo="skip",
    )


def _axes(
    number: int,
    suffix: str,
    place: _Place,
    domain: tuple[float, float],
    longest: float,
    *,
    last: bool,
    unit: str,
) -> dict[str, Any]:
    """The two axes of one section."""
    labels = {**({"block": 0.0} if place.has_blocks else {}), **place.lanes, **place.strips}
    title = f"time ({unit})" + (": each block is drawn once and repeats as its label says" if place.has_blocks else "")
    x_axis: dict[str, Any] = {
        "domain": [0, 1],
        "anchor": f"y{suffix}",
        "range": [0, longest],
        "minallowed": 0,
        "maxallowed": longest,
        "ticksuffix": f" {unit}",
        "showgrid": True,
        "gridcolor": "#eceff3",
        "zeroline": False,
        "tickfont": {"color": _FAINT, "size": 11},
        "ticks": "outside",
        "tickcolor": "#c9ced6",
        "ticklen": 4,
    }
    if number > 1:
        x_axis["matches"] = "x"
    if last:
        x_axis["title"] = {"text": title, "font": {"size": 12, "color": _FAINT}, "standoff": 8}
    y_axis = {
        "domain": list(domain),
        "anchor": f"x{suffix}",
        "range": [place.bottom, -0.5],
        "fixedrange": True,
        "tickmode": "array",
        "tickvals": list(labels.values()),
        "ticktext": [
            f'<span style="color:{_FAINT};font-size:11px">{wording.plain(name)}</span>'
            if name in place.strips and name not in place.lanes
            else wording.plain(name)
            for name in labels
        ],
        "tickfont": {"size": 12, "color": _INK},
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
    }
    return {f"xaxis{suffix}": x_axis, f"yaxis{suffix}": y_axis}


def _title_note(section: Section, top: float) -> dict[str, Any]:
    """A section's title: recipe, step, speedup."""
    facts = [f"step {wording.duration(section.step_picoseconds)}"]
    if section.speedup is not None:
        facts.append(f"{wording.times(section.speedup)} as fast as BF16")
    if section.detail:
        facts.append(section.detail)
    text = f"<b>{wording.plain(section.title)}</b>   {wording.plain(' · '.join(facts))}"
    return {
        "text": text,
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": top,
        "yshift": 4,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "align": "left",
        "font": {"size": 15, "color": _INK},
    }


def _layout(height: float) -> dict[str, Any]:
    return {
        "template": None,
        "height": round(height),
        "barmode": "overlay",
        "bargap": 0,
        "margin": {"l": 110, "r": 24, "t": _TOP_PIXELS, "b": _BOTTOM_PIXELS, "pad": 4},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "font": {"family": _FONT, "size": 12, "color": _INK},
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": "#ffffff",
            "bordercolor": "#c9ced6",
            "font": {"family": _FONT, "size": 12, "color": _INK},
            "align": "left",
            "namelength": 0,
        },
        "dragmode": "zoom",
        "uniformtext": {"mode": "hide", "minsize": 9},
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "font": {"size": 12},
            "itemsizing": "constant",
            "traceorder": "normal",
        },
    }


def _colour(kind: str) -> str:
    return COLOURS.get(kind, OTHER_COLOUR)


def _legend_rank(kind: str) -> tuple[int, str]:
    """Order of the breakdown; a kind that is no key comes last."""
    return (KEYS.index(kind) if kind in KEYS else len(KEYS), kind)
