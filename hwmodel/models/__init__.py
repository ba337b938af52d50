"""Models as graph builders."""

from __future__ import annotations

from hwmodel.models.spec import ModelSpec

__all__ = ["ModelSpec"]
