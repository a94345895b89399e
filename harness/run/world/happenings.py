"""Waits for what happens at the nodes of a world.

One watcher per kind of happening, so that a world in which nobody waits for it pays nothing. One
told may end the very step in which it was called: everybody who waited for the same happening is
told before ``NodeCrashed`` is let pass.
"""

from collections.abc import Callable

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import NodeCrashed
from splitbrain.simulation.world.world import SimulatedWorld


class _Waiting:
    __slots__ = ("fits", "left", "tell")

    def __init__(
        self, count: int, fits: Callable[[NodeName], bool], tell: Callable[[NodeName], None]
    ) -> None:
        #: How many happenings that fit must still come, the last one included.
        self.left = max(1, count)
        self.fits = fits
        self.tell = tell


class Happenings:
    """All that is waited for in one world."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._waiting: dict[str, list[_Waiting]] = {}

    def wait(
        self,
        name: str,
        count: int,
        fits: Callable[[NodeName], bool],
        tell: Callable[[NodeName], None],
    ) -> None:
        """Tell of the ``count``-th happening of this name that fits, once, with its node."""
        waiting = self._waiting.get(name)
        if waiting is None:
            waiting = self._waiting[name] = []
            self._world.watch(name, self._happened)
        waiting.append(_Waiting(count, fits, tell))

    def _happened(self, node: NodeName, name: str) -> None:
        waiting = self._waiting[name]
        due: list[_Waiting] = []
        for one in waiting:
            if one.fits(node):
                one.left -= 1
                if one.left == 0:
                    due.append(one)
        if not due:
            return
        waiting[:] = [one for one in waiting if one.left]
        crash: NodeCrashed | None = None
        for one in due:
            try:
                one.tell(node)
            except NodeCrashed as crashed:
                crash = crashed
        if crash is not None:
            raise crash
