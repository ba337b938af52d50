"""Architecture of a dense decoder: sizes, and the closed forms that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hwmodel.errors import ParameterError
from hwmodel.ops.attention import attention_flops
from hwmodel.units import FLOPS_PER_MAC

MOST_LAYERS = 2000
"""Every layer of a rank is simulated, so a run grows with them."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A Llama-style decoder: RMSNorm, rotary embeddings, grouped-query attention, SwiGLU, no biases."""

    name: str
    layers: int
    hidden: int
    heads: int
    key_value_heads: int
    head_size: int
    feed_forward: int
    vocabulary: int
    tied_embeddings: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("name", "tied_embeddings") and value < 1:
                raise ParameterError(field.name, f"must be >= 1, got {value}")
        if self.layers > MOST_LAYERS:
            raise ParameterError("layers", f"must be <= {MOST_LAYERS}, got {self.layers}")
        if self.heads % self.key_value_heads:
            raise ParameterError("key_value_heads", f"must divide heads={self.heads}, got {self.key_value_heads}")

    @property
    def query_width(self) -> int:
        """Columns of all query heads."""
        return self.heads * self.head_size

    @property
    def key_value_width(self) -> int:
        """Columns of all key heads (and as many of the value heads)."""
        return self.key_value_heads * self.head_size

    @property
    def qkv_width(self) -> int:
        """Columns of the joined query, key and value projection."""
        return self.query_width + 2 * self.key_value_width

    @property
    def layer_matrix_parameters(self) -> int:
        """Weights of the four linear layers of one block."""
        return self.hidden * (self.qkv_width + self.query_width + 3 * self.feed_forward)

    @property
    def layer_parameters(self) -> int:
        """Weights of one block with its two norms."""
        return self.layer_matrix_parameters + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """All weights; a tied embedding counts once (case E-3)."""
        tables = 1 if self.tied_embeddings else 2
        return self.layers * self.layer_parameters + tables * self.vocabulary * self.hidden + self.hidden

    def forward_flops(self, sequence: int) -> int:
        """Forward FLOPs of one sequence: matrix products and exactly causal attention, no lookup, no norms.

        Tying the embeddings changes no FLOPs (case E-3).
        """
        linear = self.layers * self.layer_matrix_parameters + self.vocabulary * self.hidden
        attention = (
            self.layers * self.heads * attention_flops(sequence, sequence, self.head_size, self.head_size, "exact")
        )
        return FLOPS_PER_MAC * linear * sequence + attention

    def training_flops(self, sequence: int) -> int:
        """Forward and backward FLOPs of one sequence by the usual convention, backward twice forward, no recompute."""
        return 3 * self.forward_flops(sequence)

    def key_value_bytes_per_token(self, element_bytes: int = 2) -> int:
        """Key and value cache of one token over all layers (case E-1)."""
        return 2 * self.layers * self.key_value_width * element_bytes
