"""The registry of fault kinds.

To add one, write its course in a module of ``nemesis.families``, list it in ``KINDS`` there, and
add a section to its page in ``docs/faults``; tests over the whole registry then demand its proofs.
A new act also needs its line in the tables of those who can carry it out. A package offers a kind,
made of the acts that there are, as an entry point of the group ``splitbrain.nemesis``.
"""

import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Final

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.runtime import EXACT_CAPABILITIES, SIMULATED_CAPABILITIES
from splitbrain.nemesis import families
from splitbrain.nemesis.fault_kind import FaultKind
from splitbrain.plugins.offers import Offers


def found_kinds() -> dict[str, FaultKind]:
    """Return the kinds of all families by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(families.__path__))
    modules = [import_module(f"{families.__name__}.{name}") for name in names]
    return {kind.name: kind for module in modules for kind in module.KINDS}


_KINDS: Final = found_kinds()
#: Kinds of installed packages.
OFFERS: Final = Offers[FaultKind]("fault", "splitbrain.nemesis", FaultKind, _KINDS)


def kind_names() -> tuple[str, ...]:
    """Return the names of all fault kinds, sorted."""
    return tuple(sorted({*_KINDS, *OFFERS.names()}))


def machine_kind_names() -> tuple[str, ...]:
    """Return the names of the kinds that need no simulated world, sorted."""
    return tuple(kind.name for kind in _usable_kinds() if not kind.needs & EXACT_CAPABILITIES)


def world_kind_names() -> tuple[str, ...]:
    """Return the names of the kinds that a simulated world can carry out, sorted."""
    return tuple(kind.name for kind in _usable_kinds() if kind.needs <= SIMULATED_CAPABILITIES)


def silent_kind_names() -> tuple[str, ...]:
    """Return the names of the kinds that others notice by waiting alone, sorted."""
    return tuple(kind.name for kind in _usable_kinds() if kind.is_silent)


def _usable_kinds() -> Iterator[FaultKind]:
    for name in kind_names():
        # Whoever asks for it by name is told why it cannot be used.
        with suppress(UsageError):
            yield fault_kind(name)


def fault_kind(name: str) -> FaultKind:
    """Return the kind of this name.

    Raises:
        UsageError: there is none, or that of a package cannot be used.
    """
    kind = _KINDS.get(name) or OFFERS.offered(name)
    if kind is None:
        raise UsageError(
            f"there is no fault called {name!r}", or_nearest(name, kind_names(), "faults")
        )
    return kind
