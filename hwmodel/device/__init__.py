"""Devices: facts, resources and paths, how work shares them, and how long kernels take."""

from __future__ import annotations

from hwmodel.device.device import Device

__all__ = ["Device"]
