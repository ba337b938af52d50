"""Workload files: the way from YAML, with edits by path, to a `Workload`."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from hwmodel.config.document import Document, KeyPath, dotted
from hwmodel.config.fields import Schema
from hwmodel.config.generated import defaults_used, given, replaced
from hwmodel.config.graph import Lines
from hwmodel.config.loader import load
from hwmodel.config.locate import locate
from hwmodel.config.model import ModelSchema, load_model, to_spec
from hwmodel.config.problems import from_refusal, in_order, mentions, problems_of
from hwmodel.config.recipe import RecipeSchema, presets, recipe_defaults, to_recipe
from hwmodel.config.shorthand import SHORTHANDS, edited, expanded
from hwmodel.config.workload_schema import (
    KINDS,
    BatchSchema,
    EnvelopeSchema,
    HandSchema,
    OptimizerSchema,
    ParallelSchema,
    ScheduleSchema,
    SoftwareSchema,
    TrainingSchema,
    schema_workload,
)
from hwmodel.errors import ConfigError, HwModelError, Problem, suggestion
from hwmodel.graph import REFERENCE, Layout
from hwmodel.models.decoder import rank_dims
from hwmodel.recipes.recipe import Recipe, StepKind
from hwmodel.workload import Batch, HandGraph, Optimizer, Training, Workload
from hwmodel.workload.hand import lower_hand
from hwmodel.workload.mistakes import hand_mistakes
from hwmodel.workload.training import padded_tokens
from hwmodel.workload.workload import layout_mistakes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hwmodel.config.facts import Edit
    from hwmodel.models.spec import ModelSpec

__all__ = ["LoadedWorkload", "load_model", "load_workload", "presets", "schema_workload"]

M = TypeVar("M", bound=Schema)


@dataclass(frozen=True, slots=True)
class LoadedWorkload:
    """A workload, what it changes in its software set, and what it left to defaults."""

    workload: Workload
    software_edits: tuple[tuple[str, object], ...] = ()
    """(entry, value), for whoever loads ``workload.software``."""
    defaults: tuple[tuple[str, str], ...] = ()
    """(path, value) of every default that was used."""
    document: Document = field(default_factory=lambda: Document("", {}), compare=False, repr=False)
    """What was written, with edits applied."""


def load_workload(
    name_or_path: str | pathlib.Path, edits: Iterable[Edit] = (), recipe: str | None = None
) -> LoadedWorkload:
    """The workload called by a name or in a file, with edits applied to what the file says.

    Args:
        name_or_path: a name such as ``quickstart`` (no slash, no ``.yaml``), or a path.
        edits: such as ``batch.sequence=4096``, or (path, value); a later one on top. The name alone of a recipe,
            schedule or software set replaces that name and keeps the file's other keys in the section.
        recipe: a preset that replaces the file's and the edits'. Of the file's own axes only fusion and exceptions
            stay, as the others belong to its preset; axes that edits override stay overridden.

    Raises:
        RegistryError: no workload of that name.
        ConfigError: every mistake, with file, line, path, rule and value.
    """
    file = locate("workloads", name_or_path)
    document = edited(load(file), edits, recipe)
    document, shortened = expanded(document)
    reading = _Reading(document, file, shortened)
    kind = document.get(("kind",))
    if kind == "training":
        return reading.loaded(TrainingSchema, reading.training)
    if kind == "graph":
        return reading.loaded(HandSchema, reading.graph)
    known = ", ".join(sorted(KINDS))
    if "kind" not in document.data:
        reading.problem(("kind",), f"is missing; known: {known}")
    elif isinstance(kind, str):
        reading.problem(("kind",), f"unknown kind {kind!r}{suggestion(kind, KINDS)}")
    else:
        reading.problem(("kind",), f"must be one of {known}, got {kind!r}")
    raise reading.error()


@dataclass(slots=True)
class _Reading:
    """One workload file on its way, with every mistake found so far."""

    document: Document
    file: pathlib.Path
    shortened: frozenset[str]
    problems: list[Problem] = field(default_factory=list)
    defaults: list[tuple[str, str]] = field(default_factory=list)
    incomplete: set[str] = field(default_factory=set)
    """Sections of which a part was malformed."""

    def loaded(self, schema: type[EnvelopeSchema], build: Callable[[], Workload | None]) -> LoadedWorkload:
        """The workload that ``build`` makes, once the whole file is well-formed."""
        try:
            schema.model_validate(self.document.data)
        except ValidationError as error:
            self.problems += problems_of(error, self.document, schema)
        workload = build()
        if workload is None or self.problems:
            raise self.error()
        software = self.section(SoftwareSchema, "software")
        assert software is not None
        changes = tuple((name, value) for name, value in given(software).items() if name != "set" and value is not None)
        return LoadedWorkload(workload, changes, tuple(self.defaults), self.document)

    def training(self) -> Training | None:
        """A training step, or None after a mistake."""
        batch = self.section(BatchSchema, "batch")
        spec = self.model()
        layout = self.record(Layout(), self.section(ParallelSchema, "parallel"), "parallel")
        recipe = self.recipe()
        optimizer = self.record(Optimizer(), self.section(OptimizerSchema, "optimizer"), "optimizer")
        common = self.common()
        if batch is None or spec is None or layout is None or self.incomplete & {"batch", "model", "parallel"}:
            return None
        sizes = Batch(batch.global_sequences, batch.micro_sequences, batch.sequence)
        self.layout(spec, sizes, layout, recipe)
        if recipe is None or optimizer is None or self.problems:
            return None
        self.defaults = [*defaults_used(batch, "batch."), *self.defaults]
        try:
            return Training(model=spec, batch=sizes, layout=layout, recipe=recipe, optimizer=optimizer, **common)
        except HwModelError as error:
            self.refused(error, ())
            return None

    def layout(self, model: ModelSpec, batch: Batch, layout: Layout, recipe: Recipe | None) -> None:
        """Note how a model, its batch and its cut over devices do not fit together."""
        mistakes = tuple(layout_mistakes(model, batch, layout))
        for error in mistakes:
            self.refused(error, ())
        tokens, sequence = layout.sequence_shards, 1  # where the batch does not fit, only the model's sizes are judged
        if not mistakes:
            known = recipe or Recipe()
            workload = Training(name="", model=model, batch=batch, layout=layout, recipe=known)
            tokens, sequence = padded_tokens(workload, known), batch.sequence
        try:
            rank_dims(model, layout, tokens=tokens, sequence=sequence, sequences=batch.micro_sequences)
        except HwModelError as error:
            self.refused(error, ())

    def graph(self) -> HandGraph | None:
        """A hand-written graph that can be put in order and lowered, or None after a mistake."""
        lines = Lines(self.document)
        tensors, ops = lines.tensors(), lines.ops()
        self.problems += lines.problems
        recipe, common = self.recipe(), self.common()
        readable = isinstance(self.document.get(("ops",)), tuple)
        outline = HandGraph(name="", tensors=tensors, ops=ops)
        for mistake in hand_mistakes(outline, recipe, lines.doubts(tensors)) if readable else ():
            self.refused(mistake, ())
        if recipe is None or self.problems:
            return None
        try:
            workload = HandGraph(tensors=tensors, ops=ops, recipe=recipe, **common)
            lower_hand(workload, recipe, REFERENCE, StepKind())
        except HwModelError as error:
            self.refused(error, ())
            return None
        return workload

    # Sections

    def section(self, schema: type[M], key: str) -> M | None:
        """A section without what is malformed in it, which the whole file's schema has complained about."""
        data = self.document.get((key,))
        try:
            return schema.model_validate({} if data is None else data)
        except ValidationError as error:
            wrong = {
                detail["loc"][0] for detail in error.errors(include_url=False, include_context=False) if detail["loc"]
            }
        self.incomplete.add(key)
        if not isinstance(data, dict):
            return None
        try:
            return schema.model_validate({name: value for name, value in data.items() if name not in wrong})
        except ValidationError:
            return None

    def record(self, base: Any, section: Schema | None, key: str) -> Any:
        """``base`` with what a section says, or None after a mistake."""
        if section is None:
            return None
        self.defaults += defaults_used(section, f"{key}.")
        written = self.document.get((key,))
        known = given(section)
        malformed = {*(written if isinstance(written, dict) else ())} - {*known}
        record, refused = replaced(base, known)
        for error in refused:
            if mentions(error, malformed):
                continue
            prefix = f"{key}."
            self.refused(error, () if error.field.startswith(prefix) else (key,))
        return None if refused else record

    def model(self) -> Any:
        """The architecture, or None after a mistake."""
        section = self.section(ModelSchema, "model")
        written = self.document.get(("model",))
        if section is None or not isinstance(written, dict):
            return None
        if "base" in written and "base" not in section.model_fields_set:
            return None
        spec, problems = to_spec(section, self.document, ("model",), relative_to=self.file.parent)
        self.problems += problems
        return spec

    def recipe(self) -> Recipe | None:
        """The recipe, or None after a mistake."""
        section = self.section(RecipeSchema, "recipe")
        if section is None:
            return None
        complete = "recipe" not in self.incomplete
        recipe, problems = to_recipe(section, self.document, ("recipe",), complete=complete)
        self.problems += problems
        if recipe is not None:
            self.defaults += recipe_defaults(section, recipe, "recipe.")
        return recipe

    def common(self) -> dict[str, Any]:
        """What every kind of workload has, except the recipe."""
        schedule = self.section(ScheduleSchema, "schedule")
        software = self.section(SoftwareSchema, "software")
        data = {key: value for key, value in self.document.data.items() if key in ("kind", "name", "steps", "notes")}
        if schedule is None or software is None:
            return {}
        name = str(getattr(software, "set"))  # noqa: B009 - the model is made when its module is loaded
        try:
            locate("software", name)
        except HwModelError as error:
            message = f"{error.problems[0].message}, got {name!r}" if isinstance(error, ConfigError) else str(error)
            self.problem(("software", "set"), message)
        try:
            rest = EnvelopeSchema.model_validate(data)
        except ValidationError:
            return {}
        self.defaults += defaults_used(schedule, "schedule.") + defaults_used(software, "software.")
        if "steps" not in rest.model_fields_set:
            self.defaults.append(("steps", str(rest.steps)))
        return {
            "name": rest.name or self.file.stem,
            "schedule": schedule.streams,
            "software": name,
            "steps": rest.steps,
            "notes": rest.notes,
        }

    # Mistakes

    def refused(self, error: HwModelError, path: KeyPath) -> None:
        """Note what a domain object refused."""
        self.problems += from_refusal(error, self.document, path).problems

    def problem(self, path: KeyPath, message: str) -> None:
        """Note a mistake."""
        source, line = self.document.where(path)
        self.problems.append(Problem(dotted(path), line, message, None if source == self.document.source else source))

    def error(self) -> ConfigError:
        """Every mistake, with paths as the file wrote them: a section that is a text alone has no keys."""
        shown = {f"{key}.{SHORTHANDS[key]}": key for key in self.shortened}
        problems = (replace(problem, path=shown.get(problem.path, problem.path)) for problem in self.problems)
        return ConfigError(self.document.source, in_order(problems, self.document))
