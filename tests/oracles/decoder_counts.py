"""Parameters and FLOPs of a decoder by listing every matrix and every pair of query and key, one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def matrices(
    *, layers: int, hidden: int, heads: int, kv_heads: int, head: int, feed_forward: int, vocabulary: int
) -> Iterator[tuple[str, int, int]]:
    """(name, rows, columns) of every matrix of an untied Llama-style decoder."""
    yield "embedding", vocabulary, hidden
    for layer in range(layers):
        yield f"{layer}.q", heads * head, hidden
        yield f"{layer}.k", kv_heads * head, hidden
        yield f"{layer}.v", kv_heads * head, hidden
        yield f"{layer}.o", hidden, heads * head
        yield f"{layer}.gate", feed_forward, hidden
        yield f"{layer}.up", feed_forward, hidden
        yield f"{layer}.down", hidden, feed_forward
    yield "head", vocabulary, hidden


def parameters(*, tied: bool, layers: int, hidden: int, **sizes: int) -> int:
    """All weights: matrices, two norms per layer and the last one; a tied table counts once."""
    total = 0
    for name, rows, columns in matrices(layers=layers, hidden=hidden, **sizes):
        if not (tied and name == "head"):
            total += rows * columns
    norms = 0
    for _ in range(layers):
        norms += hidden + hidden
    return total + norms + hidden


def forward_flops(sequence: int, *, layers: int, heads: int, head: int, **sizes: int) -> int:
    """FLOPs of one sequence: each matrix but the lookup times each token, each score and its value."""
    total = 0
    for name, rows, columns in matrices(layers=layers, heads=heads, head=head, **sizes):
        if name != "embedding":
            total += 2 * rows * columns * sequence
    pairs = 0
    for query in range(sequence):
        for key in range(sequence):
            pairs += key <= query
    return total + layers * heads * pairs * (2 * head + 2 * head)
