"""The loader reads YAML 1.2 strictly, knows every line, and refuses the rest by file and line."""

from __future__ import annotations

import contextlib
import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.config.compose import DEPTH_LIMIT, NODE_LIMIT
from hwmodel.config.document import Document, KeyPath, WrittenFloat, WrittenInt, written
from hwmodel.config.loader import SIZE_LIMIT_BYTES, load, merge, parse
from hwmodel.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = st.text(
    st.characters(
        min_codepoint=0x20, max_codepoint=0x2FF, exclude_characters="\x7f\x85", categories=["L", "N", "P", "S", "Zs"]
    ),
    max_size=8,
)
ODD = ["1e400", "695e0514", "0b1", "2024-01-02", "1.2.3", "+", ".", "1e", "=", "٣", "2 TB/s", "64 GiB", "9" * 401]
NOT_FINITE = [".inf", "-.inf", ".nan", "inf", "nan"]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))
MAPPINGS = st.dictionaries(TEXT, VALUES, max_size=5)


def refusal(content: bytes | str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(content, source="w.yaml")
    return str(caught.value)


def one(text: str) -> object:
    return parse(f"key: {text}\n", source="w.yaml").data["key"]


def frozen(value: object) -> object:
    if isinstance(value, dict):
        return {key: frozen(item) for key, item in value.items()}
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def paths(value: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    yield path
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in steps:
        yield from paths(item, (*path, step))


class Writer:
    """The oracle for lines: writes block style, everything quoted, and notes the line of each path."""

    def __init__(self, data: dict[str, object]) -> None:
        self.written: list[str] = [""]
        self.lines: dict[KeyPath, int] = {}
        self.put(data, (), "", "")

    def put(self, value: object, path: KeyPath, indent: str, opening: str) -> None:
        """Write ``value`` after ``opening``, which is a dash in a sequence and a key in a mapping."""
        self.lines[path] = len(self.written) + 1
        if not isinstance(value, dict | list) or not value:
            self.written.append(f"{opening} {json.dumps(value, ensure_ascii=False)}")
            return
        if opening.endswith(":"):
            self.written.append(opening)
            opening = ""
        start = opening + " " if opening else indent
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            mark = json.dumps(step, ensure_ascii=False) + ":" if isinstance(step, str) else "-"
            self.put(item, (*path, step), indent + "  ", start + mark)
            start = indent


@given(MAPPINGS)
def test_json_is_read_as_json_reads_it(data: dict[str, object]) -> None:
    document = parse(json.dumps(data, ensure_ascii=False), source="w.yaml")
    assert document.data == frozen(data)
    assert set(document.lines) == set(paths(data))


@given(MAPPINGS.filter(bool))
def test_block_style_gives_values_and_the_line_of_every_path(data: dict[str, object]) -> None:
    writer = Writer(data)
    document = parse("\n".join(writer.written), source="w.yaml")
    assert document.data == frozen(data)
    assert document.lines == writer.lines


@given(st.text() | st.text(st.sampled_from("ab:-[]{},&*!|>'\"%@#? \n\t0.~<=\\x")))
def test_any_text_is_a_document_or_a_config_error(text: str) -> None:
    try:
        document = parse(text, source="w.yaml")
    except ConfigError as error:
        said = str(error)
    else:
        said = ""
        assert all(isinstance(key, str) for key in document.data)
    assert said == "" or said.startswith("w.yaml:")


@given(st.binary())
def test_any_bytes_are_a_document_or_a_config_error(content: bytes) -> None:
    with contextlib.suppress(ConfigError):
        parse(content, source="w.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e12", 1e12),
        ("1e+12", 1e12),
        ("1.0e12", 1e12),
        ("1.0e+12", 1e12),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("+7", 7),
        ("0", 0),
        ("-0", 0),
        ("0x10", 16),
        ("0o17", 15),
        ("9" * 60, int("9" * 60)),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("[1, a, [2]]", (1, "a", (2,))),
        ("[]", ()),
        ("{}", {}),
        ("'5'", "5"),
        ('"null"', "null"),
        ("|\n  5\n", "5\n"),
    ],
)
def test_values_as_yaml_1_2_reads_them(text: str, value: object) -> None:
    read = one(text)
    assert read == value
    assert isinstance(read, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "010",
        "017",
        "00",
        "1:30",
        "12:30",
        "1_000",
        "on",
        "off",
        "yes",
        "no",
        "y",
        "True",
        "FALSE",
        "Null",
        "NULL",
        *ODD,
    ],
)
def test_everything_else_is_text(text: str) -> None:
    assert one(text) == text


