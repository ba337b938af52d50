"""Models in files: an architecture by name, written out, or by name with some fields changed."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Final

from pydantic import Field, ValidationError, create_model

from hwmodel.config.document import Document, KeyPath, dotted
from hwmodel.config.fields import PositiveInteger, Schema, Text
from hwmodel.config.generated import given, replaced, schema_of
from hwmodel.config.loader import load
from hwmodel.config.locate import locate
from hwmodel.config.problems import from_refusal, in_order, mentions, problems_of
from hwmodel.errors import ConfigError, HwModelError, Problem
from hwmodel.models.spec import ModelSpec

if TYPE_CHECKING:
    from pathlib import Path

UNNAMED: Final = "custom"
"""Name of a model that is written out without one."""
_SAYS: Final = {
    "name": "name for people",
    "layers": "transformer blocks",
    "hidden": "width of the residual stream",
    "heads": "query heads",
    "key_value_heads": "heads of keys and values; fewer than heads is grouped-query attention",
    "head_size": "width of one head",
    "feed_forward": "width inside the gated feed-forward layer",
    "vocabulary": "tokens in the vocabulary",
    "tied_embeddings": "the input embedding is also the output projection",
}
_TRIVIAL = ModelSpec(UNNAMED, layers=1, hidden=1, heads=1, key_value_heads=1, head_size=1, feed_forward=1, vocabulary=1)

_Fields = schema_of(ModelSpec, "ModelFields", says=_SAYS, integer=PositiveInteger, partial=True)
ModelSchema = create_model(
    "ModelSchema",
    __base__=_Fields,
    __doc__="A model: `base` names one to start from; without it every size has to be written.",
    base=(Text | None, Field(default=None, description="a shipped model's name, or a path; other keys change it")),
)
"""The keys of ``model`` in a workload."""


def load_model(name_or_path: str, *, relative_to: Path | None = None) -> ModelSpec:
    """The architecture called by a name or in a file.

    Raises:
        RegistryError: no model of that name.
        ConfigError: every mistake in its file.
    """
    file = locate("models", name_or_path, relative_to=relative_to)
    document = load(file)
    malformed: tuple[Problem, ...] = ()
    try:
        model = _Fields.model_validate(document.data)
    except ValidationError as error:
        malformed = problems_of(error, document, _Fields)
        wrong = {detail["loc"][0] for detail in error.errors(include_url=False, include_context=False)}
        model = _Fields.model_validate({key: value for key, value in document.data.items() if key not in wrong})
    spec, problems = _spec(model, None, document, ())
    if spec is None or malformed:
        raise ConfigError(document.source, in_order((*malformed, *problems), document))
    return spec


def to_spec(
    model: Schema, document: Document, root: KeyPath, *, relative_to: Path
) -> tuple[ModelSpec | None, tuple[Problem, ...]]:
    """The architecture that a ``model`` section describes, or every mistake in it.

    Args:
        model: a `ModelSchema`.
        document: where it was read from.
        root: its path there.
        relative_to: folder that a path of a base starts from.
    """
    base: str | None = getattr(model, "base", None)
    if base is None:
        return _spec(model, None, document, root)
    try:
        spec = load_model(base, relative_to=relative_to)
    except HwModelError as error:
        if isinstance(error, ConfigError) and not _is_about_the_path(error):
            return None, tuple(_sourced(error))
        message = f"{error.problems[0].message}, got {base!r}" if isinstance(error, ConfigError) else str(error)
        return None, (_problem(document, (*root, "base"), message),)
    return _spec(model, spec, document, root)


def _spec(
    model: Schema, base: ModelSpec | None, document: Document, root: KeyPath
) -> tuple[ModelSpec | None, tuple[Problem, ...]]:
    changes = given(model)
    changes.pop("base", None)
    written = document.get(root)
    malformed = {*(written if isinstance(written, dict) else ())} - {*changes, "base"}
    needed = [field.name for field in fields(ModelSpec) if field.default is MISSING and field.name != "name"]
    missing = [] if base is not None else [name for name in needed if name not in {*changes, *malformed}]
    problems = [_problem(document, (*root, name), "is missing") for name in missing]
    spec, refused = replaced(base or _TRIVIAL, changes)
    for error in refused:
        # How a size fits to one that is not known cannot be said.
        if not mentions(error, {*missing, *malformed}):
            problems += from_refusal(error, document, root).problems
    return (None if problems or malformed else spec), tuple(problems)


def _is_about_the_path(error: ConfigError) -> bool:
    return len(error.problems) == 1 and not error.problems[0].path and error.problems[0].line is None


def _sourced(error: ConfigError) -> list[Problem]:
    """Mistakes in another file, each with that file's name."""
    return [Problem(item.path, item.line, item.message, item.source or error.source) for item in error.problems]


def _problem(document: Document, path: KeyPath, message: str) -> Problem:
    source, line = document.where(path)
    return Problem(dotted(path), line, message, None if source == document.source else source)
