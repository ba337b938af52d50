"""The timeline's page: one HTML file that works offline, with the figure, the facts and the breakdown as a table.

Names are data here: they are escaped for HTML and for Plotly's labels, the figure travels as JSON that cannot end its
script, and the page's policy lets run only the scripts whose hashes it lists.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from typing import TYPE_CHECKING

from hwmodel.report import wording
from hwmodel.report.breakdown import HIDEABLE, KEYS
from hwmodel.report.files import write_text
from hwmodel.report.timeline import COLOURS, Section, draw, merged_rows
from hwmodel.report.timeline_rows import LIMIT_BARS, Block, Merged, blocks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FIGURE = "timeline"
_STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #f4f6f9; color: #1f2933;
  font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif; }
main { max-width: 1680px; margin: 0 auto; padding: 24px 28px 48px; }
h1 { font-size: 23px; line-height: 1.25; margin: 0 0 8px; font-weight: 650; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 0 0 10px; font-weight: 650; }
p { margin: 0 0 10px; max-width: 110ch; }
.facts { color: #4b5563; margin-bottom: 16px; overflow-wrap: anywhere; }
.facts b { color: #1f2933; font-weight: 600; }
.card { background: #fff; border: 1px solid #e1e5eb; border-radius: 10px; padding: 16px 18px; margin: 0 0 18px; }
.notice { background: #fff8e6; border-color: #f1d58a; }
.notice { max-width: none; } .notice h2 { font-size: 15px; margin: 0 0 6px; }
.notice ul { margin: 0; padding-left: 1.2rem; } .notice li { margin: .2rem 0; }
.muted { color: #6b7280; font-size: 13px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 5px 14px 5px 0; text-align: right; white-space: nowrap; border-bottom: 1px solid #edf0f4; }
th { font-weight: 600; }
th:first-child, td:first-child, .name { text-align: left; }
th[colspan] { padding-right: 34px; }
td.share { color: #6b7280; padding-left: 0; padding-right: 34px; min-width: 4.5em; }
tr.aside td { color: #6b7280; }
tr.total td { font-weight: 650; border-top: 2px solid #c9ced6; border-bottom: 0; }
.swatch { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 8px; }
""".strip()
_CONFIG = (
    # Plotly's own button would send the run to its makers' server.
    '{"displaylogo":false,"showSendToCloud":false,"plotlyServerURL":"","responsive":true,"scrollZoom":true,'
    '"modeBarButtonsToRemove":["select2d","lasso2d","autoScale2d"],'
    '"toImageButtonOptions":{"filename":"timeline","scale":2}}'
)


def timeline_page(
    title: str,
    sections: Sequence[Section],
    *,
    facts: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
    limit: int = LIMIT_BARS,
) -> str:
    """The page as text; equal runs give equal text.

    Args:
        title: heading and window title.
        sections: runs, drawn beneath each other on one time axis.
        facts: (label, value) such as ('Device', 'Ascend 950'), shown under the heading.
        notes: sentences for the reader, such as warnings.
        limit: bars above which neighbours are merged, which the page then says.
    """
    merged = merged_rows(sections, limit)
    chart = draw(sections, merged)
    figure_json = _script_json(chart.to_json())
    scripts = (
        _plotly_source(),
        f'const figure={figure_json};Plotly.newPlot("{_FIGURE}",figure.data,figure.layout,{_CONFIG});',
    )
    body = [
        f"<h1>{html.escape(title)}</h1>",
        _facts(facts),
        _notes(notes),
        _merge_notice(merged, limit),
        f'<div class="card"><div id="{_FIGURE}"></div>',
        "<noscript><p>The chart needs JavaScript; the table below does not.</p></noscript>",
        f'<p class="muted">{_reading(sections)}</p></div>',
        _breakdown_table([section for section in sections if section.breakdown is not None]),
        _blocks_table(sections),
    ]
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en-GB"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            f"<script>{scripts[0]}</script>",
            "</head><body><main>",
            *(part for part in body if part),
            "</main>",
            f"<script>{scripts[1]}</script>",
            "</body></html>",
            "",
        ]
    )


def _notes(notes: Sequence[str]) -> str:
    """What a reader must know, as one card."""
    if not notes:
        return ""
    lines = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    return f'<div class="card notice"><h2>Keep in mind</h2><ul>{lines}</ul></div>'


def write_timeline(
    path: Path,
    title: str,
    sections: Sequence[Section],
    *,
    facts: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
    limit: int = LIMIT_BARS,
    option: str = "--timeline",
) -> None:
    """Write `timeline_page` to a file, whole or not at all."""
    write_text(path, timeline_page(title, sections, facts=facts, notes=notes, limit=limit), option=option)


