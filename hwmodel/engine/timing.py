"""Runs a plan in SimPy: streams as processes, one pool that shares the resources, time in integer picoseconds.

It knows no op, recipe, format or device; the resources are those the tasks name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simpy import Environment, Event
from simpy.core import EmptySchedule
from simpy.events import NORMAL

from hwmodel.device.sharing import FULL, rates
from hwmodel.engine.checks import check_plan
from hwmodel.engine.stuck import stuck_error
from hwmodel.engine.trace import SequenceTrace, Span, Trace
from hwmodel.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from hwmodel.schedules.plan import Demands, Plan, PlanSequence, Task


def run(plan: Plan) -> Trace:
    """What happens when ``plan`` runs: one span a task, in plan order, from time 0.

    A task starts when the one before it on its stream and all it waits for have ended. While tasks run, each goes at
    the rate ``sharing.rates`` gives; the rates change only when a task starts or ends, once an instant, after all that
    ends or starts at that instant has. Work and rates are integers: a task ends at the first picosecond at which its
    work is done.

    Tasks that start at the same instant do so in plan order. Cores that running tasks hold are not free; a task with
    variants takes, when it starts while cores are held, the first variant that fits the free ones, or the last if none
    does: it never waits for cores.

    Raises:
        ParameterError: a time is negative or not whole, a fraction is outside 1..``FULL``, a resource is named twice
            or shared by an unknown policy, or variants are out of order.
        SimulationError: tasks wait for what never ends; it says who waits for what.
    """
    check_plan(plan)
    environment = Environment()
    pool = _Pool(environment, plan)
    orders: dict[str, list[int]] = {}
    for index, task in enumerate(plan.tasks):
        orders.setdefault(task.stream, []).append(index)
    for order in orders.values():
        environment.process(_stream(pool, order))
    opening = environment.event()
    opening.callbacks.append(pool.settle)
    opening.succeed()
    events = _handle_all(environment)
    if -1 in pool.ends:
        raise stuck_error(plan, [end >= 0 for end in pool.ends], int(environment.now))
    spans = tuple(map(Span, range(len(plan.tasks)), pool.starts, pool.ends, pool.alone))
    return Trace(plan, spans, events)


def run_sequence(sequence: PlanSequence) -> SequenceTrace:
    """The traces of plans that run one after the other; equal plans are run once and repeats stay counts.

    Raises:
        ParameterError: a count is negative, or as ``run``.
        SimulationError: as ``run``.
    """
    traces: dict[Plan, Trace] = {}
    items = []
    for plan, count in sequence.items:
        if count < 0:
            raise ParameterError("items", f"counts must be >= 0, got {count} of plan '{plan.name}'")
        if plan not in traces:
            traces[plan] = run(plan)
        items.append((traces[plan], count))
    return SequenceTrace(sequence.name, tuple(items))


def _handle_all(environment: Environment) -> int:
    """Lets every event happen and counts them."""
    events = 0
    try:
        while True:
            environment.step()
            events += 1
    except EmptySchedule:
        return events


def _stream(pool: _Pool, order: Sequence[int]) -> Generator[Event, None, None]:
    """One in-order stream: each task waits for its turn and for others, then runs in the pool."""
    for index in order:
        if pool.missing[index]:
            yield pool.gate(index)
        yield pool.enter(index)


class _Running(Event):
    """A task in the pool, and its end as an event.

    Like SimPy's own timeout it has its value from the start; the pool schedules it once its end is known.
    """

    _ok = True
    _value = None

    def __init__(self, environment: Environment, index: int, callback: Callable[[_Running], None]) -> None:
        self.env = environment
        self.callbacks = [callback]
        self.index = index
        self.work = 0
        """Picoseconds alone × ``FULL`` still to do."""
        self.asks = 0
        """Number of its demands, the same for equal ones."""


class _Pool:
    """The tasks that run now and the rates at which they do.

    Tasks start only when others end, so from one instant to the next the rates hold, and each ``settle`` can schedule
    the ends that come next: nothing ever has to be taken back.
    """

    def __init__(self, environment: Environment, plan: Plan) -> None:
        tasks = plan.tasks
        self.starts = [-1] * len(tasks)
        self.ends = [-1] * len(tasks)
        self.alone = [task.alone_picoseconds for task in tasks]
        self.missing = [len(task.after) for task in tasks]
        """How many of the tasks each waits for have not ended."""
        self._environment = environment
        self._tasks = tasks
        self._cores = self._free_cores = plan.cores
        self._awaited_by: dict[int, list[int]] = {}
        for index, task in enumerate(tasks):
            for other in task.after:
                self._awaited_by.setdefault(other, []).append(index)  # one not in the plan never ends
        self._gates: dict[int, Event] = {}
        self._last_gate: Event | None = None
        self._entered: list[_Running] = []
        self._instant: list[_Running] = []
        """Entered tasks that take no time: they end before any other starts."""
        self._running: list[_Running] = []
        self._asks: dict[Demands, int] = {}
        self._users: list[tuple[tuple[int, int], ...]] = []
        names = sorted({name for demands in _distinct_demands(tasks) for name, _ in demands})
        self._resources = {name: number for number, name in enumerate(names)}
        policies = dict(plan.policies)
        self._policies = [policies.get(name, "fair") for name in names]
        self._rates: dict[tuple[int, ...], list[int]] = {}

    def gate(self, index: int) -> Event:
        """Happens when all that a task waits for has ended."""
        event = self._gates[index] = Event(self._environment)
        return event

    def enter(self, index: int) -> Event:
        """Starts a task at this instant; the event happens when it ends."""
        event = _Running(self._environment, index, self._end)
        takes_time = self.alone[index] or self._tasks[index].variants
        (self._entered if takes_time else self._instant).append(event)
        return event

    def settle(self, _: Event) -> None:
        """Closes an instant, when all that ends or starts at it has: starts what entered and schedules the next ends.

        It is called back by the last event of the instant. SimPy handles the events of one time in the order in which
        they were scheduled: the ends, and then the gates these opened.
        """
        if self._last_gate is not None:
            self._last_gate.callbacks.append(self.settle)
            self._last_gate = None
            return
        if self._instant:
            elapsed, due = 0, self._pass_instant()
        else:
            self._admit()
            if not self._running:
                return
            elapsed, due = self._share()
        for event in due:
            self._environment.schedule(event, NORMAL, elapsed)
        due[-1].callbacks.append(self.settle)

    def _end(self, event: _Running) -> None:
        """Records an end and opens the gates of tasks that waited for nothing else."""
        index = event.index
        self.ends[index] = int(self._environment.now)
        self._free_cores += self._tasks[index].cores_held
        for other in self._awaited_by.get(index, ()):
            self.missing[other] -= 1
            if not self.missing[other] and other in self._gates:
                self._last_gate = self._gates.pop(other).succeed()

    def _pass_instant(self) -> list[_Running]:
        """Starts the tasks that take no time."""
        due, self._instant = self._instant, []
        for event in due:
            self.starts[event.index] = int(self._environment.now)
            self._free_cores -= self._tasks[event.index].cores_held
        return due

    def _admit(self) -> None:
        """Starts what has entered, in plan order, each as the variant that fits."""
        now = int(self._environment.now)
        if len(self._entered) > 1:
            self._entered.sort(key=_by_index)
        for event in self._entered:
            index = event.index
            task = self._tasks[index]
            demands = task.demands
            if task.variants and self._free_cores != self._cores:
                fitting = (variant for variant in task.variants if variant.cores <= self._free_cores)
                variant = next(fitting, task.variants[-1])
                self.alone[index], demands = variant.alone_picoseconds, variant.demands
            self._free_cores -= task.cores_held
            self.starts[index] = now
            event.work = self.alone[index] * FULL
            asks = self._asks.get(demands)
            event.asks = asks if asks is not None else self._new_asks(demands)
        self._running += self._entered
        self._entered = []

    def _new_asks(self, demands: Demands) -> int:
        """Numbers demands not met before."""
        self._asks[demands] = len(self._users)
        self._users.append(tuple((self._resources[name], fraction) for name, fraction in demands))
        return self._asks[demands]

    def _share(self) -> tuple[int, list[_Running]]:
        """Does the work of all running tasks until the first ends: the picoseconds until then, and what ends."""
        key = tuple([event.asks for event in self._running])
        granted = self._rates.get(key)
        if granted is None:
            granted = self._rates[key] = rates([self._users[asks] for asks in key], self._policies)
        running = list(zip(self._running, granted, strict=True))
        elapsed = min([-(-event.work // rate) for event, rate in running])
        due: list[_Running] = []
        going: list[_Running] = []
        for event, rate in running:
            event.work -= rate * elapsed
            (going if event.work > 0 else due).append(event)
        self._running = going
        return elapsed, due


def _by_index(event: _Running) -> int:
    return event.index


def _distinct_demands(tasks: Sequence[Task]) -> set[Demands]:
    variants = [variant.demands for task in tasks if task.variants for variant in task.variants]
    return {task.demands for task in tasks}.union(variants)