def test_a_number_remembers_how_it_was_written() -> None:
    for text in ("695e0214", "1e12", "0x1F", "+5", "5", "1.0", "0.10"):
        number = one(text)
        assert isinstance(number, int | float)
        assert written(number) == text
        again = pickle.loads(pickle.dumps(number))
        assert (again, written(again)) == (number, text)
    assert isinstance(one("1e12"), WrittenFloat)
    assert isinstance(one("0x1F"), WrittenInt)
    assert json.dumps(one("1e12")) == "1000000000000.0"


def test_lines_are_those_of_keys_and_items() -> None:
    document = parse("# first\na:\n  b: 1\n\n  c:\n  - x\n  - {d: 2,\n     e: 3}\n", source="w.yaml")
    expected: dict[KeyPath, int] = {(): 2, ("a",): 2, ("a", "b"): 3, ("a", "c"): 5, ("a", "c", 0): 6, ("a", "c", 1): 7}
    assert document.lines == expected | {("a", "c", 1, "d"): 7, ("a", "c", 1, "e"): 8}
    assert document.where(("a", "c", 1, "e")) == ("w.yaml", 8)
    assert document.where(("a", "missing", "deeper")) == ("w.yaml", 2)
    assert document.get(("a", "c", 1, "e")) == 3
    assert document.get(("a", "c", 7)) is None


def test_aliases_are_written_out_with_the_lines_of_their_anchor_and_share_nothing() -> None:
    document = parse("a: &x\n  b: 1\nc: *x\n", source="w.yaml")
    assert document.data == {"a": {"b": 1}, "c": {"b": 1}}
    assert document.data["a"] is not document.data["c"]
    assert document.lines[("c",)] == 3
    assert document.lines["c", "b"] == 2


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "w.yaml:1: is empty, must be a mapping"),
        ("# only words\n", "w.yaml:1: is empty, must be a mapping"),
        ("---\n", "w.yaml:1: is empty, must be a mapping"),
        ("- a\n- b\n", "w.yaml:1: must be a mapping, got a sequence"),
        ("\nnpu\n", "w.yaml:2: must be a mapping, got the single value 'npu'"),
        ("a: 1\n---\nb: 2\n", "w.yaml:2: a second document starts here, must be one"),
        ("a: 1\nb: 2\na: 3\n", "w.yaml:3: a: written twice, first at line 1"),
        ('r:\n  a: 1\n  "a": 2\n', "w.yaml:3: r.a: written twice, first at line 2"),
        ("r:\n  1: x\n", "w.yaml:2: r: a key must be text, got 1; write '1' in quotes"),
        ("true: x\n", "w.yaml:1: a key must be text, got true; write 'true' in quotes"),
        ("[a]: x\n", "w.yaml:1: a key must be text, got a sequence"),
        ("? {a: b}\n: x\n", "w.yaml:1: a key must be text, got a mapping"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "w.yaml:3: c: merge keys are not read, got '<<'"),
        ("a: !mine 3\n", "w.yaml:1: a: tags are not read, got '!mine'"),
        ("a: !!python/object:os.system x\n", "w.yaml:1: a: tags are not read, got '!!python/object:os.system'"),
        ("a: !!str 3\n", "w.yaml:1: a: tags are not read, got '!!str'"),
        ("a: &x [*x]\n", "w.yaml:1: a.0: alias '*x' lies inside the value it stands for"),
        ("a:\n  b: *x\n", "w.yaml:2: a.b: no anchor '&x' before this alias"),
        ('a: "\\ud800"\n', "w.yaml:1: a: holds half of a surrogate pair, which is not text"),
        ("a: 1\nb: \x00\n", "w.yaml:2: holds a NUL byte, so it is not UTF-8 text"),
        (b"a: 1\nb: \xff\n", "w.yaml:2: is not UTF-8 text: byte 0xff"),
        ("a: 1\n".encode("utf-16"), "w.yaml:1: holds a NUL byte, so it is not UTF-8 text"),
        ("a: 1\nb: \x07\n", "w.yaml:2: character U+0007 is not allowed in YAML"),
        (
            "a: [1,\nb: 2\n",
            "w.yaml:2: not YAML: while parsing a flow sequence from line 1, "
            "expected ',' or ']', but got '<stream end>'",
        ),
        (
            "a:\n\t- 1\n",
            "w.yaml:2: not YAML: while scanning for the next token, found character '\\t' that cannot start any token",
        ),
        ("a: 'x\n", "w.yaml:1: not YAML: while scanning a quoted scalar from line 1, found unexpected end of stream"),
        ("a: b: c\n", "w.yaml:1: not YAML: mapping values are not allowed here"),
        ('a: "\\UFFFFFFFF"\n', "w.yaml: not YAML: a character code or version in it is out of range"),
    ],
)
def test_refusals_by_their_text(content: bytes | str, text: str) -> None:
    assert refusal(content) == text


