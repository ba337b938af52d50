"""How kernels that run at the same time share resources: integer rates from integer demands, and nothing else.

Pure arithmetic: it knows no plan, no device and no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

FULL: Final = 1 << 20
"""A whole resource, and the rate of a task that runs as fast as alone."""

_CAPACITY: Final = FULL * FULL
"""A whole resource in units of fraction × rate, in which grants are counted exactly."""

_SWEEPS: Final = 128
"""Rounds in which levels may settle; two tasks that wait for each other's leavings on two resources need most."""

Crowd = list[tuple[int, int, int]]
"""Users of an over-subscribed resource as (task, weight, scale); weight × scale is the fraction each uses alone.

A level L lets a user run at L / scale, at a cost of weight × L: fair is (1, fraction), proportional (fraction, 1).
"""


def rates(users: Sequence[Sequence[tuple[int, int]]], policies: Sequence[str]) -> list[int]:
    """The rate, 1..``FULL``, of each of ``users`` while all of them run.

    On a ``fair`` resource the level λ solves Σ min(use, λ) = 1 and a task runs at most at λ / use; on a
    ``proportional`` one all users run at most at the same rate. A task runs at the least rate its resources allow, and
    what it then leaves of the others raises their levels, until nothing changes. Rates are rounded down, so a resource
    is never granted beyond its whole, and a rate does not depend on the order of the users.

    Args:
        users: for each running task its (resource index, fraction in 1..``FULL`` that it uses alone), no index twice.
        policies: ``fair`` or ``proportional`` for each resource index.
    """
    crowds = _crowds(users, policies)
    granted = [FULL] * len(users)
    if not crowds:
        return granted
    for crowd, level in zip(crowds, _levels(crowds), strict=True):
        for task, _, scale in crowd:
            granted[task] = min(granted[task], level // scale)
    return granted if len(crowds) == 1 else _refilled(crowds, _shrunk(crowds, granted))


def _crowds(users: Sequence[Sequence[tuple[int, int]]], policies: Sequence[str]) -> list[Crowd]:
    """The resources asked for beyond their whole; the others slow nobody."""
    load = [0] * len(policies)
    for demands in users:
        for resource, use in demands:
            load[resource] += use
    crowds = []
    if max(load, default=0) > FULL:
        for resource, total in enumerate(load):
            if total > FULL:
                members = [
                    (task, use) for task, demands in enumerate(users) for index, use in demands if index == resource
                ]
                alike = policies[resource] == "proportional"
                crowds.append([(task, use, 1) if alike else (task, 1, use) for task, use in members])
    return crowds


def _levels(crowds: list[Crowd]) -> list[int]:
    """The level of each crowd, its users wanting no more than the other crowds' levels let them use.

    Settled when no resource deals out a unit more or less; ``_shrunk`` and ``_refilled`` see to what is left.
    """
    if len(crowds) == 1:
        return [_level(_CAPACITY, [(scale * FULL, weight) for _, weight, scale in crowds[0]])]
    elsewhere = [
        [
            (
                scale,
                weight,
                [
                    (other, s)
                    for other, members in enumerate(crowds)
                    if other != own
                    for t, _, s in members
                    if t == task
                ],
            )
            for task, weight, scale in crowd
        ]
        for own, crowd in enumerate(crowds)
    ]
    levels = [_CAPACITY] * len(crowds)
    for _ in range(_SWEEPS):
        settled = True
        for own, users in enumerate(elsewhere):
            wants = []
            for scale, weight, others in users:
                reach = FULL
                for other, other_scale in others:
                    reach = min(reach, levels[other] // other_scale)
                wants.append((scale * reach, weight))
            level = _level(_CAPACITY, wants)
            settled = settled and abs(level - levels[own]) * sum([weight for _, weight in wants]) < FULL
            levels[own] = level
        if settled:
            break
    return levels


def _level(spare: int, wants: list[tuple[int, int]]) -> int:
    """The level at which users that want (level, weight) spend ``spare``; the whole if they want less."""
    weights = sum([weight for _, weight in wants])
    for want, weight in sorted(wants):
        if want * weights > spare:
            return spare // weights
        spare -= want * weight
        weights -= weight
    return _CAPACITY


def _spare(crowd: Crowd, granted: list[int]) -> int:
    """What ``granted`` leaves of a resource; negative where levels have not quite settled."""
    return _CAPACITY - sum(weight * scale * granted[task] for task, weight, scale in crowd)


def _shrunk(crowds: list[Crowd], granted: list[int]) -> list[int]:
    """``granted``, less where it is more than a resource has."""
    shrunk = list(granted)
    for crowd in crowds:
        used = _CAPACITY - _spare(crowd, granted)
        if used > _CAPACITY:
            for task, _, _ in crowd:
                shrunk[task] = min(shrunk[task], granted[task] * _CAPACITY // used)
    return shrunk


def _refilled(crowds: list[Crowd], granted: list[int]) -> list[int]:
    """``granted`` raised by what is left, dealt out by the same rule until nothing changes."""
    while True:
        raised = [FULL] * len(granted)
        for crowd in crowds:
            wants = [(scale * (FULL - granted[task]), weight) for task, weight, scale in crowd]
            level = _level(_spare(crowd, granted), wants)
            for task, _, scale in crowd:
                raised[task] = min(raised[task], granted[task] + level // scale)
        if raised == granted:
            return granted
        granted = raised
