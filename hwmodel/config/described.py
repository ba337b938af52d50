"""What the source says about the fields of a class: the text under each, as documentation of files."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


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
