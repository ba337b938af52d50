"""Mistakes against a schema come out all at once, by line, in our words and at the user's paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import pytest
from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from hwmodel.config.edits import edit
from hwmodel.config.fields import (
    BytesPerSecond,
    Count,
    Integer,
    Number,
    PositiveBytes,
    Quantity,
    Ratio,
    Schema,
    Text,
)
from hwmodel.config.loader import merge, parse
from hwmodel.config.problems import from_refusal, validate
from hwmodel.errors import ConfigError, ParameterError, RefusedError

if TYPE_CHECKING:
    from hwmodel.config.document import Document


def _even(value: int) -> int:
    if value % 2:
        raise ValueError(f"must be even, got {value}")
    return value


class Memory(Schema):
    bytes_per_second: BytesPerSecond
    capacity_bytes: PositiveBytes = 1
    sharing: Literal["fair", "proportional"] = "fair"


class Closed(Schema):
    kind: Literal["closed"]
    tile_count: Integer


class Open(Schema):
    kind: Literal["open"]
    gain: Number = 1.0


class Named(Schema):
    preset: Text
    margin_bits: Count = 0


class Window(Schema):
    start: Count
    end: Count

    @model_validator(mode="after")
    def _check(self) -> Window:
        if self.end < self.start:
            raise ParameterError("end", f"must be >= start, got {self.end}")
        return self


def _shape(value: object) -> str:
    return "many" if isinstance(value, tuple) else "one"


class Top(Schema):
    name: Text = ""
    resources: dict[str, Memory] = Field(default={})
    kernels: tuple[Annotated[Closed | Open, Field(discriminator="kind")], ...] = ()
    recipe: Text | Named = "bf16"
    interval_steps: Annotated[int, Field(ge=1)] | Literal["none"] = 1
    flags: dict[str, bool] = Field(default={})
    pair: tuple[Integer, Integer] = (0, 0)
    utilisation_fraction: Ratio = 1.0
    even: Annotated[int, AfterValidator(_even)] = 0
    window: Window | None = None
    order: Text = Field(default="", alias="in")
    shape: Annotated[
        Annotated[Memory, Tag("one")] | Annotated[tuple[Memory, ...], Tag("many")], Discriminator(_shape)
    ] = ()


def document(text: str) -> Document:
    return parse(text, source="npu.yaml")


def refusals(source: str | Document, model: type[Schema] = Top) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        validate(model, document(source) if isinstance(source, str) else source)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    return str(caught.value).splitlines()


def test_a_good_document_becomes_plain_values() -> None:
    top = validate(
        Top, document("resources: {hbm: {bytes_per_second: 1.6 TB/s}}\nname: 695e0214\ninterval_steps: none\n")
    )
    assert top.resources["hbm"] == Memory(bytes_per_second=1.6e12)
    assert top.name == "695e0214"
    assert type(top.name) is str
    assert top.interval_steps == "none"


@pytest.mark.parametrize("written", ["-1600000000000", "-1.6e12", "-1.6 TB/s", "'-1.6e+12'"])
def test_a_bound_shows_the_value_in_the_base_unit_however_it_was_written(written: str) -> None:
    text = f"# a device\nname: x\n\nresources:\n  hbm:\n    bytes_per_second: {written}\n"
    assert refusals(text) == ["npu.yaml:6: resources.hbm.bytes_per_second: must be > 0, got -1600000000000.0"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "resources:\n  hbm:\n    bytes_per_secnd: 1\n    bytes_per_second: 1\n",
            "npu.yaml:3: resources.hbm: unknown key 'bytes_per_secnd'; did you mean 'bytes_per_second'? "
            "known: bytes_per_second, capacity_bytes, sharing",
        ),
        ("resources:\n  hbm: {}\n", "npu.yaml:2: resources.hbm.bytes_per_second: is missing"),
        ("resources:\n  hbm: 3\n", "npu.yaml:2: resources.hbm: must be a mapping, got 3"),
        ("resources: [1]\n", "npu.yaml:1: resources: must be a mapping, got a sequence"),
        ("kernels: {}\n", "npu.yaml:1: kernels: must be a sequence, got a mapping"),
        ("kernels:\n- {kind: closed}\n", "npu.yaml:2: kernels.0.tile_count: is missing"),
        (
            "kernels:\n- kind: closed\n  tile_count: 1.5\n",
            "npu.yaml:3: kernels.0.tile_count: must be a whole number, got 1.5",
        ),
        (
            "kernels:\n- kind: closed\n  tile_count: 1\n  closed: 1\n",
            "npu.yaml:4: kernels.0: unknown key 'closed'; known: kind, tile_count",
        ),
        (
            "kernels:\n- kind: closd\n",
            "npu.yaml:2: kernels.0.kind: must be one of 'closed', 'open', got 'closd'; did you mean 'closed'?",
        ),
        ("kernels:\n- gain: 1\n", "npu.yaml:2: kernels.0.kind: is missing"),
        ("kernels:\n- 5\n", "npu.yaml:2: kernels.0: must be a mapping, got 5"),
        ("kernels:\n- {kind: open, gain: 1e400}\n", "npu.yaml:2: kernels.0.gain: must be a finite number, got '1e400'"),
        ("recipe: true\n", "npu.yaml:1: recipe: must be text or a mapping, got true"),
        ("recipe: {preset: x, margin_bits: -1}\n", "npu.yaml:1: recipe.margin_bits: must be >= 0, got -1"),
        ("recipe:\n  margin_bits: 1\n", "npu.yaml:1: recipe.preset: is missing"),
        (
            "recipe:\n  preset: x\n  margin: 1\n",
            "npu.yaml:3: recipe: unknown key 'margin'; did you mean 'margin_bits'? known: margin_bits, preset",
        ),
        ("interval_steps: 0\n", "npu.yaml:1: interval_steps: must be >= 1 or 'none', got 0"),
        (
            "interval_steps: nine\n",
            "npu.yaml:1: interval_steps: must be a whole number or 'none', got 'nine'; did you mean 'none'?",
        ),
        ("flags: {a: on}\n", "npu.yaml:1: flags.a: must be true or false, got 'on'"),
        ("pair: [1]\n", "npu.yaml:1: pair.1: is missing"),
        ("pair: [1, 2, 3]\n", "npu.yaml:1: pair: must have at most 2 entries, got a sequence"),
        ("utilisation_fraction: 2\n", "npu.yaml:1: utilisation_fraction: must be <= 1, got 2.0"),
        ("even: 3\n", "npu.yaml:1: even: must be even, got 3"),
        ("window:\n  start: 3\n  end: 2\n", "npu.yaml:3: window.end: must be >= start, got 2"),
        ("name: null\n", "npu.yaml:1: name: must be text, got null"),
        ("name: [a]\n", "npu.yaml:1: name: must be text, got a sequence"),
        (f"flags: {{a: {'x' * 100}}}\n", f"npu.yaml:1: flags.a: must be true or false, got '{'x' * 79}..."),
        ("in: true\n", "npu.yaml:1: in: must be text, got true"),
        ("shape: {bytes_per_second: 0}\n", "npu.yaml:1: shape.bytes_per_second: must be > 0, got 0.0"),
        (
            "shape:\n- bytes_per_second: 1\n- {bytes_per_second: 1, one: 2}\n",
            "npu.yaml:3: shape.1: unknown key 'one'; known: bytes_per_second, capacity_bytes, sharing",
        ),
        (
            "resources: {hbm: {bytes_per_second: 1, sharing: fare}}\n",
            "npu.yaml:1: resources.hbm.sharing: must be 'fair' or 'proportional', got 'fare'; did you mean 'fair'?",
        ),
    ],
)
def test_refusals_by_their_text(text: str, line: str) -> None:
    assert refusals(text) == [line]


@pytest.mark.parametrize("written", ["017", "12:30", "many", ".nan", "1_000"])
def test_text_in_a_numeric_field_is_shown_with_field_and_line(written: str) -> None:
    (said,) = refusals(f"\nutilisation_fraction: {written}\n")
    assert said == f"npu.yaml:2: utilisation_fraction: must be a finite number, got '{written}'"
    (said,) = refusals(f"\nresources: {{hbm: {{bytes_per_second: '{written}'}}}}\n")
    assert said.startswith("npu.yaml:2: resources.hbm.bytes_per_second: must be a number of bytes/s, or text such as")
    assert said.endswith(f", got '{written}'")


def test_an_unknown_key_at_the_top_has_no_path() -> None:
    (said,) = refusals("\nwindwo: 3\n")
    assert said.startswith(
        "npu.yaml:2: unknown key 'windwo'; did you mean 'window'? known: even, flags, in, interval_steps, "
    )


def test_all_mistakes_come_at_once_by_line() -> None:
    said = refusals("window: {start: 1}\neven: 1\nresources:\n  hbm: {}\nname: 1\nbad: 1\n")
    assert [line.split(" ")[0] for line in said] == ["npu.yaml:1:", "npu.yaml:2:", "npu.yaml:4:", "npu.yaml:6:"]


def test_edited_and_inherited_values_name_their_own_source() -> None:
    base = parse("resources:\n  hbm: {bytes_per_second: 0}\n", source="base.yaml")
    merged = edit(merge(base, parse("even: 1\nname: x\n", source="npu.yaml")), "interval_steps", "0")
    assert refusals(merged) == [
        "npu.yaml:1: even: must be even, got 1",
        "--set: interval_steps: must be >= 1 or 'none', got 0",
        "base.yaml:2: resources.hbm.bytes_per_second: must be > 0, got 0.0",
    ]


def test_a_part_of_a_document_keeps_its_full_path() -> None:
    with pytest.raises(ConfigError) as caught:
        validate(Memory, document("a:\n  b:\n    bytes_per_second: 0\n    x: 1\n"), root=("a", "b"))
    assert str(caught.value).splitlines() == [
        "npu.yaml:3: a.b.bytes_per_second: must be > 0, got 0.0",
        "npu.yaml:4: a.b: unknown key 'x'; known: bytes_per_second, capacity_bytes, sharing",
    ]


def test_a_part_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^npu\.yaml:1: memory: must be a mapping, got null$"):
        validate(Memory, document("a: 1\n"), root=("memory",))


def test_what_a_domain_object_refuses_gets_file_and_line() -> None:
    source = document("recipe:\n  timing: static\n  history:\n  - steps: 0\n")
    error = from_refusal(ParameterError("history.0.steps", "must be >= 1, got 0"), source, ("recipe",))
    assert str(error) == "npu.yaml:4: recipe.history.0.steps: must be >= 1, got 0"
    assert from_refusal(error, source, ()) is error
    error = from_refusal(RefusedError("recipe.timing", "static scales have no history"), source, ("recipe",))
    assert str(error) == "npu.yaml:2: recipe.timing: static scales have no history"


def test_a_quantity_is_not_offered_another_unit() -> None:
    class Clock(Schema):
        clock_hz: Annotated[int, Quantity("Hz", gt=0)]

    assert validate(Clock, document("clock_hz: 1.8 GHz\n")).clock_hz == 1_800_000_000
    (said,) = refusals("clock_hz: 1.8 GB\n", Clock)
    assert said == (
        "npu.yaml:1: clock_hz: must be a number of Hz, or text such as '1.8 GHz', got '1.8 GB': that is bytes, not Hz"
    )
