"""From YAML text to plain values with lines; with ``loader`` the only importer of PyYAML.

Numbers are read as YAML 1.2 reads them, with the leading zeros of its JSON schema: ``1e12`` is a float, ``010`` and
``1:30`` are text. Only ``true``, ``false``, ``null`` and ``~`` are words with a meaning. ``.inf``, ``.nan`` and numbers
beyond a float stay text, so no infinity comes in. The parser's events are walked here, because PyYAML's own
composer resolves YAML 1.1, lets a second equal key win, and recurses without a bound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

import yaml

from hwmodel.config.document import KeyPath, WrittenFloat, WrittenInt, dotted
from hwmodel.errors import ConfigError, Problem

NODE_LIMIT = 100_000
"""Most values a file may hold, aliases written out."""
DEPTH_LIMIT = 60
"""Most levels of nesting."""
_DIGIT_LIMIT = 400

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_BASED_INT = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, object] = {"": None, "~": None, "null": None, "true": True, "false": False}
_SURROGATE = re.compile("[\ud800-\udfff]")


def resolve_scalar(text: str) -> object:
    """The value of a plain scalar: None, a bool, an int, a finite float, or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _DIGIT_LIMIT:
        return text
    if _INT.fullmatch(text):
        return int(text) if str(int(text)) == text else WrittenInt(int(text), text)
    if _BASED_INT.fullmatch(text):
        return WrittenInt(int(text, 0), text)
    if _FLOAT.fullmatch(text):
        return _resolve_float(text)
    return text


def compose(source: str, text: str) -> tuple[object, dict[KeyPath, int]]:
    """The one document in ``text``, with the line of each path.

    Raises:
        ConfigError: every mistake up to the first that stops the parser.
    """
    composer = _Composer(source, _events(source, text))
    try:
        root = composer.document()
    except ConfigError as error:
        composer.problems.extend(error.problems)
    if composer.problems:
        raise ConfigError(source, tuple(sorted(composer.problems, key=lambda problem: problem.line or 0)))
    lines: dict[KeyPath, int] = {}
    return _written_out(root, (), root.line, lines), lines


@dataclass(slots=True)
class _Node:
    """One value as composed; an alias shares the node of its anchor."""

    line: int
    value: object = None
    items: list[tuple[str | int, int, _Node]] | None = None
    is_mapping: bool = False
    size: int = 1
    height: int = 0


