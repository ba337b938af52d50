"""What a simulation says, as the plain values of `simulate --json`, beside its BF16 baseline."""

from __future__ import annotations

import html
import importlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwmodel.formats import FORMATS
from hwmodel.report import breakdown as times
from hwmodel.report import critical, metrics
from hwmodel.report.timeline import Section, figure
from hwmodel.report.trace_export import write_trace
from hwmodel.units import FLOPS_PER_MAC, PICOSECONDS_PER_SECOND, format_bytes, format_seconds
from hwmodel.workload import Training, Workload, describe

if TYPE_CHECKING:
    from hwmodel.engine.trace import SequenceTrace
    from hwmodel.recipes.recipe import Recipe
    from hwmodel.simulation.machine import Machine
    from hwmodel.simulation.run import Simulation

SCHEMA = 1
ATTENTION_CONVENTION = "causal-exact, backward twice forward, no recompute"


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over one steady period, in integer picoseconds by kind."""

    steps: int
    picoseconds: int
    breakdown: Mapping[str, int]
    busy: Mapping[str, int]
    critical: Mapping[str, int]
    counts: Mapping[str, int]

    def per_step_seconds(self, amounts: Mapping[str, int]) -> dict[str, float]:
        """Mean over the period, in seconds."""
        return {key: value / self.steps / PICOSECONDS_PER_SECOND for key, value in amounts.items()}

    @property
    def step_seconds(self) -> float:
        """Mean step of the period."""
        return self.picoseconds / self.steps / PICOSECONDS_PER_SECOND


def totals(simulation: Simulation) -> Totals:
    """Sum the period's steps; equal steps are summed once and multiplied."""
    sums: dict[str, dict[str, int]] = {"breakdown": {}, "busy": {}, "critical": {}, "counts": {}}
    for run, count in simulation.steps:
        parts = {
            "breakdown": times.breakdown(run.trace),
            "busy": times.busy(run.trace),
            "critical": critical.critical_path(run.trace),
            "counts": asdict(metrics.count(run.trace)),
        }
        for name, part in parts.items():
            for key, value in part.items():
                sums[name][key] = sums[name].get(key, 0) + value * count
    return Totals(simulation.period_steps, simulation.period_picoseconds, **sums)


