"""Files of measured rows: what is read, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hwmodel.config.measured import load_sources
from hwmodel.errors import ConfigError
from hwmodel.measured.rows import GEMM, MICROSECOND, TABLES, read_rows, shipped, table_of

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "source,device,dtype_a,dtype_b,m,n,k,time_us"


def written(folder: Path, *lines: str) -> Path:
    path = folder / "rows.csv"
    path.write_text("\n".join((HEADER, *lines)) + "\n", encoding="utf-8")
    return path


def refused(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_rows(path, GEMM)
    return [problem.text(path.name) for problem in caught.value.problems]


def test_a_row_has_its_line_its_counts_and_its_time_in_seconds(tmp_path: Path) -> None:
    blank, row = read_rows(written(tmp_path, "me,chip,bf16,bf16,1,2,3,", "", "me,chip,bf16,bf16,4,5,6,7.5"), GEMM)
    assert (blank.line, dict(blank.seconds)) == (2, {})
    assert (row.line, row.source, row.device, row.counts["m"], row.counts["batch"]) == (4, "me", "chip", 4, 1)
    assert row.seconds == {"time_us": 7.5 * MICROSECOND}


def test_all_mistakes_of_a_file_come_at_once_with_line_column_rule_and_value(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "me,chip,bf16,bf16,0,2,3,5",
        "me,chip,bf16,bf16,1,1e12,3,5",
        "me,chip,bf16,bf16,1,2,99999999999999,nan",
        "me,,bf16,bf16,1,2,3,-1",
        "me,chip,bf16",
        "me,chip,bf16,bf16,1,2,3,1 ms",
    )
    whole = f"must be a whole number from 1 to {2**40}"
    time = "must be a number of microseconds from 0.001 to 1e+12, or blank"
    assert refused(path) == [
        f"rows.csv:2: m: {whole}, got '0'",
        f"rows.csv:3: n: {whole}, got '1e12'",
        f"rows.csv:4: k: {whole}, got '99999999999999'",
        f"rows.csv:4: time_us: {time}, got 'nan'",
        f"rows.csv:5: time_us: {time}, got '-1'",
        "rows.csv:5: device: must not be empty",
        "rows.csv:6: must have 8 columns, got 3",
        f"rows.csv:7: time_us: {time}, got '1 ms'",
    ]


def test_only_the_first_of_very_many_mistakes_are_shown(tmp_path: Path) -> None:
    found = refused(written(tmp_path, *["me,chip,bf16,bf16,0,2,3,5"] * 1000))
    assert found[-1] == "rows.csv: and 980 more mistakes"
    assert len(found) == 21


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty, must have a header and rows"),
        (HEADER.encode() + b"\n", "has no rows below its header"),
        (b"\xff\xfe\x00", "cannot be read: is not text in UTF-8"),
        (b"source,device,m\n1,2,3\n", "column is missing"),
        (HEADER.encode() + b",m\n", "columns stand twice: m"),
        (HEADER.encode() + b'\n"me,chip\n', "is not CSV"),
    ],
)
def test_what_is_no_table_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    assert any(message in text for text in refused(path))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_rows(tmp_path, GEMM)


def test_columns_tell_the_suite(tmp_path: Path) -> None:
    assert [table.name for table in table_of(written(tmp_path))] == ["gemm"]
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n", encoding="utf-8")
    assert list(table_of(other)) == []


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_shipped_rows_are_read_and_every_source_is_described(table: object) -> None:
    assert isinstance(table, type(GEMM))
    rows, sources = read_rows(shipped(table), table), load_sources()
    assert {row.split for row in rows} == {"fit", "validate"}
    assert {row.source for row in rows} <= {*sources.names()}
    assert all(all(sources.described(name)) for name in sources.names())
