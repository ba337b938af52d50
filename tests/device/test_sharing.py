"""Rates of tasks that run together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.device.sharing import FULL, rates
from hwmodel.schedules.plan import FULL as PLAN_FULL

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

Users = list[list[tuple[int, int]]]

CUBE, HBM, VECTOR = 0, 1, 2
GEMM = [(CUBE, FULL), (HBM, round(0.2 * FULL))]
AMAX = [(VECTOR, FULL), (HBM, FULL)]


def shared(uses: Users, policy: str = "fair", resources: int = 4) -> list[int]:
    return rates(uses, [policy] * resources)


def granted(users: Users, result: Sequence[int], resource: int) -> int:
    """What a resource gives, in units of fraction × rate."""
    return sum(use * rate for uses, rate in zip(users, result, strict=True) for index, use in uses if index == resource)


@st.composite
def contests(draw: st.DrawFn, resources: int = 4) -> tuple[Users, list[str]]:
    use = st.one_of(st.just(FULL), st.integers(1, FULL), st.integers(FULL // 2, FULL))
    uses = st.dictionaries(st.integers(0, resources - 1), use).map(lambda chosen: list(chosen.items()))
    policy = st.sampled_from(("fair", "proportional"))
    return draw(st.lists(uses, max_size=6)), draw(st.lists(policy, min_size=resources, max_size=resources))


def test_plans_and_rates_mean_the_same_by_a_whole() -> None:
    assert PLAN_FULL == FULL == 2**20


def test_fair_leaves_the_gemm_alone_and_slows_amax_to_what_is_left() -> None:
    gemm, amax = shared([GEMM, AMAX])
    assert gemm == FULL
    assert amax == FULL - round(0.2 * FULL)


def test_proportional_slows_both_alike() -> None:
    gemm, amax = rates([GEMM, AMAX], ["fair", "proportional", "fair"])
    assert gemm == amax == FULL * FULL // (FULL + round(0.2 * FULL))
    assert round(gemm / FULL, 3) == 0.833


def test_a_task_alone_runs_at_full_rate() -> None:
    assert shared([[(0, FULL), (1, 1)]]) == [FULL]


def test_no_tasks_have_no_rates() -> None:
    assert shared([]) == []
    assert rates([[]], []) == [FULL]


@pytest.mark.parametrize("count", [2, 3, 7, 100])
@pytest.mark.parametrize("policy", ["fair", "proportional"])
def test_equals_share_equally(count: int, policy: str) -> None:
    assert shared([[(0, FULL)]] * count, policy) == [FULL // count] * count


def test_tasks_that_just_fit_are_not_slowed() -> None:
    assert shared([[(0, FULL // 2)], [(0, FULL // 2)]]) == [FULL, FULL]
    assert min(shared([[(0, FULL // 2)], [(0, FULL // 2 + 1)]])) < FULL


def test_the_level_gives_small_users_all_and_the_others_equal_parts() -> None:
    quarter, half = FULL // 4, FULL // 2
    assert shared([[(0, quarter)], [(0, half)], [(0, FULL)]]) == [FULL, FULL * 3 // 4, FULL * 3 // 8]


def test_what_a_task_slowed_elsewhere_leaves_goes_to_the_others() -> None:
    # Three fill the link, so the first runs at a third and leaves two thirds of HBM to the last.
    result = shared([[(0, FULL), (1, FULL)], [(0, FULL)], [(0, FULL)], [(1, FULL)]])
    assert result[:3] == [FULL // 3] * 3
    assert result[3] == FULL - FULL // 3


def test_a_task_released_late_catches_up_to_its_level() -> None:
    # Two of the three on link 0 are held to a tenth by link 1 (ten users), so the first is limited by HBM alone.
    ten = [[(2, FULL)] for _ in range(8)]
    first, *_, last = shared(
        [[(0, FULL), (1, FULL)], [(0, FULL), (2, FULL)], [(0, FULL), (2, FULL)], *ten, [(1, FULL)]]
    )
    assert abs(first - FULL // 2) <= 1
    assert abs(last - FULL // 2) <= 1


def test_two_tasks_with_crossed_bottlenecks_meet_where_both_resources_are_full() -> None:
    nine = round(0.9 * FULL)
    first, second = shared([[(0, FULL), (1, nine)], [(0, nine), (1, FULL)]])
    assert abs(first / FULL - 1 / 1.9) < 1e-5
    assert abs(second / FULL - 1 / 1.9) < 1e-5


def test_levels_that_do_not_settle_leave_nothing_over_granted_and_nothing_idle() -> None:
    users = [
        [(0, 524288), (1, FULL)],
        [(2, FULL), (1, 209715), (0, 734003)],
        [(2, 838861), (0, FULL)],
        [(2, 209715), (1, 419430)],
        [(0, 1), (1, 1), (2, 1)],
    ]
    result = rates(users, ["fair", "fair", "proportional"])
    spare = [FULL * FULL - granted(users, result, resource) for resource in range(3)]
    assert min(spare) >= 0
    assert min(result) >= 1
    for uses, rate in zip(users, result, strict=True):
        assert rate == FULL or min(spare[resource] for resource, _ in uses) < len(users) * FULL


def test_a_proportional_level_settles_as_finely_as_a_fair_one() -> None:
    # On resource 2 (fair) the third runs at 1/3; resource 1 then lets the fifth run at 0.8, so resource 0 has
    # 1 - 0.3 × 0.8 for the first, which uses 0.9.
    tenths = [[(0, 9)], [(2, 10)], [(2, 10), (1, 6)], [(2, 7)], [(0, 3), (1, 10)]]
    users = [[(resource, round(FULL * use / 10)) for resource, use in uses] for uses in tenths]
    first, second, third, fourth, fifth = rates(users, ["proportional", "proportional", "fair"])
    assert [round(rate / FULL, 4) for rate in (second, third, fifth)] == [0.3333, 0.3333, 0.8]
    assert round(fourth / FULL, 4) == round(1 / 3 / 0.7, 4)
    assert round(first / FULL, 4) == round((1 - 0.3 * 0.8) / 0.9, 4)


@given(contests())
def test_rates_are_whole_numbers_from_1_to_full(contest: tuple[Users, list[str]]) -> None:
    for rate in rates(*contest):
        assert type(rate) is int
        assert 1 <= rate <= FULL


@given(contests())
def test_no_resource_is_granted_beyond_its_whole(contest: tuple[Users, list[str]]) -> None:
    users, policies = contest
    result = rates(users, policies)
    assert all(granted(users, result, resource) <= FULL * FULL for resource in range(4))


@given(contests())
def test_a_slowed_task_has_a_full_resource(contest: tuple[Users, list[str]]) -> None:
    """Full up to one unit of rate for each user."""
    users, policies = contest
    result = rates(users, policies)
    for uses, rate in zip(users, result, strict=True):
        if rate < FULL:
            spare = min(FULL * FULL - granted(users, result, resource) for resource, _ in uses)
            assert spare < len(users) * FULL


@given(contests(), st.randoms(use_true_random=False))
def test_the_order_of_tasks_and_of_their_uses_does_not_matter(contest: tuple[Users, list[str]], random: Random) -> None:
    users, policies = contest
    order = list(range(len(users)))
    random.shuffle(order)
    result = rates(users, policies)
    assert rates([users[index][::-1] for index in order], policies) == [result[index] for index in order]


@given(contests(resources=2))
def test_nobody_is_given_more_of_what_slows_a_task_than_that_task(contest: tuple[Users, list[str]]) -> None:
    """On some full resource a slowed task has the largest part (fair) or the highest rate (proportional)."""
    users, policies = contest
    result = rates(users, policies)

    def part(user: int, resource: int) -> float:
        use = dict(users[user]).get(resource, 0)
        if policies[resource] == "proportional":
            return result[user] / FULL if use else 0.0
        return use * result[user] / FULL**2

    for user, uses in enumerate(users):
        if result[user] < FULL:
            full = [r for r, _ in uses if FULL * FULL - granted(users, result, r) < len(users) * FULL]
            excess = min(max(part(other, r) for other in range(len(users))) - part(user, r) for r in full)
            assert excess < 1e-3


@given(st.lists(st.integers(1, FULL), min_size=2, max_size=8), st.sampled_from(("fair", "proportional")))
def test_one_more_user_of_a_single_resource_speeds_nobody_up(uses: list[int], policy: str) -> None:
    fewer = shared([[(0, use)] for use in uses[:-1]], policy)
    more = shared([[(0, use)] for use in uses], policy)
    assert all(after <= before for before, after in zip(fewer, more, strict=False))
