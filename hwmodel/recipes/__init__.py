"""Scaling recipes: points on axes, spent when a graph is built."""

from __future__ import annotations
