"""Quantities are read exactly, converted exactly and printed with their unit."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.errors import ParameterError
from hwmodel.units import (
    FLOPS_PER_MAC,
    PICOSECONDS_PER_SECOND,
    UNITS,
    WHOLE_UNITS,
    ceil_div,
    cycles_to_picoseconds,
    format_bytes,
    format_seconds,
    parse_number,
    parse_quantity,
    seconds_to_picoseconds,
)

PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
PREFIXES |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def test_constants() -> None:
    assert FLOPS_PER_MAC == 2
    assert PICOSECONDS_PER_SECOND == 10**12


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("64 GiB", "bytes", 68_719_476_736),
        ("64GB", "bytes", 64_000_000_000),
        ("  8 KiB ", "bytes", 8192),
        ("8 kB", "bytes", 8000),
        ("83e9", "bytes", 83_000_000_000),
        ("1e23 B", "bytes", 10**23),
        ("1.6 TB/s", "bytes/s", 1.6e12),
        ("-1.6 TB/s", "bytes/s", -1.6e12),
        ("1 GiB/s", "bytes/s", 2.0**30),
        ("200 Gb/s", "bits/s", 2e11),
        ("1.8 GHz", "Hz", 1_800_000_000),
        ("4 kbit", "bits", 4000),
        ("4 Kib", "bits", 4096),
        ("312 TFLOP/s", "FLOP/s", 3.12e14),
        ("20 us", "seconds", 2e-5),
        ("1 ps", "seconds", 1e-12),
        ("1.5", "seconds", 1.5),
        (4096, "bytes", 4096),
        (1e12, "bytes", 10**12),
        (0.25, "seconds", 0.25),
    ],
)
def test_quantities(text: str | float, unit: str, value: float) -> None:
    read = parse_quantity(text, unit)
    assert read == value
    assert type(read) is (int if unit in WHOLE_UNITS else float)


@pytest.mark.parametrize("text", ["1e12", "1e+12", "1.0e12", "1.0e+12", "1E12", "1000000000000", "1e12 B", "1 TB"])
def test_one_number_in_all_its_spellings(text: str) -> None:
    assert parse_quantity(text, "bytes") == 10**12


@pytest.mark.parametrize(
    ("value", "unit", "tail"),
    [
        ("017", "bytes", "got '017'"),
        ("12:30", "bytes", "got '12:30'"),
        ("1_000", "bytes", "got '1_000'"),
        ("1,000", "bytes", "got '1,000'"),
        ("many", "bytes", "got 'many'"),
        ("nan", "bytes", "got 'nan'"),
        (".inf", "bytes", "got '.inf'"),
        ("", "bytes", "got ''"),
        ("GiB", "bytes", "got 'GiB'"),
        ("٣ GiB", "bytes", "got '٣ GiB'"),
        ("4 GiB GiB", "bytes", "got '4 GiB GiB'"),
        ("1e999999999", "bytes", "got '1e999999999'"),
        ("9" * 101, "bytes", f"got '{'9' * 99}..."),
        (float("inf"), "bytes", "got inf"),
        (float("nan"), "bytes", "got nan"),
        (True, "bytes", "got True"),
        (None, "bytes", "got None"),
        ("64 Gb", "bytes", "got '64 Gb': that is bits, not bytes (8 bits are 1 byte)"),
        ("64 GB", "bits", "got '64 GB': that is bytes, not bits (8 bits are 1 byte)"),
        ("64 GiB/s", "bytes", "got '64 GiB/s': that is bytes/s, not bytes"),
        ("64 KB", "bytes", "got '64 KB'; did you mean kB or KiB?"),
        ("64 gib", "bytes", "got '64 gib'; did you mean GiB?"),
        ("3 EB", "bytes", "got '3 EB'"),
    ],
)
def test_what_is_no_quantity_is_refused_by_its_text(value: object, unit: str, tail: str) -> None:
    example = {"bytes": "64 GiB", "bits": "8 kbit"}[unit]
    with pytest.raises(ParameterError) as caught:
        parse_quantity(value, unit, field="capacity_bytes")
    assert str(caught.value) == f"capacity_bytes: must be a number of {unit}, or text such as '{example}', {tail}"


def test_other_refusals_by_their_text() -> None:
    for value, unit, text in [
        ("0.5 B", "bytes", "value: must be a whole number of bytes, got '0.5 B'"),
        (0.5, "Hz", "value: must be a whole number of Hz, got 0.5"),
        ("1e400", "seconds", "value: must be a finite number of seconds, got '1e400'"),
        ("5 ks", "seconds", "value: must be a number of seconds, or text such as '20 us', got '5 ks'"),
        (1, "parsec", f"unit: must be one of {', '.join(UNITS)}, got 'parsec'"),
    ]:
        with pytest.raises(ParameterError) as caught:
            parse_quantity(value, unit)
        assert str(caught.value) == text


@given(st.integers(0, 10**30), st.sampled_from(sorted(PREFIXES)), st.sampled_from(["", " "]))
def test_whole_quantities_are_exact(count: int, prefix: str, gap: str) -> None:
    assert parse_quantity(f"{count}{gap}{prefix}B", "bytes") == count * PREFIXES[prefix]


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(sorted(PREFIXES)))
def test_rates_are_the_nearest_float(rate: float, prefix: str) -> None:
    exact = Fraction(repr(rate)) * PREFIXES[prefix]
    try:
        expected = float(exact)
    except OverflowError:
        return
    assert parse_quantity(f"{rate!r} {prefix}B/s", "bytes/s") == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_as_python_writes_it_is_that_number(number: float) -> None:
    exact = parse_number(repr(number))
    assert exact is not None
    assert float(exact) == number


@given(st.text(max_size=12), st.sampled_from(UNITS))
def test_any_text_is_read_or_refused(text: str, unit: str) -> None:
    with contextlib.suppress(ParameterError):
        assert isinstance(parse_quantity(text, unit), int | float)


@given(st.integers(-(10**40), 10**40), st.integers(1, 10**20))
def test_ceil_div_is_the_least_integer_not_below_the_ratio(a: int, b: int) -> None:
    quotient = ceil_div(a, b)
    assert (quotient - 1) * b < a <= quotient * b


@given(st.integers(0, 10**18), st.integers(1, 10**11))
def test_cycles_become_the_least_picoseconds_that_hold_them(cycles: int, clock_hz: int) -> None:
    picoseconds = cycles_to_picoseconds(cycles, clock_hz)
    exact = Fraction(cycles * 10**12, clock_hz)
    assert exact <= picoseconds < exact + 1


def test_cycles_refuse_what_is_no_count() -> None:
    for cycles, clock_hz, text in [
        (-1, 10, "cycles: must be a whole number >= 0, got -1"),
        (True, 10, "cycles: must be a whole number >= 0, got True"),
        (1, 0, "clock_hz: must be a whole number > 0, got 0"),
    ]:
        with pytest.raises(ParameterError) as caught:
            cycles_to_picoseconds(cycles, clock_hz)
        assert str(caught.value) == text


@given(st.integers(0, 10**15))
def test_whole_picoseconds_survive_the_way_through_seconds(picoseconds: int) -> None:
    assert seconds_to_picoseconds(picoseconds / 10**12) == picoseconds
    assert seconds_to_picoseconds(picoseconds * 1e-12) == picoseconds


def test_seconds_round_up_but_not_for_the_noise_of_a_float() -> None:
    assert seconds_to_picoseconds(0.1 + 0.2) == 300_000_000_000
    assert seconds_to_picoseconds(1.2e-12) == 2
    assert seconds_to_picoseconds(1e-15) == 1
    assert seconds_to_picoseconds(0.0) == 0
    assert seconds_to_picoseconds(3) == 3 * 10**12


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), True])
def test_seconds_that_are_none_are_refused(seconds: float) -> None:
    with pytest.raises(ParameterError, match=r"^seconds: must be a finite number >= 0, got "):
        seconds_to_picoseconds(seconds)


@pytest.mark.parametrize(
    ("count", "decimal", "binary"),
    [
        (83 * 10**9, "83.00 GB", "77.30 GiB"),
        (0, "0 B", "0 B"),
        (999, "999 B", "999 B"),
        (1000, "1.00 kB", "1000 B"),
        (1024, "1.02 kB", "1.00 KiB"),
        (999_994, "999.99 kB", "976.56 KiB"),
        (999_995, "1.00 MB", "976.56 KiB"),
        (-2_000_000, "-2.00 MB", "-1.91 MiB"),
        (5 * 10**15, "5000.00 TB", "4547.47 TiB"),
    ],
)
def test_bytes_are_printed_with_their_unit(count: int, decimal: str, binary: str) -> None:
    assert format_bytes(count) == decimal
    assert format_bytes(count, binary=True) == binary


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (1.23e-3, "1.230 ms"),
        (0.9999999, "1.000 s"),
        (5e-12, "5.000 ps"),
        (90, "90.000 s"),
        (-2e-6, "-2.000 us"),
    ],
)
def test_seconds_are_printed_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
