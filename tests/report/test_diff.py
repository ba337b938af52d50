"""What differs between two results."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwmodel.errors import ConfigError
from hwmodel.report.diff import MISSING, Change, check_kinds, compare, read_result


def test_equal_results_do_not_differ() -> None:
    result = {"a": 1, "b": [1, {"c": None}], "d": float("nan")}
    assert compare(result, result) == ()


def test_leaves_are_compared_by_path() -> None:
    before = {"step_seconds": 2.0, "layout": {"tp": 8}, "device": "npu", "list": [1, 2]}
    after = {"step_seconds": 2.5, "layout": {"tp": 8, "pp": 2}, "device": "gpu", "list": [1]}
    changes = {change.path: change for change in compare(before, after)}
    assert list(changes) == ["step_seconds", "layout.pp", "device", "list[1]"]
    assert changes["step_seconds"].delta == 0.5
    assert changes["step_seconds"].delta_text == "+0.5 (+25.00 %)"
    assert changes["layout.pp"].delta_text == "added"
    assert changes["list[1]"].delta_text == "removed"
    assert (changes["device"].before_text, changes["device"].delta_text) == ("npu", "changed")


def test_recipes_are_matched_by_name() -> None:
    before = {"rows": [{"recipe": "bf16", "s": 1}, {"recipe": "current", "s": 2}]}
    after = {"rows": [{"recipe": "current", "s": 3}, {"recipe": "bf16", "s": 1}]}
    assert compare(before, after) == (Change("rows[current].s", 2, 3),)


def test_a_branch_that_one_side_lacks_is_told_leaf_by_leaf() -> None:
    assert compare({}, {"memory": {"fits": True, "parts": {}}}) == (
        Change("memory.fits", MISSING, True),
        Change("memory.parts", MISSING, {}),
    )
    assert compare({"memory": {"fits": True}}, {"memory": None}) == (Change("memory", {"fits": True}, None),)


def test_true_is_not_one_and_zero_has_no_percentage() -> None:
    assert compare({"a": True}, {"a": 1}) == (Change("a", True, 1),)
    assert Change("a", 0, 4).delta_text == "+4"
    assert Change("a", None, 4).delta_text == "changed"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "must hold an object, got list"),
        ("{\n'a'}", ":2: is not JSON"),
        ("\udcff", ":1: is not UTF-8 text: byte 0xff"),
        ('{"a": NaN}', "holds NaN, which is no number"),
        ('{"a": -Infinity}', "holds -Infinity, which is no number"),
        ('{"a": 1e999}', "holds 1e999, which is beyond the largest number"),
        ('{"a": ' + "1" * 400 + "}", "which is beyond the largest number"),
        ('{"a": 1, "a": 2}', "holds the key 'a' twice in one object"),
        ('{"a": ' + "[" * 101 + "]" * 101 + "}", "is nested deeper than 100 levels"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "is nested deeper than 100 levels"),
    ],
)
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match=message):
        read_result(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: no such file"):
        read_result(tmp_path / "none.json")


def test_results_of_two_commands_are_refused() -> None:
    step: dict[str, object] = {"step_seconds": 1.0}
    rows: dict[str, object] = {"rows": []}
    with pytest.raises(ConfigError, match=r"b\.json: is a result of compare, but a\.json is one of simulate"):
        check_kinds(Path("a.json"), step, Path("b.json"), rows)
    check_kinds(Path("a.json"), rows, Path("b.json"), {"other": 1})
    check_kinds(Path("a.json"), step, Path("b.json"), step)
