"""Named families: one register, one lookup, and errors that name what is known."""

from __future__ import annotations

from typing import Generic, TypeVar

from hwmodel.errors import RegistryError

T = TypeVar("T")


class Registry(Generic[T]):
    """Items of one family by name. A name registers once; order of registration never shows."""

    __slots__ = ("_items", "family")

    def __init__(self, family: str) -> None:
        """Make an empty registry; ``family`` is the singular word used in messages, such as ``op``."""
        self.family = family
        self._items: dict[str, T] = {}

    def register(self, name: str, item: T) -> T:
        """Add ``item`` under ``name`` and return it.

        Raises:
            RegistryError: the name is taken.
        """
        if name in self._items:
            raise RegistryError(self.family, name, self.names())
        self._items[name] = item
        return item

    def get(self, name: str) -> T:
        """The item called ``name``.

        Raises:
            RegistryError: no such name; the error gives the nearest and all known ones.
        """
        try:
            return self._items[name]
        except KeyError:
            raise RegistryError(self.family, name, self.names()) from None

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._items))

    def items(self) -> tuple[tuple[str, T], ...]:
        """All (name, item) pairs, sorted by name."""
        return tuple((name, self._items[name]) for name in self.names())

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __len__(self) -> int:
        return len(self._items)
