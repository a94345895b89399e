"""Times for which a member of a share group surely holds what it was given; pure.

A hold is over when its lock expires, when its member settles or leaves, and whenever the leader
forgets the member, of which nobody is told: their connection broke, or another leader came. So a
hold is sure only up to the last operation of its client that the same leader answered to the same
member, in the same epoch: then it was in force when that one was asked for. A client whose
connection broke must tell so, and not go on by a new one as if nothing had been: its log is
unanswered or unclear, or it tells no epochs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from splitbrain.checker.findings import end_of
from splitbrain.checker.share_groups.readings import Acquired, Settlement, one_epoch
from splitbrain.contracts.share_groups import ACQUIRE, LEAVE, SETTLE
from splitbrain.history.records import PairedOperation

#: They end whatever their client holds; an answered ``acquire`` alone does not.
_OF_MEMBERS: Final = (ACQUIRE, SETTLE, LEAVE)


class Session:
    """Time in which one leader answers one member of a log, which gives nothing back."""

    def __init__(self, member: str, epoch: int, start: int) -> None:
        self.member = member
        self.epoch = epoch
        #: Up to here it is sure.
        self.until = start


#: Sessions in which records were given, by the index of the acquire and the log.
Sessions = Mapping[tuple[int, str], Session]


class Two(NamedTuple):
    """Two acquires that were given one record, the first of which surely still held it."""

    first: Acquired
    second: Acquired


class _Hold(NamedTuple):
    until: int
    acquired: Acquired


def sessions_of(
    operations: Iterable[PairedOperation],
    acquired: Mapping[int, Acquired],
    settlements: Mapping[int, Settlement],
) -> Sessions:
    """Return the sessions of all acquires; operations in their order, answers by their index."""
    found: dict[tuple[int, str], Session] = {}
    #: By process and log.
    by_process: dict[int, dict[str, Session]] = {}
    for operation in operations:
        open_ = by_process.get(operation.process, {})
        answer = acquired.get(operation.index)
        # A final one settles what it is given.
        if answer is not None and not operation.final:
            open_ = by_process[operation.process] = _continued(open_, answer)
            for log in answer.records:
                if log in open_:
                    found[operation.index, log] = open_[log]
            continue
        settlement = settlements.get(operation.index)
        if settlement is not None:
            _prolong(open_, settlement)
        # The client of an info is replaced, whatever it was.
        if operation.f in _OF_MEMBERS or operation.type == "info":
            by_process.pop(operation.process, None)
    return found


def two_holders(log: str, deliveries: Sequence[Acquired], sessions: Sessions) -> list[Two]:
    """Return of each acquire of one record who surely held it then; n log n."""
    found: list[Two] = []
    #: By epoch the two holds that last longest, of different processes.
    longest: dict[int, list[_Hold]] = {}
    by_end = sorted(deliveries, key=lambda each: -end_of(each.operation))
    for second in sorted(deliveries, key=lambda each: each.operation.start):
        while by_end and end_of(by_end[-1].operation) < second.operation.start:
            first = by_end.pop()
            session = sessions.get((first.operation.index, log))
            if session is not None:
                hold = _Hold(min(first.operation.start + first.lock_ns, session.until), first)
                longest[session.epoch] = _longest([*longest.get(session.epoch, ()), hold])
        epoch = one_epoch(second, log)
        for hold in longest.get(epoch, ()) if epoch is not None else ():
            is_other = hold.acquired.operation.process != second.operation.process
            if is_other and end_of(second.operation) < hold.until:
                found.append(Two(hold.acquired, second))
                break
    return found


def _continued(open_: Mapping[str, Session], answer: Acquired) -> dict[str, Session]:
    """Return the sessions that an answered acquire goes on with, or begins."""
    found: dict[str, Session] = {}
    for log in answer.epochs:
        epoch = one_epoch(answer, log)
        if epoch is None or log in answer.unanswered:
            continue
        session = open_.get(log)
        if session is None or (session.member, session.epoch) != (answer.member, epoch):
            session = Session(answer.member, epoch, answer.operation.start)
        session.until = answer.operation.start
        found[log] = session
    return found


def _prolong(open_: Mapping[str, Session], settlement: Settlement) -> None:
    for log, session in open_.items():
        is_same = (session.member, session.epoch) == (settlement.member, one_epoch(settlement, log))
        if is_same and log not in settlement.unclear:
            session.until = settlement.operation.start


def _longest(holds: Sequence[_Hold]) -> list[_Hold]:
    """Return the longest hold, and the longest of another process."""
    first, *others = sorted(holds, key=lambda hold: -hold.until)
    process = first.acquired.operation.process
    return [first, *[one for one in others if one.acquired.operation.process != process][:1]]
