"""The timeline: its rows, merging with exact totals, and a page that is the same every time."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.engine.trace import SequenceTrace, Span, Trace
from hwmodel.report.breakdown import KEYS, breakdown, hidden
from hwmodel.report.timeline import COLOURS, Section, figure, hover_text
from hwmodel.report.timeline_page import timeline_page, write_timeline
from hwmodel.report.timeline_rows import TimelineRow, blocks, merge, resource_use, rows
from hwmodel.schedules.plan import FULL, Plan, Task, TaskInfo, Variant
from tests.report.examples import once, sequence_of, sequences, trace_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Totals = dict[tuple[str, str], tuple[int, int, int, int]]


def totals(found: Iterable[TimelineRow]) -> Totals:
    """(time, bytes, FLOPs, count) by lane and kind."""
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in found:
        for place, amount in enumerate((row.elapsed_picoseconds, row.bytes, row.flops, row.count)):
            sums[row.lane, row.kind][place] += amount
    return {key: (a, b, c, d) for key, (a, b, c, d) in sums.items()}


def test_a_repeated_item_is_drawn_once_and_says_so() -> None:
    body, tail = trace_of([("main", "gemm", 0, 10)]), trace_of([("main", "optimizer", 0, 5)])
    run = sequence_of((body, 32), (tail, 1))
    first, last = rows(run)
    assert (first.note, first.start_picoseconds, first.step_start_picoseconds) == ("plan, 1 of 32", 0, 0)
    assert (last.note, last.start_picoseconds, last.step_start_picoseconds) == ("plan", 10, 320)
    assert [(item.label, item.start_picoseconds, item.total_picoseconds) for item in blocks(run)] == [
        ("plan, 1 of 32", 0, 320),
        ("plan", 10, 5),
    ]


def test_a_single_block_needs_no_note() -> None:
    assert [row.note for row in rows(once([("main", "gemm", 0, 10)]))] == [""]


def test_overlapping_spans_of_a_stream_stand_on_lanes_of_their_own() -> None:
    found = rows(once([("main", "gemm", 0, 10), ("main", "gemm", 5, 12), ("main", "gemm", 10, 11)]))
    assert [row.lane for row in found] == ["main", "main (2)", "main"]


@given(sequences(), st.integers(1, 12))
def test_merging_keeps_totals_and_counts_and_no_bar_overlaps(run: SequenceTrace, limit: int) -> None:
    section = rows(run)
    merged = merge([section], limit)
    (found,) = merged.sections
    assert totals(found) == totals(section)
    assert merged.events == len(section)
    assert len(found) <= max(limit, len(totals(section)))
    if len(section) <= limit:
        assert (found, merged.window_picoseconds) == (section, 0)
    lanes: dict[str, list[TimelineRow]] = defaultdict(list)
    for row in found:
        lanes[row.lane].append(row)
    for lane in lanes.values():
        lane.sort(key=lambda row: (row.start_picoseconds, row.end_picoseconds))
        assert all(a.end_picoseconds <= b.start_picoseconds for a, b in pairwise(lane))


def test_long_events_stay_as_they_are_when_short_ones_are_merged() -> None:
    entries = [("main", "gemm", 0, 100_000)]
    entries += [("main", ("amax", "scale")[n % 2], 100_000 + 10 * n, 100_010 + 10 * n) for n in range(100)]
    entries += [("main", "gemm", 101_000, 200_000)]
    (found,) = merge([rows(once(entries))], 20).sections
    assert [(r.start_picoseconds, r.end_picoseconds) for r in found if r.kind == "gemm"] == [
        (0, 100_000),
        (101_000, 200_000),
    ]
    assert sum(row.count for row in found if row.kind == "amax") == 50


def test_use_of_a_resource_is_what_tasks_ask_for_averaged_over_their_time() -> None:
    small = Variant(10, 60, (("cube", FULL // 4),))
    tasks = (
        Task("a", "main", "gemm", 40, (("cube", FULL), ("hbm", FULL // 5)), variants=(small,)),
        Task("b", "side", "amax", 30, (("hbm", FULL),)),
        Task("c", "main", "gemm", 50, (("cube", FULL),), variants=(small,)),
    )
    spans = (Span(0, 0, 40, 40), Span(1, 0, 60, 30), Span(2, 40, 100, 60))
    use = resource_use(sequence_of((Trace(Plan("p", tasks), spans, 0), 3)), 100)
    assert use.edges_picoseconds == (0.0, 40.0, 60.0, 100.0)
    assert dict(use.used_fractions)["cube"] == pytest.approx((1, 0.25, 0.25))
    assert dict(use.used_fractions)["hbm"] == pytest.approx((0.7, 0.5, 0))


@given(sequences(), st.integers(1, 30))
def test_use_stays_within_the_whole_and_the_steps_asked_for(run: SequenceTrace, limit: int) -> None:
    use = resource_use(run, limit)
    for _, levels in use.used_fractions:
        assert len(levels) == len(use.edges_picoseconds) - 1 <= limit
        assert all(0 <= level <= 1 for level in levels)


def test_hovering_tells_rate_slowdown_bound_and_parts() -> None:
    info = TaskInfo("gemm", "qkv.fprop", 3, 10**9, 2 * 10**12, "hbm", "1x2x3", (("gemm", 3), ("quantise", 1)))
    task = Task("<b>x", "main", "gemm", 10**9, (), info=info)
    (row,) = rows(sequence_of((Trace(Plan("mb", (task,)), (Span(0, 0, 2 * 10**9, 10**9),), 0), 2)))
    assert hover_text(row).split("<br>") == [
        "<b>&lt;b&gt;x</b>",
        "gemm · qkv.fprop · layer 3",
        "mb, 1 of 2",
        "start 0 s",
        "duration 2.000 ms (alone 1.000 ms, 2.00x as long here)",
        "1.00 GB at 500.00 GB/s",
        "2.00 TFLOP at 1.00 PFLOP/s",
        "shape 1x2x3",
        "bound by hbm",
        "fused: gemm 75.0 %, quantise 25.0 %",
    ]


def test_every_key_has_a_colour_of_its_own() -> None:
    assert list(COLOURS) == list(KEYS)
    assert len(set(COLOURS.values())) == len(KEYS)


def section(name: str, run: SequenceTrace, speedup: float | None = None) -> Section:
    return Section(name, run, breakdown(run), speedup, hidden(run))


BODY = trace_of(
    [("main", "gemm", 0, 10**9), ("comm", "collective", 10**8, 2 * 10**9), ("main", "elementwise", 10**9, 3 * 10**9)],
    parts={2: (("elementwise", 1), ("quantise", 1))},
)


def test_the_figure_builds_with_a_section_per_recipe() -> None:
    run = sequence_of((BODY, 4))
    chart = figure([section("bf16", run, 1.0), section("current", run, 1.5)])
    assert [note.text.split("</b>")[0] for note in chart.layout.annotations] == ["<b>bf16", "<b>current"]
    assert "step 12.000 ms · 1.50x as fast as BF16" in chart.layout.annotations[1].text
    assert chart.layout.xaxis2.matches == "x"
    assert [trace.name for trace in chart.data if trace.showlegend] == ["gemm", "elementwise", "collective"]


@settings(max_examples=20)
@given(sequences())
def test_a_figure_builds_for_any_run(run: SequenceTrace) -> None:
    figure([section("a", run), section("b", sequence_of())])


def test_the_page_holds_the_breakdown_and_no_link_to_anywhere(tmp_path: Path) -> None:
    run = sequence_of((BODY, 4))
    path = tmp_path / "t.html"
    write_timeline(path, "Title", [section("current", run, 1.5)], facts=[("Device", "npu & co")], notes=["A note."])
    text = path.read_text(encoding="utf-8")
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert "<td>4.000</td>" in own
    assert "Device <b>npu &amp; co</b>" in own
    assert "A note." in own
    assert "collective hidden behind other work" in own
    assert "merged" not in own
    assert not re.search(r"https?:|src=|href=", own)
    assert text == timeline_page(
        "Title", [section("current", run, 1.5)], facts=[("Device", "npu & co")], notes=["A note."]
    )


def test_a_run_of_unknown_kinds_has_a_chart_and_no_table() -> None:
    page = timeline_page("Tiles", [Section("gemm", once([("mte2", "load", 0, 10), ("cube", "mac", 5, 30)]))])
    assert "Where the time goes" not in page


def test_the_page_says_what_it_merged_and_where_the_rest_is() -> None:
    entries = [("main", ("gemm", "amax")[n % 2], 10 * n, 10 * n + 10) for n in range(200)]
    page = timeline_page("Many", [section("r", once(entries))], limit=50)
    assert "This run has 200 events, more than the 50 bars" in page
    assert "--trace FILE.json.gz" in page


@pytest.mark.slow
def test_a_million_events_give_a_page_below_20_megabytes() -> None:
    kinds = ("gemm", "elementwise", "quantise", "amax")
    info = TaskInfo("op", "role", 1, 100, 200, "hbm", "1x2x3")
    tasks = tuple(
        Task(f"task {n}", ("main", "side")[n % 2], kinds[n % 4], 9, (("hbm", FULL),), info=info) for n in range(10**6)
    )
    spans = tuple(Span(n, 10 * n, 10 * n + 9, 9) for n in range(10**6))
    page = timeline_page("Million", [section("r", sequence_of((Trace(Plan("p", tasks), spans, 0), 1)))])
    assert len(page.encode()) < 20_000_000
    assert "This run has 1,000,000 events" in page
