"""The type of a field decides how what was written is read."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from hwmodel.config.compose import resolve_scalar
from hwmodel.config.fields import (
    Bytes,
    BytesPerSecond,
    Count,
    FlopsPerSecond,
    Hertz,
    Integer,
    Number,
    PositiveBytes,
    PositiveInteger,
    Ratio,
    Real,
    Schema,
    Seconds,
    Text,
    Whole,
    seen,
)


def read(kind: Any, value: object) -> object:
    return TypeAdapter(kind).validate_python(value)


def refusal(kind: Any, value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        read(kind, value)
    (error,) = caught.value.errors()
    return error["msg"]


@pytest.mark.parametrize("text", ["1e12", "1e+12", "1.0e12", "1.0e+12", "1E12", "1000000000000"])
def test_every_numeric_field_reads_one_number_in_all_its_spellings(text: str) -> None:
    for kind in (
        Integer,
        Count,
        PositiveInteger,
        Number,
        Bytes,
        PositiveBytes,
        BytesPerSecond,
        Hertz,
        Seconds,
        FlopsPerSecond,
    ):
        for value in (text, resolve_scalar(text)):
            assert read(kind, value) == 10**12


@pytest.mark.parametrize("text", ["695e0214", "1e12", "0x10", "017", "1.50", "7", "12:30"])
def test_a_text_field_keeps_what_was_written(text: str) -> None:
    assert read(Text, resolve_scalar(text)) == text
    assert type(read(Text, resolve_scalar(text))) is str


def test_a_whole_number_beyond_a_float_stays_exact() -> None:
    assert read(Integer, resolve_scalar("1e20")) == 10**20
    assert read(Bytes, resolve_scalar("900000000000000000001")) == 900_000_000_000_000_000_001
    assert read(Bytes, "64 GiB") == 68_719_476_736
    assert read(Integer, resolve_scalar("0x10")) == 16


def test_results_are_plain_numbers() -> None:
    assert type(read(Integer, resolve_scalar("+5"))) is int
    assert type(read(Number, resolve_scalar("1e12"))) is float
    assert type(read(Number, 5)) is float
    assert type(read(Bytes, resolve_scalar("+5"))) is int
    assert type(read(BytesPerSecond, 5)) is float


@pytest.mark.parametrize(
    "value", [True, 3.0, "3.0", 2.5, "0.5e0", "017", "many", None, (1,), float("inf"), float("nan")]
)
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    assert refusal(Integer, value) == f"must be a whole number, got {seen(value)}"


@pytest.mark.parametrize("value", [True, "1_000", "1e400", None, {}, float("inf"), float("nan"), 10**400])
def test_what_is_no_number_is_refused(value: object) -> None:
    assert refusal(Number, value) == f"must be a finite number, got {seen(value)}"


@pytest.mark.parametrize("value", [True, None, {}, (1,), float("inf"), float("nan"), "64 Gb", "017"])
def test_what_is_no_quantity_is_refused(value: object) -> None:
    start = f"must be a number of bytes, or text such as '64 GiB', got {seen(value)}"
    assert refusal(Bytes, value).startswith(start)


def test_a_fraction_of_a_byte_is_refused() -> None:
    assert refusal(Bytes, 0.5) == "must be a whole number of bytes, got 0.5"


@pytest.mark.parametrize("value", [True, None, ("a",)])
def test_what_is_no_text_is_refused(value: object) -> None:
    assert refusal(Text, value) == "Input should be a valid string"


def test_bounds() -> None:
    assert read(Annotated[int, Whole(gt=1, lt=3)], 2) == 2
    assert read(Ratio, 1) == 1.0
    assert refusal(PositiveBytes, "0 B") == "Input should be greater than 0"
    assert refusal(Annotated[float, Real(le=2)], 2.5) == "Input should be less than or equal to 2"
    assert refusal(PositiveInteger, 0) == "Input should be greater than or equal to 1"


@pytest.mark.parametrize("text", ["1e300", "-1e22", "1e-16", "5e-324", "1e400"])
def test_a_number_nobody_can_compute_with_is_refused(text: str) -> None:
    value = resolve_scalar(text)
    with pytest.raises(ValidationError, match=r"in size, got|finite number"):
        read(Number, value)


@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x == 0 or 1e-15 <= abs(x) <= 1e21))
def test_a_number_field_gives_the_float_itself(value: float) -> None:
    assert read(Number, value) == value
    assert read(Number, repr(value)) == value


def test_a_schema_is_frozen_and_closed() -> None:
    class Point(Schema):
        x: Integer

    point = Point(x=1)
    with pytest.raises(ValidationError):
        point.x = 2
    with pytest.raises(ValidationError):
        Point.model_validate({"x": 1, "y": 2})
    assert Point.model_json_schema()["properties"]["x"]["type"] == "integer"


def test_values_are_shown_in_yamls_words() -> None:
    values: tuple[object, ...] = (None, True, False, {}, (), "a", 1.5)
    assert [seen(value) for value in values] == [
        "null",
        "true",
        "false",
        "a mapping",
        "a sequence",
        "'a'",
        "1.5",
    ]
