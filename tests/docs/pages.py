"""Pages with marked examples and tables: read, run through the command line in this process, compared, rewritten.

A page marks what is held to the code by a comment in the line before it:

- ``<!-- example: all -->``: a console block; each ``$ hwmodel ...`` is run and all it prints is shown.
- ``<!-- example: top, Recipes -->``: only what stands above the first heading and the section of that heading are
  shown, with ``...`` where something is left out. ``quiet`` shows nothing.
- ``<!-- table: NAME -->``: a Markdown table that a function of the tests writes.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from hwmodel.cli import app

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).parent.parent.parent
COLUMNS = "100"
PROMPT = "$ hwmodel "
LEFT_OUT = "..."
ALL = "all"
TOP = "top"
QUIET = "quiet"
_EXAMPLE = re.compile(r"<!-- example: (?P<shown>[^\n]*) -->\n```console\n(?P<body>.*?)```\n", re.DOTALL)
_TABLE = re.compile(r"<!-- table: (?P<name>[^\n]*) -->\n\n(?P<body>(?:\|[^\n]*\n)*)")


@dataclass(frozen=True, slots=True)
class Example:
    """One marked console block."""

    page: Path
    shown: tuple[str, ...]
    body: str

    @property
    def commands(self) -> tuple[str, ...]:
        """What is typed behind the prompt."""
        return tuple(line.removeprefix(PROMPT) for line in self.body.splitlines() if line.startswith(PROMPT))


def examples(page: Path) -> list[Example]:
    """The marked blocks of a page."""
    found = _EXAMPLE.finditer(page.read_text(encoding="utf-8"))
    return [Example(page, tuple(part.strip() for part in m["shown"].split(",")), m["body"]) for m in found]


def printed(command: str) -> str:
    """What ``hwmodel COMMAND`` prints on a terminal of 100 columns without colour, without trailing spaces."""
    environment = {"COLUMNS": COLUMNS, "NO_COLOR": "1", "FORCE_COLOR": None, "TERM": "xterm"}
    done = CliRunner().invoke(app, shlex.split(command), env=environment, prog_name="hwmodel")
    assert done.exit_code == 0, f"hwmodel {command}: exit code {done.exit_code}\n{done.output}"
    return without_trailing_spaces(done.stdout)


def without_trailing_spaces(text: str) -> str:
    """The same lines, each and the whole without spaces at the end."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()).strip("\n") + "\n"


def block(example: Example, run: Callable[[str], str] = printed) -> str:
    """The block as it should be: each command with what it prints now, cut down to what the page shows of it."""
    parts = []
    for command in example.commands:
        output = run(command)
        parts.append(PROMPT + command + "\n" + "".join(f"{line}\n" for line in excerpt(output, example.shown)))
    return "".join(parts)


def excerpt(output: str, shown: Sequence[str]) -> list[str]:
    """The sections of an output named in ``shown``, with a mark where others are left out."""
    if QUIET in shown:
        return []
    if ALL in shown:
        return output.splitlines()
    wanted = set(shown)
    lines: list[str] = []
    for name, section in sections(output):
        if name in wanted:
            wanted.discard(name)
            lines += section
        elif lines and lines[-1] != LEFT_OUT:
            lines += [*([] if lines[-1] == "" else [""]), LEFT_OUT]
    assert not wanted, f"the output has no section {', '.join(sorted(wanted))}"
    return lines


def sections(output: str) -> list[tuple[str, list[str]]]:
    """The output cut at its headings: (heading, lines with it); what stands above the first is 'top'."""
    found: list[tuple[str, list[str]]] = [(TOP, [])]
    blank = False
    for line in output.splitlines():
        if blank and line and not line.startswith(" "):
            found.append((line, [""]))
        found[-1][1].append(line)
        blank = not line
    for _, lines in found:
        while lines and not lines[-1]:
            lines.pop()
    return found


def rewrite_examples(page: Path) -> None:
    """Write what the commands print now into the page."""
    text = page.read_text(encoding="utf-8")
    for example in examples(page):
        new = block(example)
        assert text.count(example.body) == 1
        text = text.replace(example.body, new)
    page.write_text(text, encoding="utf-8")


def tables(page: Path) -> dict[str, str]:
    """The marked tables of a page by name."""
    return {found["name"]: found["body"] for found in _TABLE.finditer(page.read_text(encoding="utf-8"))}


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table of a heading and lines."""
    head, *lines = rows
    return "".join("| " + " | ".join(line) + " |\n" for line in (head, ["---"] * len(head), *lines))


def rewrite_table(page: Path, name: str, table: str) -> None:
    """Write a table into the page in place of the marked one."""
    text = page.read_text(encoding="utf-8")
    new = _TABLE.sub(lambda found: _with_body(found, table) if found["name"] == name else found[0], text)
    page.write_text(new, encoding="utf-8")


def _with_body(found: re.Match[str], table: str) -> str:
    return f"<!-- table: {found['name']} -->\n\n{table}"
