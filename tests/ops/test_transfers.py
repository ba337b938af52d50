"""Collectives, waits and views: sizes are those of full tensors, views are free."""

from __future__ import annotations

import pytest

from hwmodel.errors import ParameterError
from hwmodel.graph import Collective, Elapsed, TensorSpec
from hwmodel.ops import OPS
from hwmodel.ops.collective import CollectiveParams
from hwmodel.ops.elapsed import ElapsedParams
from hwmodel.ops.views import ConcatParams, SplitParams

RANKS = 4
TP = CollectiveParams("tp", RANKS, stride=2)


def tensor(name: str, *shape: int, number_format: str = "bf16") -> TensorSpec:
    return TensorSpec(name, shape, number_format)


def inferred(op: str, params: object, *inputs: TensorSpec) -> tuple[TensorSpec, ...]:
    return OPS.get(op).infer(params, inputs)


def asked(op: str, params: CollectiveParams, *inputs: TensorSpec) -> Collective:
    given = OPS.get(op).demand(params, inputs, inferred(op, params, *inputs))
    assert isinstance(given, Collective)
    return given


def test_codes_and_scales_are_gathered_in_one_transfer() -> None:
    codes = tensor("codes", 32, 64, number_format="mxfp8_e4m3fn")
    table = tensor("table", 32, 2, number_format="e8m0")
    assert [spec.shape for spec in inferred("all_gather", TP, codes, table)] == [(128, 64), (128, 2)]
    given = asked("all_gather", TP, codes, table)
    assert given == Collective("all_gather", "tp", RANKS, RANKS * (32 * 64 + 32 * 2), 2)


def test_a_turned_copy_is_gathered_along_its_last_axis() -> None:
    params = CollectiveParams("tp", RANKS, axis=1)
    assert inferred("all_gather", params, tensor("x", 64, 32))[0].shape == (64, 128)


def test_gathering_and_scattering_name_the_same_full_size() -> None:
    full = 128 * 64 * 2
    assert asked("reduce_scatter", TP, tensor("x", 128, 64)).full_bytes == full
    assert asked("all_gather", TP, tensor("x", 32, 64)).full_bytes == full
    assert asked("all_reduce", TP, tensor("x", 128, 64)).full_bytes == full
    assert asked("send_recv", TP, tensor("x", 128, 64)).sent_bytes == full
    assert inferred("reduce_scatter", TP, tensor("x", 128, 64))[0].shape == (32, 64)
    assert inferred("all_reduce", TP, tensor("x", 128, 64))[0].shape == (128, 64)


def test_a_ring_sends_what_the_sizes_say() -> None:
    full, ranks = 100_000_000, 8
    params = CollectiveParams("dp", ranks)
    shard, whole = tensor("s", full // ranks // 2), tensor("w", full // 2)
    assert asked("all_reduce", params, whole).sent_bytes == 175_000_000
    for op, x in (("reduce_scatter", whole), ("all_gather", shard)):
        assert asked(op, params, x).sent_bytes == 87_500_000
    gathered = asked("all_gather", CollectiveParams("dp", 256), tensor("s", 6_250_000 // 2))
    assert (gathered.full_bytes, gathered.sent_bytes) == (1_600_000_000, 1_593_750_000)
    assert asked("all_reduce", CollectiveParams("dp", 1), whole).sent_bytes == 0


@pytest.mark.parametrize(
    ("op", "params", "inputs", "message"),
    [
        (
            "reduce_scatter",
            TP,
            (tensor("x", 10, 4),),
            "inputs: extent 10 of 'x' (10, 4) along axis 0 must divide over 4 ranks",
        ),
        (
            "all_gather",
            CollectiveParams("tp", 4, axis=2),
            (tensor("x", 4, 4),),
            "axis: must be an axis of 'x' (4, 4), got 2",
        ),
        ("all_reduce", TP, (), "inputs: a collective needs at least one tensor, got none"),
        ("bubble", ElapsedParams(1), (tensor("x", 1),), "inputs: op 'elapsed' reads 0 tensors, got 1 ('x')"),
        ("split", SplitParams(2, 2, 0), (tensor("x", 4, 4),), "axis: must be an axis of 'x' (4, 4), got 2"),
        (
            "split",
            SplitParams(0, 3, 0),
            (tensor("x", 4, 4),),
            "inputs: extent 4 of 'x' (4, 4) along axis 0 must divide in 3 pieces",
        ),
        (
            "concat",
            ConcatParams(0),
            (tensor("x", 4, 4), tensor("y", 4, 5)),
            "inputs: 'y' (4, 5) cannot be joined to 'x' (4, 4) along axis 0",
        ),
        ("concat", ConcatParams(0), (), "inputs: op 'concat' reads at least one tensor, got none"),
    ],
)
def test_refused_inputs(op: str, params: object, inputs: tuple[TensorSpec, ...], message: str) -> None:
    with pytest.raises(ParameterError) as refused:
        inferred(op, params, *inputs)
    assert str(refused.value) == message


def test_refused_params() -> None:
    with pytest.raises(ParameterError, match=r"^ranks: must be >= 1, got 0$"):
        CollectiveParams("tp", 0)
    with pytest.raises(ParameterError, match=r"^reduction: must be one of sum, max, got 'mean'$"):
        CollectiveParams("tp", 2, reduction="mean")
    with pytest.raises(ParameterError, match=r"^picoseconds: must be >= 0, got -1$"):
        ElapsedParams(-1)
    with pytest.raises(ParameterError, match=r"^index: must be 0 to pieces - 1 = 3, got 4$"):
        SplitParams(0, 4, 4)


def test_pieces_join_to_the_whole_at_no_cost() -> None:
    x = tensor("x", 8, 12)
    pieces = [inferred("split", SplitParams(1, 3, index), x)[0] for index in range(3)]
    assert [piece.shape for piece in pieces] == [(8, 4)] * 3
    assert inferred("concat", ConcatParams(1), *pieces)[0].shape == x.shape
    assert OPS.get("split").demand(SplitParams(1, 3, 0), (x,), (pieces[0],)) == Elapsed(0)


def test_time_that_passes_is_taken_as_given() -> None:
    assert OPS.get("bubble").demand(ElapsedParams(7), (), ()) == Elapsed(7)
    assert OPS.get("exposed_traffic").demand(ElapsedParams(7, bytes=9), (), ()) == Elapsed(7, 9)
    assert (OPS.get("bubble").kind, OPS.get("exposed_traffic").kind) == ("bubble", "collective")
