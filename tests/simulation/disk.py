"""A simulated disk: work completes later, in order; a crash loses or tears what was not synced.

The log is a flat list of entries, a batch beginning where ``first`` is set. Readers see the page
cache (``log``); ``durable_log`` is what a crash leaves for certain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from nodes.quorum.identifiers import Epoch, Offset
from nodes.quorum.persistent import EpochStart, LogShape, QuorumState

if TYPE_CHECKING:
    from tests.simulation.world import World


class Entry(msgspec.Struct, frozen=True):
    """One record; ``payload`` is None for a LeaderChange."""

    epoch: Epoch
    payload: bytes | None
    #: Whether a batch begins here.
    first: bool


class LogWork(msgspec.Struct, frozen=True):
    """An append (entries) or a truncation (none) that is not durable yet."""

    submission: int
    #: Where the log is cut before the entries are added.
    offset: Offset
    entries: tuple[Entry, ...]


class Disk:
    """What one node's storage holds, across its lives."""

    def __init__(self, world: World, state: QuorumState) -> None:
        self._world = world
        self.durable_state = state
        self.durable_log: list[Entry] = []
        self.log: list[Entry] = []
        self._states: list[tuple[int, QuorumState]] = []
        self._work: list[LogWork] = []
        self._state_busy = False
        self._log_busy = False
        self._life = 0

    def submit_state(self, version: int, state: QuorumState, done: Callable[[int], None]) -> None:
        """Writes a quorum state; ``done(version)`` follows."""
        self._states.append((version, state))
        if not self._state_busy:
            self._write_state(done)

    def submit_log(
        self,
        submission: int,
        offset: Offset,
        entries: tuple[Entry, ...],
        done: Callable[[int], None],
    ) -> None:
        """Cuts the log at ``offset`` and adds entries; ``done(submission)`` follows."""
        del self.log[offset:]
        self.log.extend(entries)
        self._work.append(LogWork(submission, offset, entries))
        if not self._log_busy:
            self._sync_log(done)

    def crash(self) -> None:
        """Loses what was not synced, but for a prefix of it in some cases."""
        self._life += 1
        world = self._world
        if world.chance("torn", world.swarm.torn_share):
            for work in self._work[: world.between("torn", 0, len(self._work))]:
                self._apply(work)
            if self._states and world.chance("torn", 0.5):
                self.durable_state = world.pick("torn", self._states)[1]
        self._states.clear()
        self._work.clear()
        self._state_busy = self._log_busy = False
        self.log = list(self.durable_log)

    def shape(self) -> LogShape:
        """What recovery finds."""
        starts: list[EpochStart] = []
        for offset, entry in enumerate(self.log):
            if not starts or entry.epoch > starts[-1].epoch:
                starts.append(EpochStart(entry.epoch, Offset(offset)))
        return LogShape(Offset(0), Offset(len(self.log)), tuple(starts))

    def _write_state(self, done: Callable[[int], None]) -> None:
        version, state = self._states[-1]
        life = self._life
        self._state_busy = True

        def complete() -> None:
            if life != self._life:
                return
            self.durable_state = state
            self._states = [pending for pending in self._states if pending[0] > version]
            self._state_busy = False
            if self._states:
                self._write_state(done)
            done(version)

        self._world.after(self._latency(), complete)

    def _sync_log(self, done: Callable[[int], None]) -> None:
        """One sync covers what was submitted before it began."""
        covered = len(self._work)
        last = self._work[-1].submission
        life = self._life
        self._log_busy = True

        def complete() -> None:
            if life != self._life:
                return
            for work in self._work[:covered]:
                self._apply(work)
            del self._work[:covered]
            self._log_busy = False
            if self._work:
                self._sync_log(done)
            done(last)

        self._world.after(self._latency(), complete)

    def _apply(self, work: LogWork) -> None:
        del self.durable_log[work.offset :]
        self.durable_log.extend(work.entries)

    def _latency(self) -> int:
        swarm = self._world.swarm
        return self._world.between("disk", swarm.disk_us_min, swarm.disk_us_max)
