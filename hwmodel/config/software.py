"""Software sets: their schema, and the way from YAML to a `Software`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from hwmodel.config.described import described, extensible, or_fact
from hwmodel.config.document import Document
from hwmodel.config.edits import SET
from hwmodel.config.extends import load_extended
from hwmodel.config.facts import ON_COMMAND_LINE, Unwrapped, edit_facts, split_edit, unwrap, with_prefix
from hwmodel.config.fields import Schema, Text, Whole
from hwmodel.config.locate import locate
from hwmodel.config.problems import from_refusal, in_order, problems_of
from hwmodel.device.software import COUNTS, FUSED, KERNELS, OVERLAPS, SWITCHES, SinceNote, Software
from hwmodel.errors import ConfigError, HwModelError, Problem, suggestion

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterable, Iterator

    from hwmodel.config.facts import Edit

_KEYS = ("since",)
_PREFIX = "software"
SECTIONS: Final = {"switches": SWITCHES, "counts": COUNTS, "kernels": KERNELS, "overlap": OVERLAPS}
"""Section -> the names it may have, with what each means."""
_LARGEST_COUNT = 64
"""A count is a handful; a larger number would be a rate in disguise."""


class SoftwareSchema(Schema):
    """A software set. An entry is written with the release or change that introduced it: {value: ..., since: ...}."""

    title: Text
    """What reports call the set."""
    switches: dict[str, bool] = Field(default_factory=dict)
    """What is on or off, by name; off where not named."""
    counts: dict[str, Annotated[int, Whole(ge=0, le=_LARGEST_COUNT)]] = Field(default_factory=dict)
    """Whole numbers of launches and the like, by name."""
    kernels: dict[str, Text] = Field(default_factory=dict)
    """Names of kernels, by what they are for; a device's own where nothing is named."""
    fused: tuple[Text, ...] = ()
    """Fused kernels there are, as producer+consumer, with .row or .block where only for such scales."""
    overlap: dict[str, tuple[Literal["plain", "block_scaled"], ...]] = Field(default_factory=dict)
    """Payloads that each collective may transfer beside compute: plain, or block_scaled, with a table of scales."""

    def to_software(self, name: str, since: tuple[SinceNote, ...]) -> Software:
        """The set these entries describe."""
        return Software(
            name=name,
            title=self.title,
            switches=dict(self.switches),
            counts=dict(self.counts),
            kernels=dict(self.kernels),
            fused=frozenset(self.fused),
            overlaps={name: frozenset(payloads) for name, payloads in self.overlap.items()},
            since=since,
        )


@dataclass(frozen=True, slots=True)
class LoadedSoftware:
    """A software set with what was written of it."""

    software: Software
    document: Document
    """Plain values, with edits applied."""


def load_software(name_or_path: str | pathlib.Path, edits: Iterable[Edit] = ()) -> Software:
    """The software set called by a name or in a file, with edits applied.

    Args:
        name_or_path: a name such as ``mature``, or a path.
        edits: an entry goes by its name alone, such as ``scales_in_gemm_order=false``.

    Raises:
        RegistryError: no set of that name.
        ConfigError: every mistake, with file, line, path, rule and value.
    """
    return read_software(name_or_path, edits).software


def read_software(name_or_path: str | pathlib.Path, edits: Iterable[Edit] = ()) -> LoadedSoftware:
    """As `load_software`, with what was written."""
    file = locate("software", name_or_path)
    document = load_extended("software", file)
    document = edit_facts(document, _placed(document, edits), _KEYS, prefix=_PREFIX)
    facts = unwrap(document, _KEYS)
    problems = [*facts.problems, *_unknown(facts)]
    try:
        model = SoftwareSchema.model_validate(facts.document.data)
    except ValidationError as error:
        problems.extend(problems_of(error, facts.document, SoftwareSchema))
    if problems:
        raise ConfigError(document.source, with_prefix(in_order(problems, document), _PREFIX))
    try:
        return LoadedSoftware(model.to_software(file.stem, tuple(_since_notes(facts))), facts.document)
    except HwModelError as error:
        raise from_refusal(error, facts.document, ()) from None


def schema_software() -> dict[str, Any]:
    """The JSON schema of a software set, with every name that a section may have; any entry may also be a fact."""
    schema = described(SoftwareSchema.model_json_schema(), [SoftwareSchema])
    notes = {"since": {"type": "string", "description": "release or change that introduced the entry"}}
    properties = schema["properties"]
    for section, names in SECTIONS.items():
        entry = properties[section]["additionalProperties"]
        known = {name: or_fact({**entry, "description": says}, notes) for name, says in names.items()}
        properties[section] |= {"properties": known, "additionalProperties": False}
    properties["fused"]["items"] = {"enum": list(FUSED)}
    return extensible({**schema, "properties": {key: or_fact(field, notes) for key, field in properties.items()}})


def _placed(document: Document, edits: Iterable[Edit]) -> Iterator[tuple[str, object]]:
    """Edits with the section that an entry's name belongs to put before it."""
    for path, value in map(split_edit, edits):
        head = path.partition(".")[0]
        section = next((section for section, names in SECTIONS.items() if head in names), None)
        if section is not None:
            yield f"{section}.{path}", value
        elif head in {*SECTIONS, "fused", "title"}:
            yield path, value
        else:
            known = [name for names in SECTIONS.values() for name in names]
            message = f"unknown entry {head!r}{suggestion(head, (*known, 'fused'))}"
            raise ConfigError(document.source, (Problem(f"{_PREFIX}.{path}", None, message, SET),))


def _unknown(facts: Unwrapped) -> Iterator[Problem]:
    """Names that no part of the program asks for."""
    for section, known in SECTIONS.items():
        entries = facts.document.get((section,))
        for name in entries if isinstance(entries, dict) else ():
            if name not in known:
                yield facts.problem((section, name), f"unknown name {name!r}{suggestion(name, known)}")
    fused = facts.document.get(("fused",))
    for index, name in enumerate(fused if isinstance(fused, tuple) else ()):
        if isinstance(name, str) and name not in FUSED:
            yield facts.problem(("fused", index), f"unknown fused kernel {name!r}{suggestion(name, FUSED)}")


def _since_notes(facts: Unwrapped) -> Iterator[SinceNote]:
    """When each entry came."""
    for section in (*SECTIONS, "fused"):
        entries = facts.document.get((section,))
        names: list[str | int] = list(entries) if isinstance(entries, dict) else []
        if isinstance(entries, tuple):
            names = list(range(len(entries)))
        for name in names:
            path = (section, name)
            said = ON_COMMAND_LINE if facts.is_set(path) else facts.note(path, "since") or "not stated"
            shown = str(facts.document.get(path)) if section == "fused" else str(name)
            yield SinceNote(f"{section}.{shown}", said)