class Result:
    """One workload on one device under one recipe, with its BF16 baseline."""

    def __init__(
        self,
        workload: Workload,
        machine: Machine,
        simulation: Simulation,
        baseline: Simulation,
        *,
        defaults: tuple[str, ...],
        edits: tuple[str, ...] = (),
        baselines: dict[int, Totals] | None = None,
    ) -> None:
        """``baselines`` keeps the baseline's totals by pipeline rank for all results that share it."""
        self._baselines = {} if baselines is None else baselines
        self.workload = workload
        self.machine = machine
        self.simulation = simulation
        self._baseline = baseline
        self.baseline = baseline.on(simulation.stage)
        self._defaults = defaults
        self._edits = edits

    def on(self, stage: int) -> Result:
        """The same as pipeline rank ``stage`` sees it: equal steps, its own breakdown and its waits for the slowest."""
        return Result(
            self.workload,
            self.machine,
            self.simulation.on(stage),
            self._baseline,
            defaults=self._defaults,
            edits=self._edits,
            baselines=self._baselines,
        )

    @cached_property
    def totals(self) -> Totals:
        """Sums over the steady period."""
        return totals(self.simulation)

    @cached_property
    def baseline_totals(self) -> Totals:
        """The same of the BF16 baseline."""
        known = self._baselines.get(self.baseline.stage)
        if known is None:
            known = self._baselines[self.baseline.stage] = totals(self.baseline)
        return known

    @property
    def recipe(self) -> Recipe:
        """The recipe as simulated."""
        return self.simulation.recipe

    @property
    def trace(self) -> SequenceTrace:
        """Trace of the period's first step on the reporting device."""
        return self.simulation.steps[0][0].trace

    @property
    def step_shown(self) -> str:
        """Which step `trace` is, where the steps of a period differ."""
        steps = self.totals.steps
        return f"step 1 of a period of {steps}" if steps > 1 else ""

    @property
    def shown_speedup(self) -> float:
        """Baseline step over the step that `trace` shows."""
        makespan = self.trace.makespan_picoseconds
        return self.baseline_totals.step_seconds * PICOSECONDS_PER_SECOND / makespan if makespan else 1.0

    def slowest_kernels(self) -> tuple[metrics.KernelTotal, ...]:
        """The five that take longest in the mean step."""
        return metrics.slowest_kernels([(run.trace, count) for run, count in self.simulation.steps])

    @property
    def step_seconds(self) -> float:
        """Mean step of the steady period."""
        return self.totals.step_seconds

    @property
    def speedup(self) -> float:
        """Baseline step over this step."""
        return self.baseline_totals.step_seconds / self.step_seconds if self.step_seconds else 1.0

    @cached_property
    def data(self) -> dict[str, Any]:
        """The keys of ``simulate --json``."""
        sums, simulation, device = self.totals, self.simulation, self.machine.device
        hidden = times.hidden_time(sums.breakdown, sums.busy)
        data: dict[str, Any] = {
            "schema": SCHEMA,
            "workload": self.workload.name,
            "device": {"name": device.name, "title": device.title},
            "recipe": recipe_values(simulation.recipe),
            "edits": list(self._edits),
            "inputs": self._inputs(),
            "layout": self._layout(),
            "software": self._software(),
            "sharing": {name: resource.policy for name, resource in sorted(device.resources.items())},
            "step_seconds": sums.step_seconds,
            "first_step_seconds": simulation.first.picoseconds / PICOSECONDS_PER_SECOND,
            "steps_seconds": self._steps_seconds(),
            "breakdown_seconds": sums.per_step_seconds(sums.breakdown),
            "busy_seconds": sums.per_step_seconds(sums.busy),
            "critical_path_seconds": sums.per_step_seconds(sums.critical),
            "hidden_seconds": sums.per_step_seconds(hidden),
            "counts": {key: metrics.mean(value, sums.steps) for key, value in sums.counts.items()},
            "baseline": {
                "recipe": "bf16",
                "step_seconds": self.baseline_totals.step_seconds,
                "breakdown_seconds": self.baseline_totals.per_step_seconds(self.baseline_totals.breakdown),
            },
            "speedup": self.speedup,
            "speedup_ceiling": metrics.speedup_ceiling(self.baseline_totals.breakdown),
            "slowest_kernels": [self._kernel(kernel) for kernel in self.slowest_kernels()],
            "defaults_used": self._defaults_used(),
            "warnings": self.warnings(),
        }
        if isinstance(self.workload, Training):
            data |= self._training(self.workload)
        return data

    def _training(self, workload: Training) -> dict[str, Any]:
        device, step = self.machine.device, self.step_seconds
        flops = workload.model.training_flops(workload.batch.sequence) * workload.batch.global_sequences
        per_device = flops / workload.layout.ranks / step if step else 0.0
        memory = self.simulation.memory
        return {
            "tokens_per_second_per_device": workload.tokens_per_step / workload.layout.ranks / step if step else 0.0,
            "model_flops_utilisation_fraction": per_device / peak_flops_per_second(self.machine, "bf16"),
            "recipe_flops_utilisation_fraction": per_device
            / peak_flops_per_second(self.machine, self.recipe.formats.x),
            "flops_convention": ATTENTION_CONVENTION,
            "memory": {
                "peak_bytes": memory.peak_bytes,
                "capacity_bytes": device.memory_bytes,
                "fits": memory.fits,
                "parts": dict(memory.parts),
            }
            if memory
            else None,
        }

    def _inputs(self) -> dict[str, Any]:
        """What was simulated beside recipe, layout and software."""
        workload = self.workload
        inputs: dict[str, Any] = {"schedule": workload.schedule, "steps": workload.steps}
        if isinstance(workload, Training):
            inputs |= {key: asdict(getattr(workload, key)) for key in ("model", "batch", "optimizer")}
        return inputs

    def _layout(self) -> dict[str, Any]:
        layout: dict[str, Any] = dict(describe(self.workload.layout))
        if isinstance(self.workload, Training):
            layout["microbatches"] = self.workload.microbatches
            layout["tokens_per_rank"] = self.simulation.tokens_per_rank
            layout["padded_tokens_per_rank"] = self.simulation.padded_tokens
            layout["reporting_stage"] = self.simulation.stage
            layout["slowest_stage"] = self.simulation.slowest_stage
        return layout

    def _software(self) -> dict[str, Any]:
        software = self.machine.software
        return {
            "set": software.name,
            "switches": {**software.switches, **software.counts, **software.kernels},
            "fused": sorted(software.fused),
            "overlap": {name: sorted(payloads) for name, payloads in sorted(software.overlaps.items())},
        }

    def _steps_seconds(self) -> list[float]:
        period = [
            run.picoseconds / PICOSECONDS_PER_SECOND for run, count in self.simulation.steps for _ in range(count)
        ]
        wanted = self.workload.steps or len(period)
        return [period[index % len(period)] for index in range(wanted)]

    @staticmethod
    def _kernel(kernel: metrics.KernelTotal) -> dict[str, Any]:
        row = asdict(kernel)
        row["total_seconds"] = row.pop("total_picoseconds") / PICOSECONDS_PER_SECOND
        return row

    def _defaults_used(self) -> list[str]:
        """Those of the files, but what the simulation found to hold instead."""
        found = self.simulation.defaults
        stated = (line for line in self._defaults if line.partition(": ")[0] not in found)
        return [*stated, *(f"{path}: {text}" for path, text in sorted(found.items())), *self._rates_assumed()]

    def _rates_assumed(self) -> list[str]:
        """Formats of this run of which the device does not say what share of the peak they sustain."""
        matrix, formats = self.machine.device.matrix, self.recipe.formats
        used = {"bf16", *((formats.x, formats.w, formats.g) if self.recipe.scaled else ())}
        rated = {name if name in matrix.macs_per_cycle else FORMATS.get(name).rate_as for name in used}
        unsaid = sorted((rated & set(matrix.macs_per_cycle)) - set(matrix.sustained_fraction))
        return [f"device.calibration.sustained_fraction.{name}: 1.0" for name in unsaid]

    def warnings(self) -> list[str]:
        """What a reader must know beside the numbers."""
        found = [*self.machine.device.notes, *self.workload.notes]
        simulation = self.simulation
        if simulation.padded_tokens > simulation.tokens_per_rank:
            added = simulation.padded_tokens - simulation.tokens_per_rank
            found.append(
                f"microbatch padded from {simulation.tokens_per_rank} to {simulation.padded_tokens} rows on a rank so "
                f"that every shard holds whole blocks ({added / simulation.padded_tokens:.2%} wasted)"
            )
        memory = simulation.memory
        if memory and not memory.fits:
            peak, capacity = format_bytes(memory.peak_bytes), format_bytes(memory.capacity_bytes)
            found.append(f"does not fit: {peak} of {capacity} device memory")
        return found

    # Python API

    def table(self) -> dict[str, list[Any]]:
        """Breakdown as columns: kind, seconds, fraction of the step."""
        breakdown = self.data["breakdown_seconds"]
        return {
            "kind": list(breakdown),
            "seconds": list(breakdown.values()),
            "fraction": [value / self.step_seconds if self.step_seconds else 0.0 for value in breakdown.values()],
        }

    def to_frame(self) -> Any:
        """`table` as a pandas DataFrame.

        Raises:
            ImportError: pandas is not installed (it comes with the extra ``notebook``).
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise ImportError("Result.to_frame needs pandas: pip install 'hwmodel[notebook]'") from None
        return pandas.DataFrame(self.table())

    def timeline(self) -> Any:
        """The period's first step as a Plotly figure."""
        return figure([Section(self.recipe.preset, self.trace, speedup=self.shown_speedup, detail=self.step_shown)])

    @property
    def process(self) -> str:
        """What a trace calls the run: the device, and the step where the steps of a period differ."""
        return ", ".join(filter(None, (self.machine.device.title, self.step_shown)))

    def save_trace(self, path: str | Path) -> None:
        """Write the period's first step for Perfetto, to a ``.json`` or ``.json.gz`` file."""
        write_trace(Path(path), self.trace, process=self.process, option="path")

    def _repr_html_(self) -> str:
        """The breakdown as a small table, for notebooks."""
        facts = f"{self.workload.name}, {self.recipe.preset} on {self.machine.device.title}"
        table = self.table()
        lines = "".join(
            f"<tr><td>{kind}</td><td>{1000 * seconds:,.3f}</td><td>{fraction:.1%}</td></tr>"
            for kind, seconds, fraction in zip(*table.values(), strict=True)
            if seconds
        )
        return (
            f"<p>{html.escape(facts)}: step {format_seconds(self.step_seconds)}, {self.speedup:.2f}x over BF16</p>"
            f"<table><tr><th></th><th>ms</th><th>of step</th></tr>{lines}</table>"
        )


def recipe_values(recipe: Recipe) -> dict[str, Any]:
    """The axes as plain values."""
    return asdict(recipe)


def peak_flops_per_second(machine: Machine, number_format: str) -> float:
    """Dense peak of the matrix units for a format (of its elements' format where the device lists none)."""
    device = machine.device
    rates = device.matrix.macs_per_cycle
    name = number_format if number_format in rates else FORMATS.get(number_format).rate_as
    return float(FLOPS_PER_MAC * device.matrix.cores * rates[name] * device.clock_hz)
