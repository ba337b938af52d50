"""Simulates the steps of one period of a recipe and keeps the traces of the device that decides the step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hwmodel.engine.trace import SequenceTrace, Trace
from hwmodel.graph import Collective, Graph, Program, Repeat
from hwmodel.recipes.recipe import Recipe, StepKind, step_kinds
from hwmodel.recipes.timings import slice_range
from hwmodel.simulation.memory import Memory, training_memory
from hwmodel.workload import HandGraph, Training, Workload
from hwmodel.workload.hand import lower_hand
from hwmodel.workload.stages import Stage, stages
from hwmodel.workload.training import (
    StageGraphs,
    bubble_picoseconds,
    exposed_picoseconds,
    lower_stage,
    padded_tokens,
    signature,
    sliced_rows,
    tail,
    tail_traffic,
    waiting,
)

if TYPE_CHECKING:
    from hwmodel.simulation.machine import Machine


@dataclass(frozen=True, slots=True)
class StepRun:
    """One kind of step on one pipeline rank: of several, the slowest."""

    trace: SequenceTrace
    stage: int
    """Pipeline rank whose trace this is."""
    ranks: tuple[int, ...] = (0,)
    """Ranks that hold the same and so take the same time."""
    others: tuple[StepRun, ...] = ()
    """The same step on the other kinds of rank, each with its wait for the slowest at its end."""

    @property
    def picoseconds(self) -> int:
        """Length of the step."""
        return self.trace.makespan_picoseconds

    def on(self, stage: int) -> StepRun:
        """The step as pipeline rank ``stage`` sees it; just as long."""
        return next((run for run in (self, *self.others) if stage in run.ranks), self)


@dataclass(frozen=True, slots=True)
class Simulation:
    """One workload under one recipe: the first step, the steps of a period, and what the device holds."""

    recipe: Recipe
    steps: tuple[tuple[StepRun, int], ...]
    """Runs of equal steps of one steady period, in order, with how many there are."""
    first: StepRun
    """The first step of all (a current-scaling pass where there is no history yet)."""
    memory: Memory | None
    slowest_stage: int = 0
    """Pipeline rank that decides the period's first step."""
    tokens_per_rank: int = 0
    padded_tokens: int = 0
    defaults: Mapping[str, str] = field(default_factory=dict)

    @property
    def stage(self) -> int:
        """Pipeline rank whose traces these are."""
        return self.steps[0][0].stage

    def on(self, stage: int) -> Simulation:
        """The same steps as pipeline rank ``stage`` sees them."""
        return replace(self, steps=tuple((run.on(stage), count) for run, count in self.steps))

    @property
    def period_steps(self) -> int:
        """Steps in the period."""
        return sum(count for _, count in self.steps)

    @property
    def period_picoseconds(self) -> int:
        """Length of the period."""
        return sum(run.picoseconds * count for run, count in self.steps)


def simulate(workload: Workload, recipe: Recipe, machine: Machine) -> Simulation:
    """Run ``workload`` under ``recipe`` on ``machine``."""
    return _training(workload, recipe, machine) if isinstance(workload, Training) else _hand(workload, recipe, machine)


def _runs(recipe: Recipe) -> tuple[tuple[StepKind, int], ...]:
    """Runs of equal steps in one period."""
    runs: list[tuple[StepKind, int]] = []
    for kind in step_kinds(recipe):
        if runs and runs[-1][0] == kind:
            runs[-1] = (kind, runs[-1][1] + 1)
        else:
            runs.append((kind, 1))
    return tuple(runs)


def _hand(workload: HandGraph, recipe: Recipe, machine: Machine) -> Simulation:
    def run(kind: StepKind) -> StepRun:
        graph = lower_hand(workload, recipe, machine.target, kind)
        return StepRun(machine.run(Program(workload.name, (graph,)), workload.schedule), 0)

    steps = tuple((run(kind), count) for kind, count in _runs(recipe))
    first = run(StepKind(cold_start=True)) if recipe.keeps_state else steps[0][0]
    return Simulation(recipe, steps, first, None)


