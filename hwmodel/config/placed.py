"""What is refused once files are loaded, as mistakes in what these files say."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hwmodel.config.device import PREFIX
from hwmodel.config.device_schema import DeviceSchema
from hwmodel.config.document import Document
from hwmodel.config.facts import with_prefix
from hwmodel.config.problems import field_path, problem_at
from hwmodel.errors import ConfigError, ParameterError, Problem, RefusedError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hwmodel.config.document import KeyPath
    from hwmodel.errors import HwModelError

_OF_A_NODE = ("inputs", "params")


@dataclass(frozen=True, slots=True)
class Written:
    """The documents behind one run; a device made in Python has none."""

    workload: Document
    device: Document | None = None
    software: Document | None = None

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Give what is refused inside its file and line, where a file says what it follows from.

        Raises:
            ConfigError: instead of what was refused.
        """
        try:
            yield
        except (ParameterError, RefusedError, UnsupportedError) as error:
            placed = self.placed(error)
            if placed is None:
                raise
            raise placed from error

    def placed(self, error: HwModelError) -> ConfigError | None:
        """The mistakes that ``error`` is, or None if no file says any of what it follows from."""
        if isinstance(error, UnsupportedError):
            reasons = error.grouped()
        elif isinstance(error, RefusedError):
            reasons = tuple((path, "", message) for path, message in error.reasons)
        elif isinstance(error, ParameterError):
            reasons = ((error.field, "", error.message),)
        else:
            return None
        places = [self._place(path, node) for path, node, _ in reasons]
        if not any(places):
            return None
        problems = [
            Problem(path, None, message) if place is None else self._problem(*place, message)
            for place, (path, _, message) in zip(places, reasons, strict=True)
        ]
        return ConfigError(self.workload.source, tuple(problems))

    def _problem(self, document: Document, path: KeyPath, message: str) -> Problem:
        problem = problem_at(document, path, message)
        (problem,) = with_prefix((problem,), PREFIX) if document is self.device else (problem,)
        return replace(problem, source=problem.source or document.source)

    def _place(self, path: str, node: str) -> tuple[Document, KeyPath] | None:
        """The document that says a value, and the value's path there."""
        steps = field_path((), path)
        head = steps[0] if steps else ""
        if head in _OF_A_NODE:
            return self._of_op(node, steps)
        if head == "software":
            return self._of_software(str(steps[-1]))
        if head in DeviceSchema.model_fields:
            return None if self.device is None else (self.device, steps)
        return (self.workload, steps) if head in self.workload.data else None

    def _of_op(self, node: str, steps: KeyPath) -> tuple[Document, KeyPath] | None:
        """A value of the op that is called ``node``, or the listed tensor that it reads there."""
        document = self.workload
        ops = document.get(("ops",))
        for index, op in enumerate(ops if isinstance(ops, tuple) else ()):
            assert isinstance(op, dict)  # the workload is loaded
            if node not in (op.get("name"), *op.get("outputs", ())[:1]):
                continue
            at: KeyPath = ("ops", index, *steps)
            tensor: KeyPath = ("tensors", str(document.get(at)), "format")
            return document, tensor if steps[0] == "inputs" and document.get(tensor) is not None else at
        return None

    def _of_software(self, entry: str) -> tuple[Document, KeyPath] | None:
        """An entry of the software set: as the workload changes it, or as the set's file has it."""
        if self.workload.get(("software", entry)) is not None:
            return self.workload, ("software", entry)
        return None if self.software is None else (self.software, ("kernels", entry))
