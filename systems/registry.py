"""Finds the adapter of a system under test by its name.

Adapters are imported when they are asked for, so that listing the names stays cheap. Must never
start anything or touch the disk.
"""

from collections.abc import Callable

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.system import System


def _kraft() -> System:
    from splitbrain.systems.kraft.adapter import KraftSystem

    return KraftSystem()


def _redis() -> System:
    from splitbrain.systems.redis.adapter import RedisSystem

    return RedisSystem()


_FACTORIES: dict[str, Callable[[], System]] = {"kraft": _kraft, "redis": _redis}


def names() -> tuple[str, ...]:
    """Names of all systems, sorted."""
    return tuple(sorted(_FACTORIES))


def system(name: str) -> System:
    """Return a fresh adapter for one run; UsageError: no system has this name."""
    factory = _FACTORIES.get(name)
    if factory is None:
        raise UsageError(
            f"there is no system called {name!r}", f"Choose one of: {', '.join(names())}"
        )
    return factory()
