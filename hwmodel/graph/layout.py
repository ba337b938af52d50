"""How a model is cut over ranks: the degrees of parallelism and where a group's ranks sit."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hwmodel.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees of parallelism. Ranks are numbered with tp innermost, then cp, dp, pp outermost.

    Sequence parallelism shares the tensor-parallel group; ``vp`` is the number of model pieces (virtual stages) each
    pipeline rank holds and adds no ranks.
    """

    tp: int = 1
    sp: bool = True
    """Activations between tensor-parallel regions are sharded along the sequence over the tp group."""
    cp: int = 1
    dp: int = 1
    pp: int = 1
    vp: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            degree = getattr(self, field.name)
            if field.name != "sp" and degree < 1:
                raise ParameterError(field.name, f"must be >= 1, got {degree}")
        if self.vp > 1 and self.pp == 1:
            raise ParameterError("vp", f"virtual stages need pp > 1, got vp={self.vp} with pp=1")

    @property
    def ranks(self) -> int:
        """Devices in the job."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def sequence_shards(self) -> int:
        """Ranks over which a tensor between tensor-parallel regions is cut along the sequence."""
        return self.tp if self.sp else 1

    def group(self, name: str) -> tuple[int, int]:
        """(ranks, stride) of the group ``name``; 'dp_cp' is data and context parallel ranks joined."""
        strides = {"tp": 1, "cp": self.tp, "dp": self.tp * self.cp, "pp": self.tp * self.cp * self.dp}
        if name == "dp_cp":
            return self.dp * self.cp, strides["cp"]
        return int(getattr(self, name)), strides[name]
