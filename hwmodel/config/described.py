"""What the source says about the fields of a class: the text under each, as documentation of files."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwmodel.config.extends import KEY, SAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def field_docs(cls: type) -> dict[str, str]:
    """Field -> the text that stands under it in the source, in one line; empty where there is no source."""
    return dict(_class_docs(inspect.getfile(cls)).get(cls.__qualname__, ()))


def summary(cls: type) -> str:
    """First paragraph of a class's docstring, in one line."""
    return _one_line((inspect.getdoc(cls) or "").split("\n\n")[0])


def described(schema: dict[str, Any], models: Iterable[object]) -> dict[str, Any]:
    """A pydantic JSON schema with the text under each field as its description, for ``models`` and by their names."""
    by_name = {model.__name__: model for model in models if isinstance(model, type)}
    for part in (schema, *schema.get("$defs", {}).values()):
        docs = field_docs(by_name[part["title"]]) if part.get("title") in by_name else {}
        for key, value in part.get("properties", {}).items():
            if docs.get(key):
                value["description"] = docs[key]
    return schema


def extensible(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a file, with the key that names the file it starts from.

    With that key nothing is required. A schema cannot say this of what lies further inside, so nothing is required
    there; reading the file checks it.
    """
    properties = {KEY: {"type": "string", "description": SAYS}, **schema["properties"]}
    parts = {
        name: {key: value for key, value in part.items() if key != "required"}
        for name, part in schema.get("$defs", {}).items()
    }
    whole = {key: value for key, value in schema.items() if key != "required"}
    return {
        **whole,
        "properties": properties,
        "anyOf": [{"required": [KEY]}, {"required": schema.get("required", [])}],
        **({"$defs": parts} if parts else {}),
    }


def or_fact(field: dict[str, Any], notes: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """A value's schema, or that of a fact with such a value; also for each value that a mapping or sequence holds.

    Args:
        field: schema of the plain value.
        notes: what a fact says beside its value, with the schema of each.
    """
    held = {key: field[key] for key in ("items", "additionalProperties") if isinstance(field.get(key), dict)}
    field = {**field, **{key: or_fact(inner, notes) for key, inner in held.items()}}
    about: dict[str, Any] = {key: field[key] for key in ("title", "description", "default") if key in field}
    plain = {key: item for key, item in field.items() if key not in about}
    fact = {
        "type": "object",
        "properties": {"value": {"description": about.get("description", "the value itself"), **plain}, **notes},
        "required": ["value"],
        "additionalProperties": False,
    }
    return {"anyOf": [*plain["anyOf"], fact] if plain.keys() == {"anyOf"} else [plain, fact], **about}


@cache
def _class_docs(file: str) -> dict[str, tuple[tuple[str, str], ...]]:
    path = Path(file)
    if not path.is_file():
        return {}
    tree = ast.parse(path.read_text("utf-8"))
    return {item.name: tuple(_fields(item)) for item in tree.body if isinstance(item, ast.ClassDef)}


def _fields(item: ast.ClassDef) -> list[tuple[str, str]]:
    found = []
    for field, text in zip(item.body, item.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            found.append((field.target.id, _one_line(text.value.value)))
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())
