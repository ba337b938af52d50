"""Edits change one path, before validation, and their mistakes say ``--set``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.config.document import Document, KeyPath
from hwmodel.config.edits import SET, edit, edit_all
from hwmodel.config.loader import parse
from hwmodel.errors import ConfigError

TEXT = """\
recipe: delayed
batch: {sequence: 4096, micro: 1}
layers:
- {gain: 1}
- {gain: 2}
schedule:
"""
SHORTHANDS = {"recipe": "preset"}
STEPS = st.sampled_from(["a", "b", "c"])


def document() -> Document:
    return parse(TEXT, source="w.yaml")


def refusal(path: str, value: object) -> str:
    with pytest.raises(ConfigError) as caught:
        edit(document(), path, value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("5", 5),
        ("1e12", 1e12),
        ("010", "010"),
        ("true", True),
        ("none", "none"),
        ("null", None),
        ("", None),
        (" 2 TB/s ", "2 TB/s"),
        ("[1, a, 2 TB/s]", (1, "a", "2 TB/s")),
        ("[[1,2],[]]", ((1, 2), ())),
        ("'5'", "5"),
        ("a: b", "a: b"),
        ("# no comment", "# no comment"),
        ("*x", "*x"),
        ("!tag", "!tag"),
        ("- x", "- x"),
        (5, 5),
        ([1, [2]], (1, (2,))),
        (None, None),
    ],
)
def test_values_are_yaml_scalars_or_flow_sequences(value: object, read: object) -> None:
    edited = edit(document(), "batch.micro", value)
    assert edited.get(("batch", "micro")) == read
    assert isinstance(edited.get(("batch", "micro")), type(read))


def test_the_original_stays_as_it_is() -> None:
    original = document()
    edited = edit(original, "layers.1.gain", "7")
    assert edited.data["layers"] == ({"gain": 1}, {"gain": 7})
    assert original == document()


def test_edited_paths_come_from_set_and_others_keep_their_line() -> None:
    edited = edit(document(), "batch.sequence", "8192")
    assert edited.where(("batch", "sequence")) == (SET, None)
    assert edited.where(("batch", "micro")) == ("w.yaml", 2)
    assert edited.where(("batch", "missing")) == ("w.yaml", 2)
    replaced = edit(document(), "layers", "[1, 2]")
    assert replaced.where(("layers", 1)) == (SET, None)


def test_missing_and_empty_mappings_are_made() -> None:
    edited = edit(edit(document(), "schedule.amax", "hidden"), "device.resources.hbm.x", "2 TB/s")
    assert edited.data["schedule"] == {"amax": "hidden"}
    assert edited.data["device"] == {"resources": {"hbm": {"x": "2 TB/s"}}}
    assert edited.where(("device",)) == (SET, None)
    assert edited.where(("schedule",)) == ("w.yaml", 6)


def test_a_shorthand_is_written_out_and_keeps_its_line() -> None:
    edited = edit(document(), "recipe.margin_bits", "3", shorthands=SHORTHANDS)
    assert edited.data["recipe"] == {"preset": "delayed", "margin_bits": 3}
    assert edited.where(("recipe", "preset")) == ("w.yaml", 1)
    again = edit(
        edit(document(), "recipe", "block", shorthands=SHORTHANDS), "recipe.timing", "current", shorthands=SHORTHANDS
    )
    assert again.data["recipe"] == {"preset": "block", "timing": "current"}
    assert again.where(("recipe", "preset")) == (SET, None)


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("recipe.margin_bits", "3", "'recipe' is 'delayed' and has no keys under it"),
        ("batch.micro.x.y", "3", "'batch.micro' is 1 and has no keys under it"),
        ("layers.2.gain", "3", "'layers' is a sequence of 2, an index must be 0 to 1, got '2'"),
        ("layers.-1", "3", "'layers' is a sequence of 2, an index must be 0 to 1, got '-1'"),
        ("layers.first", "3", "'layers' is a sequence of 2, an index must be 0 to 1, got 'first'"),
        ("layers.٣", "3", "'layers' is a sequence of 2, an index must be 0 to 1, got '٣'"),
        ("a..b", "3", "a path must be keys joined by dots"),
        (".a", "3", "a path must be keys joined by dots"),
        ("a. b", "3", "a path must be keys joined by dots"),
        ("steps", "{a: 1}", "the value must be a scalar or a sequence such as [a,b], got {'a': 1}"),
        ("steps", "[a: 1]", "the value must be a scalar or a sequence such as [a,b], got {'a': 1}"),
        ("steps", "a\0b", "the value must be printable text, got 'a\\x00b'"),
        ("steps", "\udcff", "the value must be printable text, got '\\udcff'"),
        ("steps", 1j, "the value must be a scalar or a sequence such as [a,b], got 1j"),
        ("steps", "[!x a]", "tags are not read, got '!x', got '[!x a]'"),
    ],
)
def test_refusals_by_their_text(path: str, value: object, text: str) -> None:
    assert refusal(path, value) == f"--set: {path}: {text}"


def test_an_open_bracket_or_quote_is_refused() -> None:
    assert refusal("steps", "[1,2").startswith("--set: steps: not YAML: while parsing a flow sequence")
    assert refusal("steps", "[1] 2").startswith("--set: steps: not YAML: ")
    assert refusal("steps", "'a").startswith("--set: steps: not YAML: while scanning a quoted scalar")
    assert refusal("", "1") == "--set: a path must be keys joined by dots, got no key"
    assert refusal(".".join("a" * 5000), "1").endswith("a path must be keys joined by dots")


def test_an_empty_sequence_has_no_index() -> None:
    with pytest.raises(ConfigError, match=r"^--set: a\.0: 'a' is a sequence of 0, no index is allowed, got '0'$"):
        edit(parse("a: []\n", source="w.yaml"), "a.0", "1")


def test_assignments_are_applied_in_turn() -> None:
    edited = edit_all(document(), ["steps=3", "steps=4", "name=a=b"])
    assert (edited.data["steps"], edited.data["name"]) == (4, "a=b")


def test_all_mistakes_of_assignments_are_reported() -> None:
    with pytest.raises(ConfigError) as caught:
        edit_all(document(), ["steps", "batch.micro.x=1", "fine=1"])
    assert str(caught.value).splitlines() == [
        "--set: must be path=value, got 'steps'",
        "--set: batch.micro.x: 'batch.micro' is 1 and has no keys under it",
    ]


@given(st.lists(st.tuples(st.lists(STEPS, min_size=1, max_size=4), st.integers()), max_size=8))
def test_edits_do_what_nested_assignment_does(edits: list[tuple[list[str], int]]) -> None:
    edited = Document("w.yaml", {})
    plain: dict[str, object] = {}
    for steps, value in edits:
        if _assign(plain, steps, value):
            edited = edit(edited, ".".join(steps), value)
        else:
            with pytest.raises(ConfigError, match="has no keys under it"):
                edit(edited, ".".join(steps), value)
    assert edited.data == plain
    assert all(source == SET for path, source in _places(edited))


def _assign(plain: dict[str, object], steps: list[str], value: int) -> bool:
    """The oracle: assignment into nested dicts; False where a number is in the way."""
    here: object = plain
    for length in range(1, len(steps)):
        there = plain
        for step in steps[:length]:
            held = there.get(step)
            if held is None:
                break
            if not isinstance(held, dict):
                return False
            there = held
    here = plain
    for step in steps[:-1]:
        assert isinstance(here, dict)
        here = here.setdefault(step, {})
    assert isinstance(here, dict)
    here[steps[-1]] = value
    return True


def _places(edited: Document) -> list[tuple[KeyPath, str]]:
    """Every path below the root with its source."""
    found: list[tuple[KeyPath, str]] = []

    def visit(value: object, path: KeyPath) -> None:
        if path:
            found.append((path, edited.where(path)[0]))
        for key, item in value.items() if isinstance(value, dict) else ():
            visit(item, (*path, key))

    visit(edited.data, ())
    return found