@dataclass(slots=True)
class _Composer:
    """Builds nodes from parser events, noting problems on the way."""

    source: str
    events: Iterator[yaml.Event]
    problems: list[Problem] = field(default_factory=list)
    anchors: dict[str, _Node | None] = field(default_factory=dict)

    def document(self) -> _Node:
        """The root of the only document."""
        next(self.events)
        if isinstance(next(self.events), yaml.StreamEndEvent):
            self.stop((), 1, "is empty, must be a mapping")
        root = self.node(next(self.events), (), None)
        next(self.events)
        event = next(self.events)
        if not isinstance(event, yaml.StreamEndEvent):
            self.note((), _line(event), "a second document starts here, must be one")
        return root

    def node(self, event: yaml.Event, path: KeyPath, line: int | None) -> _Node:
        """The node that starts at ``event``; its line is that of its key where it has one."""
        place = _line(event) if line is None else line
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, path)
        if len(path) > DEPTH_LIMIT:
            self.stop(path[:3], _line(event), f"nested deeper than {DEPTH_LIMIT} levels")
        assert isinstance(event, yaml.NodeEvent)
        anchor = event.anchor
        if anchor is not None:
            self.anchors[anchor] = None
        node = self.fresh(event, path, place)
        if anchor is not None:
            self.anchors[anchor] = node
        return node

    def fresh(self, event: yaml.Event, path: KeyPath, line: int) -> _Node:
        """A scalar, sequence or mapping."""
        tag = getattr(event, "tag", None)
        if tag is not None:
            self.note(path, _line(event), f"tags are not read, got {tag.replace('tag:yaml.org,2002:', '!!')!r}")
        if isinstance(event, yaml.ScalarEvent):
            value = resolve_scalar(event.value) if event.implicit[0] else event.value
            if isinstance(value, str) and _SURROGATE.search(value):
                self.note(path, _line(event), "holds half of a surrogate pair, which is not text")
            return _Node(line, value)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(path, line)
        return self.mapping(path, line)

    def sequence(self, path: KeyPath, line: int) -> _Node:
        """The rest of a sequence."""
        node = _Node(line, items=[])
        assert node.items is not None
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            index = len(node.items)
            self.add(node, path, _line(event), (index, self.node(event, (*path, index), None)))
        return node

    def mapping(self, path: KeyPath, line: int) -> _Node:
        """The rest of a mapping."""
        node = _Node(line, items=[], is_mapping=True)
        first_lines: dict[str, int] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key_line = _line(event)
            key = self.key(event, path)
            child = self.node(next(self.events), (*path, key), key_line)
            if key in first_lines:
                self.note((*path, key), key_line, f"written twice, first at line {first_lines[key]}")
                continue
            first_lines[key] = key_line
            self.add(node, path, key_line, (key, child))
        return node

    def key(self, event: yaml.Event, path: KeyPath) -> str:
        """A key, which must be text."""
        node = self.node(event, (*path, "?"), None)
        if node.items is not None:
            self.note(path, _line(event), f"a key must be text, got a {'mapping' if node.is_mapping else 'sequence'}")
            return f"? at {_line(event)}"
        if isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == "<<":
            self.note(path, _line(event), "merge keys are not read, got '<<'")
        if not isinstance(node.value, str):
            seen = event.value if isinstance(event, yaml.ScalarEvent) else node.value
            self.note(path, _line(event), f"a key must be text, got {seen}; write '{seen}' in quotes")
            return f"{seen}"
        return node.value

    def alias(self, event: yaml.AliasEvent, path: KeyPath) -> _Node:
        """The node an alias stands for."""
        name = event.anchor
        assert name is not None
        if name not in self.anchors:
            self.stop(path, _line(event), f"no anchor '&{name}' before this alias")
        node = self.anchors[name]
        if node is None:
            self.stop(path, _line(event), f"alias '*{name}' lies inside the value it stands for")
        if len(path) + node.height > DEPTH_LIMIT:
            self.stop(path[:3], _line(event), f"nested deeper than {DEPTH_LIMIT} levels with its aliases written out")
        return node

    def add(self, node: _Node, path: KeyPath, line: int, entry: tuple[str | int, _Node]) -> None:
        """Put an entry into the ``node`` at ``path``."""
        step, child = entry
        assert node.items is not None
        node.items.append((step, line, child))
        node.size += child.size
        node.height = max(node.height, child.height + 1)
        if node.size > NODE_LIMIT:
            self.stop(path, line, f"holds over {NODE_LIMIT} values with its aliases written out")

    def note(self, path: KeyPath, line: int, message: str) -> None:
        """Remember a problem and go on."""
        self.problems.append(Problem(dotted(path), line, message))

    def stop(self, path: KeyPath, line: int, message: str) -> NoReturn:
        """Give up at a problem."""
        raise ConfigError(self.source, (Problem(dotted(path), line, message),))


def _written_out(node: _Node, path: KeyPath, line: int, lines: dict[KeyPath, int]) -> object:
    """Plain values with aliases written out, so that no two places share a dict."""
    lines[path] = line
    if node.items is None:
        return node.value
    values = {step: _written_out(child, (*path, step), at, lines) for step, at, child in node.items}
    return values if node.is_mapping else tuple(values.values())


def _events(source: str, text: str) -> Iterator[yaml.Event]:
    """Parser events; syntax mistakes become ours."""
    try:
        yield from yaml.parse(text, Loader=yaml.SafeLoader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"character U+{ord(text[error.position]):04X} is not allowed in YAML"
        raise ConfigError(source, (Problem("", line, message),)) from None
    except yaml.MarkedYAMLError as error:
        raise ConfigError(source, (_syntax_problem(error, len(text.splitlines())),)) from None
    except (yaml.YAMLError, ValueError, OverflowError):
        message = "not YAML: a character code or version in it is out of range"
        raise ConfigError(source, (Problem("", None, message),)) from None


def _syntax_problem(error: yaml.MarkedYAMLError, line_count: int) -> Problem:
    """What the parser says, at a line that exists, with the line where the broken thing began."""
    place = None if (mark := error.problem_mark) is None else mark.line + 1
    began = None if (mark := error.context_mark) is None else mark.line + 1
    context = error.context
    if context is not None and began is not None and began != place:
        context = f"{context} from line {began}"
    said = ", ".join(part for part in (context, error.problem) if part)
    return Problem("", None if place is None else min(place, max(line_count, 1)), f"not YAML: {said}")


def _line(event: yaml.Event) -> int:
    """Line of an event, counted from 1."""
    assert event.start_mark is not None
    return event.start_mark.line + 1


def _resolve_float(text: str) -> object:
    """The float, if it is finite."""
    value = float(text)
    if not math.isfinite(value):
        return text
    return value if repr(value) == text else WrittenFloat(value, text)
