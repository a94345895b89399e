"""Things of one sort that installed packages offer, as entry points of the sort's group.

Looking through the packages takes milliseconds, so it is done once a process; loading what one of
them offers waits until that is asked for by name.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Generic, TypeVar

from splitbrain.contracts.errors import UsageError, in_one_line

Kind = TypeVar("Kind")

_OURS: Final = "splitbrain itself"


class Offers(Generic[Kind]):
    """Things of one sort, by name."""

    def __init__(
        self,
        noun: str,
        group: str,
        base: type[Kind],
        ours: Collection[str],
        *,
        lacks: Callable[[Any], str | None] = lambda _: None,
    ) -> None:
        """Look for nothing yet.

        Args:
            noun: the sort, for sentences: "system".
            group: name of the group of entry points.
            base: type of every thing of this sort.
            ours: names of those that are here without a package.
            lacks: says what a thing of this type still lacks, as a noun; None: nothing.
        """
        self.noun = noun
        self.group = group
        self._base = base
        self._ours = ours
        self._lacks = lacks

    def names(self) -> frozenset[str]:
        """Return the names of all that packages offer."""
        return frozenset(offer.name for offer in entry_points_of(self.group))

    def offered(self, name: str, others: Sequence[str] = ()) -> Kind | None:
        """Return what a package offers by this name, fresh if that is a class; None if none does.

        Args:
            name: as the entry point has it.
            others: files that have a thing of this name.

        Raises:
            UsageError: it cannot be used, or there are several of this name.
        """
        offers = [offer for offer in entry_points_of(self.group) if offer.name == name]
        if not offers and not others:
            return None
        ours = [_OURS] if name in self._ours else []
        origins = [*ours, *others, *map(_origin, offers)]
        if len(origins) > 1:
            raise UsageError(
                f"the {self.noun} {name!r} is offered by {' and by '.join(origins)}",
                "Uninstall or leave out all but one, or give it another name",
            )
        return self._loaded(offers[0]) if offers else None

    def _loaded(self, offer: EntryPoint) -> Kind:
        named = f"the {self.noun} {offer.name!r} of {_origin(offer)}"
        try:
            return self.made(offer.load(), named, offer.name, offer.value)
        except UsageError:
            raise
        # Anything that a package raises, SystemExit included, is the package's fault.
        except (Exception, SystemExit) as error:
            raise UsageError(
                f"{named} cannot be used: {in_one_line(error)}",
                "Repair the package, or uninstall it",
            ) from error

    def made(self, found: Any, named: str, name: str | None, at: str) -> Kind:
        """Return the thing that was found, or an instance of it.

        Args:
            found: a class that is made without arguments, or an instance.
            named: what it is, for sentences.
            name: what it must call itself; None: anything.
            at: where it is, for sentences.

        Raises:
            UsageError: it is of another sort, or has another name; errors of its class are its own.
        """
        is_class = isinstance(found, type) and not isinstance(found, self._base)
        made: Any = found() if is_class else found
        if not isinstance(made, self._base):
            raise UsageError(
                f"{named} is no {self.noun} but of type {type(made).__name__}",
                f"Derive {at} from {self._base.__module__}.{self._base.__qualname__}",
            )
        if (lacking := self._lacks(made)) is not None:
            raise UsageError(f"{named} lacks {lacking}", f"Add it to {at}")
        # A class may have left it out, and a function has none.
        own_name = getattr(made, "name", None)
        if name is not None and own_name != name:
            raise UsageError(
                f"{named} calls itself {own_name!r}", "Give class and entry point the same name"
            )
        return made


@cache
def entry_points_of(group: str) -> tuple[EntryPoint, ...]:
    """Return the group's entry points of all installed packages."""
    return tuple(entry_points(group=group))


def _origin(offer: EntryPoint) -> str:
    package = "a package without a name" if offer.dist is None else offer.dist.name
    return f"{package} ({offer.value})"
