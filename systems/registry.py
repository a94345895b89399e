"""Finds the adapter of a system under test by its name: our own, and those of installed packages.

A package offers a system as an entry point of the group ``splitbrain.systems``: its name, and a
class derived from ``contracts.system.System``. Adapters are imported when they are asked for, so
that listing the names stays cheap. Must never start anything.
"""

from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from splitbrain.contracts.errors import UsageError, in_one_line
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.system import System

#: Group of entry points.
GROUP: Final = "splitbrain.systems"
_OURS: Final = "splitbrain itself"


def _kraft() -> System:
    from splitbrain.systems.kraft.adapter import KraftSystem

    return KraftSystem()


def _redis() -> System:
    from splitbrain.systems.redis.adapter import RedisSystem

    return RedisSystem()


_FACTORIES: dict[str, Callable[[], System]] = {"kraft": _kraft, "redis": _redis}


def names() -> tuple[str, ...]:
    """Names of all systems, sorted."""
    return tuple(sorted({*_FACTORIES, *(offer.name for offer in _offers())}))


def system(name: str) -> System:
    """Return a fresh adapter for one run.

    Raises:
        UsageError: no system has this name, several have, or its package cannot be used.
    """
    offers = [offer for offer in _offers() if offer.name == name]
    origins = [*([_OURS] if name in _FACTORIES else []), *map(_origin, offers)]
    if not origins:
        raise UsageError(
            f"there is no system called {name!r}", or_nearest(name, names(), "systems")
        )
    if len(origins) > 1:
        raise UsageError(
            f"the system {name!r} is offered by {' and by '.join(origins)}",
            "Uninstall one, or give its entry point another name",
        )
    return _FACTORIES[name]() if not offers else _loaded(offers[0])


def each_system() -> Iterator[tuple[str, System | UsageError]]:
    """Yield every name, sorted, with a fresh adapter or why there is none."""
    for name in names():
        try:
            yield name, system(name)
        except UsageError as error:
            yield name, error


def usable_systems() -> Iterator[System]:
    """Yield an adapter of every system that there is one of, sorted by name."""
    return (found for _, found in each_system() if isinstance(found, System))


@cache
def _offers() -> tuple[EntryPoint, ...]:
    """Return the entry points of all packages.

    A sweep asks for its system with every seed, and looking through the packages takes
    milliseconds.
    """
    return tuple(entry_points(group=GROUP))


def _loaded(offer: EntryPoint) -> System:
    named = f"the system {offer.name!r} of {_origin(offer)}"
    try:
        made: Any = offer.load()()
    # Anything that a package raises, SystemExit included, is the package's fault.
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"{named} cannot be used: {in_one_line(error)}", "Repair the package, or uninstall it"
        ) from error
    if not isinstance(made, System):
        raise UsageError(
            f"{named} is no system but of type {type(made).__name__}",
            f"Derive {offer.value} from splitbrain.contracts.system.System",
        )
    # A class may have left it out.
    own_name = getattr(made, "name", None)
    if own_name != offer.name:
        raise UsageError(
            f"{named} calls itself {own_name!r}", "Give class and entry point the same name"
        )
    return made


def _origin(offer: EntryPoint) -> str:
    package = "a package without a name" if offer.dist is None else offer.dist.name
    return f"{package} ({offer.value})"