def _plotly_source() -> str:
    """Plotly's library, to stand in the page."""
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - megabytes that only a page needs

    source: str = get_plotlyjs()
    # A parser sees the end of a script, or a comment in it, wherever it stands; in JavaScript these mean the same.
    source = re.sub(r"</(?=script)", r"<\\/", source, flags=re.IGNORECASE).replace("<!--", r"<\!--")
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _script_json(text: str) -> str:
    """JSON that means the same and may stand in a script: no tag, no comment, no line separator."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    if not facts:
        return ""
    said = " &nbsp;·&nbsp; ".join(f"{html.escape(label)} <b>{html.escape(value)}</b>" for label, value in facts)
    return f'<p class="facts">{said}</p>'


def _merge_notice(merged: Merged, limit: int) -> str:
    if not merged.window_picoseconds:
        return ""
    bars = sum(len(section) for section in merged.sections)
    return (
        f'<p class="card notice">This run has {merged.events:,} events, more than the {limit:,} bars a page stays '
        f"quick with. Neighbours on a lane shorter than {wording.duration(merged.window_picoseconds)} are merged by "
        f"kind into {bars:,} bars, with exact totals and counts. Every single event is in the full trace: add "
        "<code>--trace FILE.json.gz</code> and open it in Perfetto.</p>"
    )


def _reading(sections: Sequence[Section]) -> str:
    repeated = any(item.copies > 1 for section in sections for item in blocks(section.trace))
    repeats = (
        "Repeated blocks are drawn once and labelled with how often they run; the totals count every copy. "
        if repeated
        else ""
    )
    fused = any(task.info.parts for section in sections for one, _ in section.trace.items for task in one.plan.tasks)
    stripes = "Stripes mark fused kernels, which the table charges to their parts. " if fused else ""
    return (
        "Point at a bar for its start, duration, bytes, FLOPs, rate and bound. Drag to zoom, scroll to zoom at the "
        "pointer, double-click for the whole; click a kind in the legend to hide it. "
        f"{repeats}{stripes}The strips below the streams show how much of each resource is in use, the darker the "
        "more; a task counts with its average over its time."
    )


def _breakdown_table(sections: Sequence[Section]) -> str:
    """Wall time by key for each run, in milliseconds and percent."""
    columns = [(section, section.breakdown) for section in sections if section.breakdown is not None]
    if not columns:
        return ""
    keys = [key for key in KEYS if any(charged.get(key, 0) for _, charged in columns)]
    head = "".join(f'<th colspan="2">{html.escape(section.title)}</th>' for section, _ in columns)
    lines = [f"<tr><th>ms of one step</th>{head}</tr>"]
    for key in keys:
        cells = "".join(_cells(charged.get(key, 0), sum(charged.values())) for _, charged in columns)
        lines.append(f"<tr><td>{_swatch(key)}{key}</td>{cells}</tr>")
    totals = "".join(_cells(sum(charged.values()), sum(charged.values())) for _, charged in columns)
    lines.append(f'<tr class="total"><td>step</td>{totals}</tr>')
    if any(section.speedup is not None for section, _ in columns):
        speedups = "".join(
            f'<td>{wording.times(section.speedup)}</td><td class="share"></td>' for section, _ in columns
        )
        lines.append(f"<tr><td>speedup over BF16</td>{speedups}</tr>")
    for kind in HIDEABLE:
        covered = [(section.hidden or {}).get(kind, 0) for section, _ in columns]
        if any(covered):
            wholes = [sum(charged.values()) for _, charged in columns]
            cells = "".join(_cells(part, whole) for part, whole in zip(covered, wholes, strict=True))
            lines.append(f'<tr class="aside"><td>{kind} hidden behind other work</td>{cells}</tr>')
    return (
        '<div class="card scroll"><h2>Where the time goes</h2>'
        '<p class="muted">Every picosecond stands in exactly one row: what the main stream runs, else a '
        "communication in flight, else work on another stream, else a wait.</p>"
        f"<table>{''.join(lines)}</table></div>"
    )


def _cells(part: int, whole: int) -> str:
    return f'<td>{wording.milliseconds(part)}</td><td class="share">{wording.percent(part, whole)}</td>'


def _swatch(key: str) -> str:
    return f'<span class="swatch" style="background:{COLOURS[key]}"></span>'


def _blocks_table(sections: Sequence[Section]) -> str:
    """What is drawn once and how often it runs."""
    items: list[tuple[Section, Block]] = [(section, item) for section in sections for item in blocks(section.trace)]
    if not any(item.copies > 1 for _, item in items):
        return ""
    lines = ['<tr><th>run</th><th class="name">block</th><th>copies</th><th>ms each</th><th>ms in all</th></tr>']
    lines += [
        f'<tr><td>{html.escape(section.title)}</td><td class="name">{html.escape(item.name)}</td>'
        f"<td>{item.copies:,}</td>"
        f"<td>{wording.milliseconds(item.end_picoseconds - item.start_picoseconds)}</td>"
        f"<td>{wording.milliseconds(item.total_picoseconds)}</td></tr>"
        for section, item in items
    ]
    return f'<div class="card scroll"><h2>Blocks</h2><table>{"".join(lines)}</table></div>'
