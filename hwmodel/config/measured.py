"""The file beside the measured rows: who measured, how, and what that means for a comparison with kernel times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from hwmodel.config.fields import Quantity, Real, Schema, Text, Whole
from hwmodel.config.loader import load
from hwmodel.config.locate import data_folder
from hwmodel.config.problems import validate

if TYPE_CHECKING:
    from pathlib import Path

Suite = Literal["gemm", "vector", "recipes"]
Role = Literal["fit", "transfer", "headline"]
FILE: Final = "sources.yaml"


class TreatmentSchema(Schema):
    """How a source timed."""

    suite: Suite | None = None
    """The suite it is about; all where not given."""
    machines: tuple[Text, ...] = ()
    """Names of devices in the rows; all where none is given."""
    overhead: Literal["additive", "floor"] = "additive"
    """Whether the overhead comes on top of the kernel or hides a shorter one."""
    overhead_seconds: Annotated[float, Quantity("seconds", ge=0)] = 0.0
    rate_fraction: Annotated[float, Real(gt=0, le=1)] = 1.0
    """Share of the matrix rate that the device sustains."""
    why: Text = ""
    """Where the values are from."""


class SourceSchema(Schema):
    """Somebody who published rows."""

    origin: Text = Field(alias="from")
    licence: Text
    timed: Text
    role: Role
    """fit: constants may be fitted on its fit rows; transfer: never; headline: upper envelopes, not judged."""
    machines: dict[str, Text] = Field(default_factory=dict)
    """Name of a device in its rows -> device file, where it differs from what others mean by that name."""
    treatments: tuple[TreatmentSchema, ...] = ()


class ReadingSchema(Schema):
    """What rows are that do not say so themselves; the first that fits a row holds."""

    where: dict[str, Text]
    """Column -> value."""
    format: Text | None = None
    """Of both operands."""
    promote_every: Annotated[int, Whole(ge=0)] = 0
    """Elements of k after which vector lanes apply block scales to the partial sums, 0 for an unbroken loop."""
    why: Text = ""


class ExclusionSchema(Schema):
    """Rows that no comparison uses."""

    where: dict[str, Text]
    """Column -> value."""
    reason: Text


class SourcesSchema(Schema):
    """The whole file."""

    machines: dict[str, Text]
    """Name of a device in the rows -> device file."""
    formats: dict[str, Text] = Field(default_factory=dict)
    """Name of a format in the rows -> format, where they differ."""
    sources: dict[str, SourceSchema]
    readings: tuple[ReadingSchema, ...] = ()
    exclusions: tuple[ExclusionSchema, ...] = ()


@dataclass(frozen=True, slots=True)
class Treatment:
    """How a source timed on a machine."""

    overhead: str = "additive"
    overhead_seconds: float = 0.0
    rate_fraction: float = 1.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What rows are that do not say so themselves."""

    where: Mapping[str, str] = field(default_factory=dict)
    format: str | None = None
    promote_every: int = 0


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Rows that no comparison uses."""

    where: Mapping[str, str]
    reason: str


class Sources:
    """What is known of the sources of measured rows."""

    def __init__(self, schema: SourcesSchema) -> None:
        self.machines: Mapping[str, str] = dict(schema.machines)
        self.formats: Mapping[str, str] = dict(schema.formats)
        self._exclusions = tuple(Exclusion(dict(each.where), each.reason) for each in schema.exclusions)
        self._readings = tuple(Reading(dict(each.where), each.format, each.promote_every) for each in schema.readings)
        self._sources = dict(schema.sources)

    def knows(self, source: str) -> bool:
        """Whether the file says anything of ``source``."""
        return source in self._sources

    def role(self, source: str) -> Role | Literal["own"]:
        """What the rows of ``source`` may be used for; those of an unknown one are the user's ``own``."""
        known = self._sources.get(source)
        return known.role if known else "own"

    def machine(self, source: str, name: str) -> str:
        """The device file of what ``source`` calls ``name``; the name itself where nobody says."""
        known = self._sources.get(source)
        own = known.machines if known else {}
        return own.get(name, self.machines.get(name, name))

    def treatment(self, source: str, suite: Suite, machine: str) -> Treatment:
        """How ``source`` timed ``suite`` on ``machine``: its last treatment about both."""
        known = self._sources.get(source)
        found = Treatment()
        for each in known.treatments if known else ():
            if each.suite in (None, suite) and (not each.machines or machine in each.machines):
                found = Treatment(each.overhead, each.overhead_seconds, each.rate_fraction)
        return found

    def excluded(self, columns: Mapping[str, str]) -> str:
        """Why no comparison uses a row, '' where it is used."""
        return next((each.reason for each in self._exclusions if _fits(each.where, columns)), "")

    def reading(self, columns: Mapping[str, str]) -> Reading:
        """What a row is beside what it says."""
        return next((each for each in self._readings if _fits(each.where, columns)), Reading())

    def names(self) -> tuple[str, ...]:
        """All sources."""
        return tuple(self._sources)

    def described(self, source: str) -> tuple[str, str, str]:
        """(where from, licence, how timed)."""
        known = self._sources[source]
        return known.origin, known.licence, known.timed


def _fits(where: Mapping[str, str], columns: Mapping[str, str]) -> bool:
    return all(columns.get(name) == value for name, value in where.items())


def load_sources(path: Path | None = None) -> Sources:
    """The shipped file, or another.

    Raises:
        ConfigError: every mistake, with file, line, path, rule and value.
    """
    return Sources(validate(SourcesSchema, load(path or data_folder("measured") / FILE)))
