"""YAML in and out: strict loading, edits by path, schemas, and every mistake as file, line and path."""

from __future__ import annotations
