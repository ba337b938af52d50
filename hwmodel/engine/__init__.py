"""Runs plans in time; knows no op, recipe or format. The only user of SimPy."""

from __future__ import annotations
