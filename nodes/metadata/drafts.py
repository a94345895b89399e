"""A mapping that is being changed: copied at its first change, shared as long as there is none."""

from collections.abc import Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Draft(Generic[Key, Value]):
    """One mapping of the next image; ``result`` gives it, and nothing may change afterwards."""

    def __init__(self, base: Mapping[Key, Value]) -> None:
        self._base = base
        self._copy: dict[Key, Value] | None = None
        self._changed: dict[Key, None] = {}

    @property
    def changed(self) -> tuple[Key, ...]:
        """Keys that were set or removed, in the order of their first change."""
        return tuple(self._changed)

    def get(self, key: Key) -> Value | None:
        """Return the value as of now."""
        return (self._base if self._copy is None else self._copy).get(key)

    def set(self, key: Key, value: Value) -> None:
        """Give the key a value."""
        self._writable()[key] = value
        self._changed[key] = None

    def remove(self, key: Key) -> Value | None:
        """Remove the key; return the value that it had."""
        if self.get(key) is None:
            return None
        self._changed[key] = None
        return self._writable().pop(key)

    def result(self) -> Mapping[Key, Value]:
        """Return the mapping of the next image: the same object if nothing changed."""
        return self._base if self._copy is None else self._copy

    def _writable(self) -> dict[Key, Value]:
        if self._copy is None:
            self._copy = dict(self._base)
        return self._copy
