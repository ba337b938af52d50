"""Kernels: a demand becomes a pipeline on a device, and a pipeline a time."""

from __future__ import annotations

from hwmodel.device.kernel.closed import Demands, KernelTime, evaluate
from hwmodel.device.kernel.pipeline import Phase, Pipeline, Stage
from hwmodel.device.kernel.time import KernelTimer, time_alone

__all__ = ["Demands", "KernelTime", "KernelTimer", "Phase", "Pipeline", "Stage", "evaluate", "time_alone"]
