"""Number formats as facts, shared-scale layouts and scale arithmetic; knows no graph, device or clock."""

from __future__ import annotations

from hwmodel.formats.catalogue import FORMATS, FormatSpec
from hwmodel.formats.layout import ScaleLayout

__all__ = ["FORMATS", "FormatSpec", "ScaleLayout"]
