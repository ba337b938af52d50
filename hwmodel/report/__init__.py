"""What people see of a run: breakdowns, metrics, tables, timelines and exported traces. The only place for Plotly."""

from __future__ import annotations
