"""What a node asks of a machine, in exact integers: a tagged union with one record per kind of work.

A demand knows no device. How long it takes is for ``device/kernel``; when and beside what it runs is a schedule's.
"""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.formats import FORMATS
from hwmodel.units import FLOPS_PER_MAC, ceil_div


@dataclass(frozen=True, slots=True)
class Gemm:
    """(m, k) x (k, n) -> (m, n), ``batch`` times."""

    m: int
    n: int
    k: int
    a_format: str
    b_format: str
    out_format: str
    batch: int = 1
    a_scale_bytes: int = 0
    b_scale_bytes: int = 0
    accumulates: bool = False
    """Adds into an output that is already in device memory (read and written)."""
    native_block_scales: bool = False
    """The matrix unit itself applies block scales along k."""
    promote_every: int = 0
    """Elements of k after which vector lanes scale the partial sum and add it up; 0 where the K loop is unbroken."""
    epilogue_scale_vectors: int = 0
    """Row or column scale vectors applied by vector lanes, at the end or at every promotion: 0, 1 or 2."""
    kernel: str = ""
    """Name of a kernel variant of the software set, '' for the device's own list."""

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.batch * self.m * self.n * self.k

    @property
    def flops(self) -> int:
        """Floating-point operations."""
        return FLOPS_PER_MAC * self.macs

    @property
    def bytes(self) -> int:
        """Compulsory bytes of device memory: operands, scales and output once each."""
        return self.read_bytes + self.write_bytes

    @property
    def read_bytes(self) -> int:
        """Operands and scales once, and the output where it accumulates."""
        bits = self.m * self.k * FORMATS.get(self.a_format).bits + self.k * self.n * FORMATS.get(self.b_format).bits
        held = self.write_bytes if self.accumulates else 0
        return self.batch * ceil_div(bits, 8) + self.a_scale_bytes + self.b_scale_bytes + held

    @property
    def write_bytes(self) -> int:
        """The output once."""
        return self.batch * ceil_div(self.m * self.n * FORMATS.get(self.out_format).bits, 8)


@dataclass(frozen=True, slots=True)
class Attention:
    """Scaled-dot-product attention over this rank's rows of queries, forward or backward."""

    query_heads: int
    key_value_heads: int
    query_rows: int
    key_value_rows: int
    qk_head_size: int
    v_head_size: int
    format: str
    macs: int
    """Multiply-accumulates that the kernel executes (its causal convention applied, backward's recompute counted)."""
    softmax_elements: int
    """Scores that pass through the exponential."""
    read_bytes: int
    write_bytes: int
    backward: bool = False

    @property
    def flops(self) -> int:
        """Floating-point operations executed by the matrix unit."""
        return FLOPS_PER_MAC * self.macs

    @property
    def bytes(self) -> int:
        """Bytes of device memory moved."""
        return self.read_bytes + self.write_bytes


@dataclass(frozen=True, slots=True)
class Stream:
    """A vector or memory kernel: bytes by direction, vector instructions by class, launches."""

    read_bytes: int
    write_bytes: int
    elements: int
    instructions: tuple[tuple[str, int], ...] = ()
    """(instruction class, element operations). Classes are `INSTRUCTION_CLASSES`."""
    access: str = "contiguous"
    """'contiguous', 'transpose' or 'latency' (tiny dependent accesses): which bandwidth share applies."""
    reduces_across_cores: bool = False
    """Ends with a reduction over all cores (an amax or norm of the whole tensor)."""
    launches: int = 1
    flops: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of device memory moved."""
        return self.read_bytes + self.write_bytes


INSTRUCTION_CLASSES = ("simple", "binary", "cast", "exp", "divide", "rsqrt", "reduce")
"""simple: one operand or a scalar (abs, muls, max with a scalar); binary: two operands (add, mul, max)."""


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective or a point-to-point transfer over one group of ranks.

    ``full_bytes`` names the *full* tensor (the gathered size of an all_gather, the input of a reduce_scatter or
    all_reduce, the message of a send_recv), never a shard (cases E-5, E-6: sizes are unambiguous).
    """

    kind: str
    """'all_reduce', 'all_gather', 'reduce_scatter' or 'send_recv'."""
    group: str
    """Name of the parallel dimension whose ranks take part: tp, cp, dp, pp or a joined name such as dp_cp."""
    ranks: int
    full_bytes: int
    stride: int = 1
    """Distance between neighbours of the group in the global numbering of ranks; places the group on a level."""

    @property
    def sent_bytes(self) -> int:
        """Bytes each rank sends on a ring; 0 with one rank (case E-6)."""
        if self.ranks == 1:
            return 0
        if self.kind == "send_recv":
            return self.full_bytes
        once = ceil_div(self.full_bytes * (self.ranks - 1), self.ranks)
        return 2 * once if self.kind == "all_reduce" else once

    @property
    def reduces(self) -> bool:
        """Values are added or maximised on the way."""
        return self.kind in ("all_reduce", "reduce_scatter")

    @property
    def bytes(self) -> int:
        """Bytes each rank sends."""
        return self.sent_bytes

    @property
    def flops(self) -> int:
        """Counted as none."""
        return 0


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Time that passes for a reason computed elsewhere in closed form (a pipeline bubble, exposed traffic)."""

    picoseconds: int
    bytes: int = 0
    flops: int = 0


@dataclass(frozen=True, slots=True)
class Fused:
    """Several kernels in one: the whole as one kernel, and its parts with their kinds for the breakdown."""

    whole: Stream
    parts: tuple[tuple[str, Stream], ...]
    """(breakdown kind, demand alone) of each part, in order."""

    @property
    def bytes(self) -> int:
        """Bytes of device memory moved by the whole."""
        return self.whole.bytes

    @property
    def flops(self) -> int:
        """Floating-point operations of the whole."""
        return self.whole.flops


Demand = Gemm | Attention | Stream | Collective | Elapsed | Fused
