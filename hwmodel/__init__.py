"""Predicts how fast 8-bit scaling recipes run on an accelerator; the public names, loaded on first use.

``import hwmodel`` itself loads nothing else, so that ``hwmodel --help`` and a version check stay quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hwmodel import formats as formats
    from hwmodel.api import Result as Result
    from hwmodel.api import compare as compare
    from hwmodel.api import simulate as simulate
    from hwmodel.sweeps import sweep as sweep

__version__ = "0.1.0"

_HOMES = {"Result": "hwmodel.api", "compare": "hwmodel.api", "simulate": "hwmodel.api", "sweep": "hwmodel.sweeps"}
_MODULES = ("formats",)

__all__ = ["Result", "__version__", "compare", "formats", "simulate", "sweep"]


def __getattr__(name: str) -> object:
    """Public name or module, imported when it is first asked for (PEP 562)."""
    if name in _MODULES:
        return importlib.import_module(f"hwmodel.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'hwmodel' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Public names, loaded or not."""
    return sorted(__all__)
