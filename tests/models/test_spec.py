"""Sizes of published models against what their publishers count, and FLOPs against a plain enumeration."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from hwmodel.config.locate import names
from hwmodel.config.model import load_model
from hwmodel.errors import ParameterError
from hwmodel.models import ModelSpec
from hwmodel.ops.attention import attention_flops
from hwmodel.units import format_bytes
from tests.oracles import decoder_counts

LLAMA_32_1B = ModelSpec(
    name="Llama 3.2 1B",
    layers=16,
    hidden=2048,
    heads=32,
    key_value_heads=8,
    head_size=64,
    feed_forward=8192,
    vocabulary=128256,
    tied_embeddings=True,
)
SMALL = ModelSpec(
    name="small", layers=3, hidden=48, heads=4, key_value_heads=2, head_size=8, feed_forward=40, vocabulary=50
)


def sizes(spec: ModelSpec) -> dict[str, int]:
    return {
        "layers": spec.layers,
        "hidden": spec.hidden,
        "heads": spec.heads,
        "kv_heads": spec.key_value_heads,
        "head": spec.head_size,
        "feed_forward": spec.feed_forward,
        "vocabulary": spec.vocabulary,
    }


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("llama3.1-8b", 8_030_261_248), ("llama3.1-70b", 70_553_706_496), ("llama3.1-405b", 405_853_388_800)],
)
def test_a_shipped_model_has_its_published_number_of_parameters(name: str, parameters: int) -> None:
    spec = load_model(name)
    assert spec.parameters == parameters == decoder_counts.parameters(tied=False, **sizes(spec))


def test_every_shipped_model_loads() -> None:
    assert {load_model(name).name for name in names("models")}


def test_tying_the_embeddings_changes_parameters_and_no_flops() -> None:
    untied = replace(LLAMA_32_1B, tied_embeddings=False)
    assert LLAMA_32_1B.parameters == 1_235_814_400 == decoder_counts.parameters(tied=True, **sizes(LLAMA_32_1B))
    assert untied.parameters == 1_498_482_688 == decoder_counts.parameters(tied=False, **sizes(untied))
    assert LLAMA_32_1B.forward_flops(1024) == untied.forward_flops(1024)


def test_the_output_projection_costs_the_same_tied_or_not() -> None:
    for spec in (LLAMA_32_1B, replace(LLAMA_32_1B, tied_embeddings=False)):
        one_row = replace(spec, vocabulary=1)
        rows = spec.vocabulary - 1
        per_row = (spec.forward_flops(1) - one_row.forward_flops(1)) // rows
        assert per_row * spec.vocabulary == 525_336_576


@pytest.mark.parametrize(("name", "kv_bytes"), [("llama3.1-8b", 131_072), ("llama3.1-405b", 516_096)])
def test_the_cache_counts_key_and_value_heads_only(name: str, kv_bytes: int) -> None:
    spec = load_model(name)
    assert spec.key_value_bytes_per_token() == kv_bytes
    assert spec.key_value_bytes_per_token(element_bytes=1) == kv_bytes // 2


def test_the_cache_of_a_long_sequence_prints_in_both_units() -> None:
    held = load_model("llama3.1-405b").key_value_bytes_per_token() * 131_072
    assert (format_bytes(held), format_bytes(held, binary=True)) == ("67.65 GB", "63.00 GiB")


@pytest.mark.parametrize("sequence", [1, 2, 7, 64])
def test_forward_flops_are_those_of_a_plain_enumeration(sequence: int) -> None:
    assert SMALL.forward_flops(sequence) == decoder_counts.forward_flops(sequence, **sizes(SMALL))


def test_attention_of_a_sequence_is_counted_exactly_causal() -> None:
    per_head = attention_flops(64, 64, SMALL.head_size, SMALL.head_size, "exact")
    without = SMALL.forward_flops(64) - SMALL.layers * SMALL.heads * per_head
    assert without == 64 * (SMALL.forward_flops(1) - SMALL.layers * SMALL.heads * 4 * SMALL.head_size)


def test_training_is_three_times_forward() -> None:
    assert SMALL.training_flops(64) == 3 * SMALL.forward_flops(64)


@pytest.mark.parametrize("field", [field.name for field in fields(ModelSpec) if field.type == "int"])
def test_a_size_of_zero_is_refused(field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        replace(SMALL, **{field: 0})  # type: ignore[arg-type]  # every such field is an int
    assert str(caught.value) == f"{field}: must be >= 1, got 0"


def test_heads_that_do_not_share_keys_evenly_are_refused() -> None:
    with pytest.raises(ParameterError) as caught:
        replace(SMALL, key_value_heads=3)
    assert str(caught.value) == "key_value_heads: must divide heads=4, got 3"