def _training(workload: Training, recipe: Recipe, machine: Machine) -> Simulation:
    distinct = _distinct_stages(workload, recipe)
    steps: list[tuple[StepRun, int]] = []
    done: dict[object, StepRun] = {}
    memory: Memory | None = None
    defaults: dict[str, str] = {}
    for kind, count in _runs(recipe):
        key = _timed_alike(workload, recipe, kind)
        if key not in done:
            runs = []
            for stage, ranks in distinct:
                graphs = lower_stage(workload, recipe, machine.target, stage, kind)
                runs.append(replace(_step(workload, graphs, machine), ranks=ranks))
                defaults.update(graphs.defaults)
                held = training_memory(workload, graphs, stage.index, machine.device.memory_bytes)
                memory = held if memory is None or held.peak_bytes > memory.peak_bytes else memory
            done[key] = _slowest(runs, workload, machine)
        steps.append((done[key], count))
    first = steps[0][0]
    if recipe.keeps_state:
        stage = next(stage for stage, _ in distinct if stage.index == first.stage)
        cold = lower_stage(workload, recipe, machine.target, stage, StepKind(cold_start=True))
        first = _step(workload, cold, machine)
    tokens = workload.batch.micro_sequences * workload.batch.sequence // workload.layout.cp
    return Simulation(
        recipe,
        tuple(steps),
        first,
        memory,
        slowest_stage=steps[0][0].stage,
        tokens_per_rank=tokens,
        padded_tokens=padded_tokens(workload, recipe),
        defaults=defaults,
    )


def _timed_alike(workload: Training, recipe: Recipe, kind: StepKind) -> object:
    """Equal for steps that take the same time: slices count by how many rows of each tensor they have."""
    if recipe.amax.sampling != "split" or not recipe.keeps_state:
        return kind
    pieces = recipe.interval_steps or 1
    ranges = (slice_range(rows, pieces, kind.slice_index) for rows in sliced_rows(workload, recipe))
    return tuple(stop - start for start, stop in ranges)


def _distinct_stages(workload: Training, recipe: Recipe) -> tuple[tuple[Stage, tuple[int, ...]], ...]:
    """The first pipeline rank of each kind with all of that kind: ranks whose pieces differ only in layer numbers."""
    found: dict[object, list[Stage]] = {}
    for stage in stages(workload.model.layers, workload.layout):
        found.setdefault(signature(workload, recipe, stage), []).append(stage)
    return tuple((alike[0], tuple(stage.index for stage in alike)) for alike in found.values())


def _slowest(runs: list[StepRun], workload: Training, machine: Machine) -> StepRun:
    """The rank that decides the step; the others wait for it."""
    slowest = max(runs, key=lambda run: run.picoseconds)
    others = []
    for run in runs:
        if run is not slowest:
            wait = machine.run(Program("wait", (waiting(slowest.picoseconds - run.picoseconds),)), workload.schedule)
            others.append(replace(run, trace=SequenceTrace(run.trace.name, (*run.trace.items, *wait.items))))
    return replace(slowest, others=tuple(others))


def _step(workload: Training, graphs: StageGraphs, machine: Machine) -> StepRun:
    """Weights once, every microbatch, then the tail whose times follow from the microbatch's."""
    body = Repeat(Program("microbatch", (graphs.microbatch,)), workload.microbatches)
    most = machine.run(Program("step", (graphs.weights, body)), workload.schedule)
    end = _tail(workload, graphs, most.items[-1][0], machine)
    last = machine.run(Program("tail", (end,)), workload.schedule)
    name = f"{workload.name}, stage {graphs.stage.index}"
    return StepRun(SequenceTrace(name, (*most.items, *last.items)), graphs.stage.index)


def _tail(workload: Training, graphs: StageGraphs, body: Trace, machine: Machine) -> Graph:
    forward = max(
        (
            span.end_picoseconds
            for span in body.spans
            if body.plan.tasks[span.task].name in graphs.forward
            and not body.plan.tasks[span.task].stream.startswith("comm")
        ),
        default=0,
    )
    makespan = body.makespan_picoseconds
    traffic = tail_traffic(workload, graphs.parameters)
    send = max((task.alone_picoseconds for task in body.plan.tasks if task.info.op == "send_recv"), default=0)

    def exposed(transfer: Collective, overlap: str, passing: int) -> int:
        taken = machine.timer.time(transfer).picoseconds
        if not machine.target.overlap(overlap, "plain"):
            return taken
        return exposed_picoseconds(taken, passing, workload, layers=len(graphs.stage.layers))

    return tail(
        workload,
        graphs.parameters,
        gradients=exposed(traffic.gradients, "gradient_reduce", makespan - forward),
        gathered=exposed(traffic.parameters, "parameter_gather", forward),
        bubble=bubble_picoseconds(makespan, send, workload),
    )
