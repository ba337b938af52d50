"""Scaled-dot-product attention, forward and backward, with the exact count of causal pairs."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.errors import ParameterError
from hwmodel.graph import Attention
from hwmodel.ops.base import Op, Tensors, bytes_of, register, shown, take, unnamed
from hwmodel.units import FLOPS_PER_MAC, ceil_div

CONVENTIONS = ("exact", "half_square", "full")
"""How causal attention is counted: each visible pair; the square of the new queries halved; no masking at all."""


@dataclass(frozen=True, slots=True)
class AttentionParams:
    """One kernel over this rank's rows.

    The packed ``qkv`` is (rows, query_heads * qk + key_value_heads * (qk + v)) columns. Forward reads (qkv,) or
    (qkv, kv_all) where keys and values come from elsewhere (a cache, other context-parallel ranks) and gives
    (rows, query_heads * v). Backward reads (grad_out, qkv, [kv_all], out) and gives grad_qkv and, with kv_all,
    grad_kv_all. With kv_all only the query columns of qkv are moved. Grouped heads change bytes only.
    """

    query_heads: int
    key_value_heads: int
    qk_head_size: int
    v_head_size: int
    queries: int
    """Of one whole sequence."""
    keys: int
    """Of one whole sequence; the last ``queries`` of them belong to the queries."""
    sequences: int = 1
    shards: int = 1
    """Context-parallel ranks that share a sequence; causal work is balanced (zig-zag), rounded up."""
    causal: bool = True
    skips_masked: bool = True
    """The kernel skips what the mask hides; if not, it computes the full rectangle."""
    backward: bool = False

    def __post_init__(self) -> None:
        for field in ("query_heads", "key_value_heads", "qk_head_size", "v_head_size", "queries", "keys"):
            if getattr(self, field) < 1:
                raise ParameterError(field, f"must be >= 1, got {getattr(self, field)}")
        for field in ("sequences", "shards"):
            if getattr(self, field) < 1:
                raise ParameterError(field, f"must be >= 1, got {getattr(self, field)}")
        if self.query_heads % self.key_value_heads:
            message = f"must divide query_heads={self.query_heads}, got {self.key_value_heads}"
            raise ParameterError("key_value_heads", message)

    @property
    def query_rows(self) -> int:
        """Rows of queries on this rank."""
        return self.sequences * ceil_div(self.queries, self.shards)

    @property
    def query_columns(self) -> int:
        """Columns of qkv that hold queries."""
        return self.query_heads * self.qk_head_size

    @property
    def key_value_columns(self) -> int:
        """Columns that hold keys and values."""
        return self.key_value_heads * (self.qk_head_size + self.v_head_size)

    @property
    def executed_pairs(self) -> int:
        """Scores this rank's kernel computes, over all heads and sequences."""
        skips = self.causal and self.skips_masked
        pairs = causal_pairs(self.queries, self.keys) if skips else self.queries * self.keys
        return ceil_div(self.sequences * self.query_heads * pairs, self.shards)


def causal_pairs(queries: int, keys: int) -> int:
    """(query, key) pairs a causal mask leaves where the last query sees every key: sum of min(keys, keys-queries+i+1).

    Queries before the first key see none.
    """
    seen = min(queries, keys)
    return seen * (keys - seen) + seen * (seen + 1) // 2


def attention_flops(queries: int, keys: int, qk_head_size: int, v_head_size: int, convention: str) -> int:
    """Forward FLOPs of one head of one causal sequence under a named convention.

    A single query (a decode step) sees every key and is never halved.

    Raises:
        ParameterError: a convention that is not one of `CONVENTIONS`.
    """
    if convention not in CONVENTIONS:
        raise ParameterError("convention", f"must be one of {', '.join(CONVENTIONS)}, got {convention!r}")
    sizes = qk_head_size + v_head_size
    if convention == "exact" or (queries == 1 and convention == "half_square"):
        return FLOPS_PER_MAC * causal_pairs(queries, keys) * sizes
    if convention == "full":
        return FLOPS_PER_MAC * queries * keys * sizes
    seen = min(queries, keys)
    twice_pairs = 2 * seen * keys - seen * seen
    return FLOPS_PER_MAC * twice_pairs * sizes // 2


def infer(params: AttentionParams, inputs: Tensors) -> Tensors:
    """The attention's output, or the gradients of what it read."""
    _check(params, inputs)
    if not params.backward:
        qkv = inputs[0]
        return (unnamed((qkv.rows, params.query_heads * params.v_head_size), qkv.format),)
    return tuple(unnamed(spec.shape, spec.format) for spec in inputs[1:-1])


def demand(params: AttentionParams, inputs: Tensors, outputs: Tensors) -> Attention:
    """Products the kernel executes and bytes once each.

    Backward computes five products for the forward's two, because it recomputes the scores: three along the qk size
    (scores, grad of queries, grad of keys) and two along the v size (grad of values, grad of probabilities).
    """
    qkv = inputs[1] if params.backward else inputs[0]
    has_kv_all = len(inputs) == (4 if params.backward else 2)
    # With keys and values from elsewhere only the query columns of qkv, and of its gradient, are moved.
    unmoved = qkv.bytes - qkv.bytes * params.query_columns // qkv.columns if has_kv_all else 0
    qk_products, v_products = (3, 2) if params.backward else (1, 1)
    return Attention(
        query_heads=params.query_heads,
        key_value_heads=params.key_value_heads,
        query_rows=params.query_rows,
        key_value_rows=params.sequences * params.keys,
        qk_head_size=params.qk_head_size,
        v_head_size=params.v_head_size,
        format=qkv.format,
        macs=params.executed_pairs * (qk_products * params.qk_head_size + v_products * params.v_head_size),
        softmax_elements=params.executed_pairs,
        read_bytes=bytes_of(inputs) - unmoved,
        write_bytes=bytes_of(outputs) - (unmoved if params.backward else 0),
        backward=params.backward,
    )


def _check(params: AttentionParams, inputs: Tensors) -> None:
    if params.backward:
        take("attention", inputs, 3, 4)
        grad_out, qkv, *kv_all, out = inputs
    else:
        take("attention", inputs, 1, 2)
        qkv, *kv_all = inputs
    checked = [(qkv, params.query_columns + params.key_value_columns)]
    if params.backward:
        checked += [(grad_out, params.query_heads * params.v_head_size), (out, params.query_heads * params.v_head_size)]
    for spec, columns in checked:
        if (spec.rows, spec.columns) != (params.query_rows, columns):
            raise ParameterError("inputs", f"{shown(spec)} must be {params.query_rows} rows of {columns} columns")
    for spec in kv_all:
        rows = params.sequences * params.keys
        if spec.columns != params.key_value_columns or spec.rows < rows:
            message = f"{shown(spec)} must be {rows} rows or more of {params.key_value_columns} columns"
            raise ParameterError("inputs", message)


register(Op("attention", "attention", AttentionParams, infer, demand))
