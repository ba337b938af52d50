"""Recipes in files: the named presets, and overrides of single axes on top of one."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BeforeValidator

from hwmodel.config.document import Document, KeyPath, dotted
from hwmodel.config.fields import Integer, Schema, Text
from hwmodel.config.generated import Format, OneOf, given, many, replaced, schema_of, shown, words
from hwmodel.config.loader import load
from hwmodel.config.problems import from_refusal, validate
from hwmodel.errors import ConfigError, Problem, RefusedError, suggestion
from hwmodel.recipes import recipe as axes
from hwmodel.recipes.layouts import GRANULARITIES
from hwmodel.recipes.recipe import Recipe
from hwmodel.recipes.timings import TIMINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

NEVER: Final = "none"
"""How a file writes an interval that never ends."""
DEFAULT_PRESET: Final = "bf16"
_FILE = "presets.yaml"

_Granularity = Annotated[str, OneOf(GRANULARITIES.names, "granularity")]
_KINDS: Final[dict[str, Any]] = {
    "formats.x": Format,
    "formats.w": Format,
    "formats.g": Format,
    "granularity": _Granularity,
    "weight_dgrad_granularity": _Granularity | None,
    "timing": Annotated[str, OneOf(TIMINGS.names, "timing")],
    "interval_steps": Annotated[Integer | None, BeforeValidator(lambda value: None if value == NEVER else value)],
    "history_rule": words(axes.HISTORY_RULES),
    "scale_rounding": words(axes.SCALE_ROUNDINGS),
    "amax.kernel": words(axes.AMAX_KERNELS),
    "amax.sampling": words(axes.AMAX_SAMPLINGS),
    "fusion": words(axes.FUSIONS),
    "exceptions.gemms": many(words(axes.GEMM_USES)),
}
_SAYS: Final = {
    "preset": "name of a recipe to start from; every other key here overrides one of its axes",
    "formats": "number format of the operands, by role",
    "formats.x": "activations",
    "formats.w": "weights",
    "formats.g": "gradients",
    "granularity": "which elements of an operand share one scale",
    "weight_dgrad_granularity": "granularity of the weight copy that the data-gradient GEMM reads, where it differs",
    "timing": "when a scale is known: at once (direct), before the run (static), from this tensor, from earlier steps",
    "interval_steps": "optimiser steps between two amax refreshes of delayed scaling; 'none': amax is never computed",
    "history_steps": "amaxes of earlier steps that are kept",
    "history_rule": "which amax of the history gives the scale",
    "margin_bits": "powers of two kept free above amax",
    "scale_rounding": "scales as they come, or rounded to powers of two",
    "amax": "how an amax is computed",
    "amax.kernel": "fused: in the cast's own kernel; fused_producer: in the kernel that makes the tensor; separate: a "
    "pass of its own",
    "amax.sampling": "full: the whole tensor on a step that is due; split: one slice of interval_steps at every step",
    "fusion": "none: every kernel apart; production: as the software set offers; ideal: whatever can be fused",
    "exceptions": "where the recipe does not apply and BF16 is kept",
    "exceptions.first_layers": "layers at the start of the model",
    "exceptions.last_layers": "layers at the end of the model",
    "exceptions.gemms": "GEMMs of every linear layer: fprop, dgrad, wgrad",
}

RecipeSchema = schema_of(Recipe, "RecipeSchema", kinds=_KINDS | {"preset": Text}, says=_SAYS)
"""The keys of ``recipe``; which of them were written is told by ``model_fields_set``."""


def presets() -> dict[str, Recipe]:
    """The named recipes in the order of their file."""
    return {name: recipe for name, (recipe, _) in _presets().items()}


def to_recipe(
    model: Schema, document: Document, root: KeyPath, *, complete: bool = True
) -> tuple[Recipe | None, tuple[Problem, ...]]:
    """The preset that ``model`` names with the axes it overrides, or every mistake in it.

    Args:
        model: a `RecipeSchema`.
        document: where it was read from.
        root: its path there.
        complete: nothing was left out as malformed, so axes that cannot be together are a mistake.
    """
    changes = given(model)
    name = str(changes.pop("preset", DEFAULT_PRESET))
    known = presets()
    problems: list[Problem] = []
    if name not in known:
        at = (*root, "preset")
        source, line = document.where(at)
        message = f"unknown preset {name!r}{suggestion(name, known)}"
        problems.append(Problem(dotted(at), line, message, None if source == document.source else source))
    try:
        recipe, refused = replaced(known.get(name, Recipe()), changes)
    except RefusedError as error:
        mistakes = from_refusal(error, document, ()).problems if complete and not problems else ()
        return None, (*problems, *mistakes)
    for mistake in refused:
        problems += from_refusal(mistake, document, root).problems
    return (None if problems else recipe), tuple(problems)


def recipe_defaults(model: Schema, recipe: Recipe, prefix: str) -> list[tuple[str, str]]:
    """(path, value) of the axes that neither the preset nor the file states and that matter to this recipe."""
    written = {*_leaves(given(model), ())}
    found: list[tuple[str, str]] = []
    if ("preset",) not in written:
        found.append((f"{prefix}preset", DEFAULT_PRESET))
    if not recipe.scaled:
        return found
    stated = written | _presets()[recipe.preset][1]
    idle = recipe.idle_axes()
    for path in _leaves(given(_all_written(RecipeSchema())), ()):
        name = dotted(path)
        if path in stated or path == ("preset",) or name in idle:
            continue
        value = _value(recipe, path)
        if value not in (None, "", ()):
            found.append((f"{prefix}{name}", shown(value)))
    return found


@cache
def _presets() -> dict[str, tuple[Recipe, frozenset[KeyPath]]]:
    """Each preset with the axes its entry states.

    Raises:
        ConfigError: the packaged file is broken.
    """
    with resources.as_file(resources.files("hwmodel.recipes") / _FILE) as path:
        document = load(Path(path), source=_FILE)
    return {name: _preset(document, name) for name in document.data}


def _preset(document: Document, name: str) -> tuple[Recipe, frozenset[KeyPath]]:
    model = validate(RecipeSchema, document, root=(name,))
    changes = given(model)
    recipe, refused = replaced(Recipe(preset=name), changes)
    if refused:
        problems = (problem for error in refused for problem in from_refusal(error, document, (name,)).problems)
        raise ConfigError(document.source, tuple(problems))
    return recipe, frozenset(_leaves(changes, ()))


def _leaves(value: dict[str, Any], path: KeyPath) -> Iterator[KeyPath]:
    """The paths of all values in nested mappings."""
    for key, item in value.items():
        if isinstance(item, dict):
            yield from _leaves(item, (*path, key))
        else:
            yield (*path, key)


def _all_written(model: Schema) -> Schema:
    """The same values as if each had been written."""
    inner = {name: getattr(model, name) for name in type(model).model_fields}
    full = {name: _all_written(value) if isinstance(value, Schema) else value for name, value in inner.items()}
    return type(model).model_construct(_fields_set=set(full), **full)


def _value(recipe: Recipe, path: KeyPath) -> object:
    value: object = recipe
    for step in path:
        value = getattr(value, str(step))
    return value
