"""A run as a Chrome trace (JSON), which Perfetto and chrome://tracing open.

Slices of one track never overlap: a stream that runs two tasks at once gets a second named track. Times are decimal
text with every picosecond, never rounded through a float, and stand as integers in ``args.ps`` too.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, BinaryIO, Final

from hwmodel.errors import ParameterError
from hwmodel.report.breakdown import pieces
from hwmodel.report.files import atomic_file
from hwmodel.report.timeline_rows import lane_names
from hwmodel.report.wording import exact_decimal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hwmodel.engine.trace import SequenceTrace, Trace

LIMIT_EVENTS: Final = 2_000_000
"""Above this many events only first copies of repeated items are written, unless ``copies`` says otherwise."""

FUSED: Final = "fused"
"""Category of a fused kernel; its parts lie inside it under their kinds, so sums by any other category are exact."""

_PID = 1
_PICOSECONDS_DECIMALS = 6  # a trace counts in microseconds
_FLUSH_EVENTS = 10_000


def write_trace(
    path: Path, trace: SequenceTrace, *, process: str = "device", copies: int | None = None, option: str = "--trace"
) -> None:
    """Write ``trace`` to a ``.json`` or ``.json.gz`` file, whole or not at all.

    Args:
        path: where to; the ending decides whether it is compressed.
        trace: what happened.
        process: name of the process row.
        copies: copies of each repeated item to write; None writes all while they are at most `LIMIT_EVENTS`, else as
            many first ones as fit. What was left out stays empty on the time axis and is named in the metadata.
        option: what the user wrote the path after, for messages.

    Raises:
        ParameterError: another ending, ``copies`` below 1, or a path that cannot be written.
    """
    name = path.name.lower()
    if not name.endswith((".json", ".json.gz")):
        raise ParameterError(option, f"must end in .json or .json.gz, got {str(path)!r}")
    with atomic_file(path, option=option) as file:
        if name.endswith(".gz"):
            # No name and no time stamp in the header: equal runs give equal bytes.
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed:
                _write(packed, trace, process, copies)
        else:
            _write(file, trace, process, copies)


def left_out(trace: SequenceTrace) -> str:
    """What `write_trace` leaves out of a run with too many events, '' if nothing."""
    limit = _copies_shown(trace, None)
    whole = sum(len(one.spans) * count for one, count in trace.items)
    written = sum(len(one.spans) * min(count, limit) for one, count in trace.items)
    if written == whole:
        return ""
    return f"{written:,} of {whole:,} events: the first {limit:,} copies of each repeated block, the others left empty"


def trace_text(trace: SequenceTrace, *, process: str = "device", copies: int | None = None) -> Iterator[str]:
    """The same JSON in pieces."""
    limit = _copies_shown(trace, copies)
    items = [
        {"name": one.plan.name, "copies": count, "copies_written": min(count, limit)} for one, count in trace.items
    ]
    metadata = {
        "name": trace.name,
        "complete": all(item["copies"] == item["copies_written"] for item in items),
        "makespan_ps": trace.makespan_picoseconds,
        "items": items,
    }
    tracks = _tracks(trace)
    yield f'{{"displayTimeUnit":"ns","metadata":{json.dumps(metadata)},"traceEvents":[\n'
    omitted = left_out(trace) if copies is None else ""
    yield ",\n".join(_name_records(f"{process} ({omitted})" if omitted else process, tracks))
    for event in _slices(trace, tracks, limit):
        yield f",\n{event}"
    yield "\n]}\n"


def _copies_shown(trace: SequenceTrace, copies: int | None) -> int:
    """Copies of each item to write."""
    if copies is not None:
        if copies < 1:
            raise ParameterError("copies", f"must be >= 1, got {copies}")
        return copies
    most = max((count for _, count in trace.items), default=1)
    low, high = 1, max(1, most)
    while low < high:  # the largest number of copies within the limit
        middle = (low + high + 1) // 2
        if sum(len(one.spans) * min(count, middle) for one, count in trace.items) <= LIMIT_EVENTS:
            low = middle
        else:
            high = middle - 1
    return low


def _tracks(trace: SequenceTrace) -> dict[str, int]:
    """Track numbers from 1 by lane, streams in order of first use and overflow lanes behind their stream."""
    streams: dict[str, set[str]] = {}
    for one, _ in trace.items:
        for span, lane in zip(one.spans, lane_names(one), strict=True):
            streams.setdefault(one.plan.tasks[span.task].stream, set()).add(lane)
    ordered = [lane for lanes in streams.values() for lane in sorted(lanes, key=lambda lane: (len(lane), lane))]
    return {lane: number for number, lane in enumerate(dict.fromkeys(ordered), start=1)}


def _name_records(process: str, tracks: dict[str, int]) -> Iterator[str]:
    """Names and order of the process and its tracks, without time stamps."""
    yield json.dumps({"ph": "M", "pid": _PID, "name": "process_name", "args": {"name": process}})
    for lane, number in tracks.items():
        thread = {"ph": "M", "pid": _PID, "tid": number}
        yield json.dumps({**thread, "name": "thread_name", "args": {"name": lane}})
        yield json.dumps({**thread, "name": "thread_sort_index", "args": {"sort_index": number}})


def _slices(trace: SequenceTrace, tracks: dict[str, int], limit: int) -> Iterator[str]:
    """One complete event for each span of each copy written; the first is at 0."""
    origin: int | None = None
    prepared: dict[int, list[tuple[int, int, str, str]]] = {}
    for one, copy, offset in trace.expand(limit):
        if id(one) not in prepared:
            prepared = {id(one): _prepared(one, tracks)}
        for start, duration, head, tail in prepared[id(one)]:
            if origin is None:
                origin = offset + start
            at = offset + start - origin
            yield (
                f'{head},"ts":{exact_decimal(at, _PICOSECONDS_DECIMALS)},'
                f'"dur":{exact_decimal(duration, _PICOSECONDS_DECIMALS)},'
                f'"args":{{"ps":{{"start":{at},"duration":{duration}}},"copy":{copy},{tail}}}}}'
            )


def _prepared(trace: Trace, tracks: dict[str, int]) -> list[tuple[int, int, str, str]]:
    """(start, duration, text before the times, text after) of each span by start, the longer first of equals."""
    found = []
    for span, lane in zip(trace.spans, lane_names(trace), strict=True):
        task = trace.plan.tasks[span.task]
        info = task.info
        kind = FUSED if info.parts else task.kind
        head = {"ph": "X", "pid": _PID, "tid": tracks[lane], "name": task.name, "cat": kind}
        facts: dict[str, object] = {
            "block": trace.plan.name,
            "op": info.op,
            "kind": kind,
            "role": info.role,
            "layer": info.layer,
            "shape": info.shape,
            "bytes": info.bytes,
            "flops": info.flops,
            "bound": info.bound,
            "alone_ps": span.alone_picoseconds,
        }
        if info.parts:
            facts["parts_alone_ps"] = [list(part) for part in info.parts]
        duration = span.end_picoseconds - span.start_picoseconds
        texts = (json.dumps(head, separators=(",", ":"))[:-1], json.dumps(facts, separators=(",", ":"))[1:-1])
        found.append((span.start_picoseconds, duration, *texts))
        if info.parts:
            for start, end, part in pieces(task, span.start_picoseconds, span.end_picoseconds):
                inner = {**head, "name": f"{task.name} ({part})", "cat": part}
                text = json.dumps(inner, separators=(",", ":"))[:-1]
                found.append((start, end - start, text, f'"kind":{json.dumps(part)},"part":true'))
    return sorted(found, key=lambda entry: (entry[0], -entry[1]))


def _write(file: BinaryIO | gzip.GzipFile, trace: SequenceTrace, process: str, copies: int | None) -> None:
    waiting: list[str] = []
    for text in trace_text(trace, process=process, copies=copies):
        waiting.append(text)
        if len(waiting) == _FLUSH_EVENTS:
            file.write("".join(waiting).encode("ascii"))
            waiting = []
    file.write("".join(waiting).encode("ascii"))
