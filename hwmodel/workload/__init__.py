"""Workloads and their lowering to graphs: a training step, or a graph written by hand."""

from __future__ import annotations

from hwmodel.workload.workload import Batch, HandGraph, Optimizer, Training, Workload, describe

__all__ = ["Batch", "HandGraph", "Optimizer", "Training", "Workload", "describe"]
