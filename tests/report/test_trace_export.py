"""The exported trace: nothing overlaps on a track, nothing is lost, every picosecond is there."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from hwmodel.errors import ParameterError
from hwmodel.report import trace_export
from hwmodel.report.breakdown import pieces
from hwmodel.report.trace_export import FUSED, left_out, trace_text, write_trace
from tests.report.examples import once, sequence_of, sequences, trace_of

if TYPE_CHECKING:
    from pathlib import Path

    from hwmodel.engine.trace import SequenceTrace


def exported(run: SequenceTrace, **options: Any) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads("".join(trace_text(run, **options)), parse_float=Decimal)
    return parsed


def slices(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in data["traceEvents"] if event["ph"] == "X"]


@given(sequences())
def test_times_are_exact_and_totals_by_operation_are_the_simulators(run: SequenceTrace) -> None:
    expected: dict[str, int] = defaultdict(int)
    for trace, copies in run.items:
        for span in trace.spans:
            expected[trace.plan.tasks[span.task].name] += copies * (span.end_picoseconds - span.start_picoseconds)
    found: dict[str, int] = defaultdict(int)
    for event in slices(exported(run)):
        if event["args"].get("part"):
            continue
        found[event["name"]] += event["args"]["ps"]["duration"]
        for field, exact in (("ts", "start"), ("dur", "duration")):
            assert event[field] * 10**6 == event["args"]["ps"][exact]
            assert event[field].as_tuple().exponent == -6
    assert {name: total for name, total in found.items() if total} == {n: t for n, t in expected.items() if t}


@given(sequences())
def test_slices_of_a_track_never_overlap_and_the_first_is_at_zero(run: SequenceTrace) -> None:
    data = exported(run)
    tracks: dict[int, list[tuple[int, int, bool]]] = defaultdict(list)
    for event in slices(data):
        start, duration = event["args"]["ps"]["start"], event["args"]["ps"]["duration"]
        tracks[event["tid"]].append((start, start + duration, bool(event["args"].get("part"))))
    for found in tracks.values():
        whole = sorted((start, end) for start, end, part in found if not part)
        assert all(a[1] <= b[0] for a, b in pairwise(whole))
        parts = sorted((start, end) for start, end, part in found if part)
        assert all(a[1] <= b[0] for a, b in pairwise(parts))
        assert all(any(a <= start and end <= b for a, b in whole) for start, end in parts), "parts lie in their kernel"
    assert min((start for found in tracks.values() for start, _, _ in found), default=0) == 0
    named = {event["tid"] for event in data["traceEvents"] if event["name"] == "thread_name"}
    assert named >= tracks.keys()


@given(sequences())
def test_totals_by_kind_are_those_of_the_pieces(run: SequenceTrace) -> None:
    expected: dict[str, int] = defaultdict(int)
    for trace, copies in run.items:
        for span in trace.spans:
            for start, end, kind in pieces(trace.plan.tasks[span.task], span.start_picoseconds, span.end_picoseconds):
                expected[kind] += copies * (end - start)
    found: dict[str, int] = defaultdict(int)
    for event in slices(exported(run)):
        if event["cat"] != FUSED:
            found[event["cat"]] += event["args"]["ps"]["duration"]
    assert {kind: total for kind, total in found.items() if total} == {k: t for k, t in expected.items() if t}


@given(sequences())
def test_name_records_carry_no_time_stamp(run: SequenceTrace) -> None:
    records = [event for event in exported(run, process="npu")["traceEvents"] if event["ph"] == "M"]
    assert records[0] == {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "npu"}}
    assert all("ts" not in record for record in records)


def test_work_that_overlaps_on_a_stream_gets_a_named_track_of_its_own() -> None:
    data = exported(once([("main", "gemm", 3_000_000, 6_776_000), ("main", "amax", 5_000_000, 7_000_000)]))
    names = {e["tid"]: e["args"]["name"] for e in data["traceEvents"] if e["name"] == "thread_name"}
    assert names == {1: "main", 2: "main (2)"}
    assert [(event["tid"], str(event["ts"]), str(event["dur"])) for event in slices(data)] == [
        (1, "0.000000", "3.776000"),
        (2, "2.000000", "2.000000"),
    ]


def test_above_the_limit_first_copies_are_written_and_the_rest_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    body = trace_of([("main", "gemm", 0, 5), ("side", "amax", 0, 2)])
    tail = trace_of([("main", "optimizer", 0, 5)])
    monkeypatch.setattr(trace_export, "LIMIT_EVENTS", 8)
    data = exported(sequence_of((body, 10), (tail, 1)))
    assert data["metadata"]["complete"] is False
    assert data["metadata"]["items"][0] == {"name": "plan", "copies": 10, "copies_written": 3}
    assert len(slices(data)) == 7
    assert slices(data)[-1]["args"]["ps"]["start"] == 50
    said = "7 of 21 events: the first 3 copies of each repeated block, the others left empty"
    assert left_out(sequence_of((body, 10), (tail, 1))) == said
    assert data["traceEvents"][0]["args"]["name"] == f"device ({said})"
    assert left_out(sequence_of((body, 3), (tail, 1))) == ""
    assert exported(sequence_of((body, 10)), copies=20)["metadata"]["complete"] is True


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_files_are_whole_and_the_same_every_time(tmp_path: Path, name: str) -> None:
    run = once([("main", "gemm", 0, 5), ("side", "</script>\u2028", 0, 2)])
    write_trace(tmp_path / name, run)
    first = (tmp_path / name).read_bytes()
    (tmp_path / "other").mkdir()
    write_trace(tmp_path / "other" / f"b{name}", run)
    assert (tmp_path / "other" / f"b{name}").read_bytes() == first
    text = (gzip.decompress(first) if name.endswith(".gz") else first).decode()
    assert json.loads(text)["traceEvents"][-1]["cat"] == "</script>\u2028"
    assert len(list(tmp_path.iterdir())) == 2


def test_another_ending_and_no_copies_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"--trace: must end in \.json or \.json\.gz, got '.*a\.txt'"):
        write_trace(tmp_path / "a.txt", once([]))
    with pytest.raises(ParameterError, match="copies: must be >= 1, got 0"):
        write_trace(tmp_path / "a.json", once([]), copies=0)
    assert list(tmp_path.iterdir()) == []
