"""Attention: FLOPs under each convention, causal work per rank, bytes with grouped heads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hwmodel.errors import ParameterError
from hwmodel.graph import Attention, TensorSpec
from hwmodel.ops.attention import AttentionParams, attention_flops, causal_pairs, demand, infer

HEADS, KV_HEADS, QK, V = 8, 2, 16, 32
BASE = AttentionParams(HEADS, KV_HEADS, QK, V, queries=64, keys=64)


def tensor(name: str, rows: int, columns: int) -> TensorSpec:
    return TensorSpec(name, (rows, columns), "bf16")


def tensors(params: AttentionParams, *, kv_all: bool = False) -> tuple[TensorSpec, ...]:
    columns = params.query_columns + params.key_value_columns
    qkv = tensor("qkv", params.query_rows, columns)
    rest = (tensor("kv_all", params.sequences * params.keys, params.key_value_columns),) if kv_all else ()
    if not params.backward:
        return (qkv, *rest)
    out = params.query_heads * params.v_head_size
    return (tensor("grad", params.query_rows, out), qkv, *rest, tensor("out", params.query_rows, out))


def asked(params: AttentionParams, *, kv_all: bool = False) -> Attention:
    inputs = tensors(params, kv_all=kv_all)
    return demand(params, inputs, infer(params, inputs))


@pytest.mark.parametrize(("convention", "flops"), [("exact", 1632), ("half_square", 1536), ("full", 1920)])
def test_flops_state_their_convention(convention: str, flops: int) -> None:
    assert attention_flops(4, 10, 8, 16, convention) == flops


@pytest.mark.parametrize("convention", ["exact", "half_square", "full"])
def test_a_single_query_is_never_halved(convention: str) -> None:
    assert attention_flops(1, 1000, 8, 16, convention) == 2 * 1000 * (8 + 16)


def test_an_unknown_convention_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^convention: must be one of exact, half_square, full, got 'half'$"):
        attention_flops(4, 10, 8, 16, "half")


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (4, 10), (64, 64), (10, 4)])
def test_causal_pairs_are_what_the_mask_leaves(queries: int, keys: int) -> None:
    assert causal_pairs(queries, keys) == sum(max(min(keys, keys - queries + i + 1), 0) for i in range(queries))


def test_forward_executes_two_products_and_backward_five() -> None:
    pairs = HEADS * causal_pairs(64, 64)
    assert asked(BASE).macs == pairs * (QK + V)
    assert asked(replace(BASE, backward=True)).macs == pairs * (3 * QK + 2 * V)
    equal = replace(BASE, v_head_size=QK)
    assert 2 * asked(replace(equal, backward=True)).macs == 5 * asked(equal).macs
    assert asked(BASE).softmax_elements == pairs


def test_a_kernel_that_does_not_skip_the_mask_computes_the_rectangle() -> None:
    for params in (replace(BASE, skips_masked=False), replace(BASE, causal=False)):
        assert asked(params).macs == HEADS * 64 * 64 * (QK + V)


def test_context_parallel_ranks_share_the_work_evenly_rounded_up() -> None:
    sharded = replace(BASE, sequences=3, shards=4)
    assert asked(sharded, kv_all=True).macs == -(-3 * HEADS * causal_pairs(64, 64) // 4) * (QK + V)
    assert sharded.query_rows == 3 * 16


def test_grouped_heads_change_bytes_only() -> None:
    grouped, full = asked(BASE), asked(replace(BASE, key_value_heads=HEADS))
    assert grouped.macs == full.macs
    rows, per_head = 64, 2 * (QK + V)
    assert full.read_bytes - grouped.read_bytes == rows * (HEADS - KV_HEADS) * per_head


def test_bytes_are_each_tensor_once() -> None:
    rows, qkv, out = 64, HEADS * QK + KV_HEADS * (QK + V), HEADS * V
    forward, backward = asked(BASE), asked(replace(BASE, backward=True))
    assert (forward.read_bytes, forward.write_bytes) == (2 * rows * qkv, 2 * rows * out)
    assert (backward.read_bytes, backward.write_bytes) == (2 * rows * (qkv + 2 * out), 2 * rows * qkv)


def test_with_keys_from_elsewhere_only_queries_of_qkv_move() -> None:
    decode = replace(BASE, queries=1, keys=1000, sequences=5)
    q, kv, out = HEADS * QK, KV_HEADS * (QK + V), HEADS * V
    forward = asked(decode, kv_all=True)
    assert forward.read_bytes == 2 * 5 * (q + 1000 * kv)
    assert forward.macs == 5 * HEADS * 1000 * (QK + V)
    backward = asked(replace(decode, backward=True), kv_all=True)
    assert backward.read_bytes == 2 * 5 * (q + 1000 * kv + 2 * out)
    assert backward.write_bytes == 2 * 5 * (q + 1000 * kv)


def test_refusals() -> None:
    with pytest.raises(ParameterError, match=r"^key_value_heads: must divide query_heads=8, got 3$"):
        replace(BASE, key_value_heads=3)
    with pytest.raises(ParameterError, match=r"^keys: must be >= 1, got 0$"):
        replace(BASE, keys=0)
    with pytest.raises(ParameterError, match=r"^inputs: 'qkv' \(64, 100\) must be 64 rows of 224 columns$"):
        infer(BASE, (tensor("qkv", 64, 100),))
    with pytest.raises(ParameterError, match=r"^inputs: 'kv' \(63, 96\) must be 64 rows or more of 96 columns$"):
        infer(BASE, (tensor("qkv", 64, 224), tensor("kv", 63, 96)))
