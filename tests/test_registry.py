"""A registry keeps names unique and says what it knows."""

from __future__ import annotations

import pytest

from hwmodel.errors import RegistryError
from hwmodel.registry import Registry


def filled() -> Registry[int]:
    registry: Registry[int] = Registry("preset")
    for name, item in (("delayed", 2), ("bf16", 1)):
        assert registry.register(name, item) == item
    return registry


def test_names_and_items_are_sorted_whatever_the_order_of_registration() -> None:
    registry = filled()
    assert registry.names() == ("bf16", "delayed")
    assert registry.items() == (("bf16", 1), ("delayed", 2))
    assert len(registry) == 2


def test_get_and_contains() -> None:
    registry = filled()
    assert registry.get("bf16") == 1
    assert "bf16" in registry
    assert "block" not in registry


def test_a_second_registration_is_refused_and_changes_nothing() -> None:
    registry = filled()
    with pytest.raises(RegistryError) as caught:
        registry.register("bf16", 9)
    assert str(caught.value) == "preset 'bf16' is registered twice"
    assert registry.get("bf16") == 1


def test_an_unknown_name_names_the_nearest_and_the_known() -> None:
    with pytest.raises(RegistryError) as caught:
        filled().get("delaid")
    assert str(caught.value) == "unknown preset 'delaid'; did you mean 'delayed'? known: bf16, delayed"
    assert (caught.value.family, caught.value.name) == ("preset", "delaid")