def test_all_mistakes_are_reported_in_the_order_of_lines() -> None:
    said = refusal("a: !x 1\nb: 2\nb: 3\n4: 5\nc: 'open\n").splitlines()
    assert [line.split(": ")[0] for line in said] == ["w.yaml:1", "w.yaml:3", "w.yaml:4", "w.yaml:5"]


def test_a_utf_8_byte_order_mark_is_skipped() -> None:
    assert parse(b"\xef\xbb\xbfa: 1\n", source="w.yaml").data == {"a": 1}


def test_deep_nesting_is_refused_and_ordinary_nesting_is_not() -> None:
    text = f"w.yaml:1: a.0.0: nested deeper than {DEPTH_LIMIT} levels"
    assert refusal("a: " + "[" * 100_000) == text
    assert refusal("".join(f"{' ' * depth}a:\n" for depth in range(300))).startswith("w.yaml:61: a.a.a: nested deeper")
    assert one("[" * (DEPTH_LIMIT - 1) + "]" * (DEPTH_LIMIT - 1))


def test_depth_built_from_aliases_is_refused() -> None:
    levels = "".join(f"k{step}: &k{step} [*k{step - 1}]\n" for step in range(1, 2000))
    said = refusal("k0: &k0 [x]\n" + levels)
    assert said == f"w.yaml:60: k59.0: nested deeper than {DEPTH_LIMIT} levels with its aliases written out"


def test_an_alias_bomb_is_refused_quickly() -> None:
    levels = "".join(f"k{step}: &k{step} [{', '.join([f'*k{step - 1}'] * 9)}]\n" for step in range(1, 40))
    said = refusal("k0: &k0 [lol]\n" + levels)
    assert said == f"w.yaml:6: k5: holds over {NODE_LIMIT} values with its aliases written out"


def test_a_large_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_bytes(b"#" * (SIZE_LIMIT_BYTES + 1))
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value) == "big.yaml: is larger than 4194304 bytes"


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    for path, text in [
        (tmp_path / "none.yaml", "none.yaml: cannot be read: No such file or directory"),
        (tmp_path, f"{tmp_path.name}: cannot be read: Is a directory"),
        (Path("/x\0y.yaml"), "x\0y.yaml: cannot be read: embedded null byte"),
    ]:
        with pytest.raises(ConfigError) as caught:
            load(path)
        assert str(caught.value) == text


def test_sources_are_shown_as_given_and_never_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "npu.yaml").write_text("a: 1\n")
    monkeypatch.chdir(tmp_path)
    assert load(Path("./d/npu.yaml")).source == "d/npu.yaml"
    assert load(tmp_path / "d" / "npu.yaml").source == "npu.yaml"
    assert load(tmp_path / "d" / "npu.yaml", source="npu").source == "npu"


def test_merge_keeps_line_and_source_of_every_path() -> None:
    base = parse("hbm:\n  rate: 1\n  size: 2\nlist: [1, 2]\nname: base\n", source="npu.yaml")
    over = parse("name: big\nhbm:\n  size: 4\nlist: [3]\nnew: {x: 1}\n", source="big.yaml")
    merged = merge(base, over)
    assert merged.source == "big.yaml"
    assert merged.data == {"hbm": {"rate": 1, "size": 4}, "list": (3,), "name": "big", "new": {"x": 1}}
    assert merged.where(("hbm",)) == ("big.yaml", 2)
    assert merged.where(("hbm", "rate")) == ("npu.yaml", 2)
    assert merged.where(("hbm", "size")) == ("big.yaml", 3)
    assert merged.where(("list", 0)) == ("big.yaml", 4)
    assert merged.where(("list", 1)) == ("big.yaml", 4)
    third = merge(merged, parse("name: third\n", source="third.yaml"))
    assert third.where(("hbm", "rate")) == ("npu.yaml", 2)
    assert third.where(("hbm", "size")) == ("big.yaml", 3)


@given(MAPPINGS, MAPPINGS)
def test_merge_is_a_plain_recursive_merge_and_leaves_its_inputs_alone(
    below: dict[str, object], above: dict[str, object]
) -> None:
    def merged(low: object, high: object) -> object:
        if isinstance(low, dict) and isinstance(high, dict):
            return {key: merged(low.get(key), high[key]) if key in high else low[key] for key in {**low, **high}}
        return high

    base = parse(json.dumps(below, ensure_ascii=False), source="base.yaml")
    over = parse(json.dumps(above, ensure_ascii=False), source="over.yaml")
    result = merge(base, over)
    assert result.data == merged(base.data, over.data)
    assert (base.data, over.data) == (frozen(below), frozen(above))
    assert merge(Document("x", {}), base).data == base.data
