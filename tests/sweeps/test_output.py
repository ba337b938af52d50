"""How a sweep's table names devices."""

from __future__ import annotations

import pytest

from hwmodel.sweeps.output import _tails


@pytest.mark.parametrize(
    ("devices", "shown"),
    [
        (["npu", "./half.yaml"], ["npu", "half"]),
        (["a/x.yaml", "b/x.yaml", "x"], ["a/x", "b/x", "x"]),
        (["p/a/x.yaml", "q/a/x.yaml"], ["p/a/x", "q/a/x"]),
        (["npu"], ["npu"]),
    ],
)
def test_a_path_is_shown_by_the_shortest_end_that_no_other_has(devices: list[str], shown: list[str]) -> None:
    assert list(_tails(devices).values()) == shown
