"""Invariants of epochs, votes and leaders in the whole quorum.

Must never take a vote for cast before it has left its node.
"""
# ruff: noqa: D102 - the moments are documented once, in Invariant

from typing import Final, NamedTuple

from splitbrain.nodes.quorum.effects import (
    AdvanceHighWatermark,
    AnswerFetch,
    AnswerFetchSnapshot,
    PersistQuorumState,
    ReportState,
    SendAnswer,
    SendRequest,
)
from splitbrain.nodes.quorum.identifiers import NO_EPOCH, NodeId
from splitbrain.nodes.quorum.messages import VoteAnswer, VoteRequest
from splitbrain.nodes.quorum.persistent import QuorumState
from splitbrain.nodes.quorum.voters import ReplicaKey
from splitbrain.nodes.storage.layout import QUORUM_STATE
from splitbrain.simulation.kraft.ghost import Ghost, Machine
from splitbrain.simulation.kraft.invariants import Invariant
from splitbrain.simulation.kraft.messages import message_name
from splitbrain.simulation.kraft.wording import moment_in_words, state_in_words

_LEADER: Final = "leader"
_GIVES_NO_VOTE: Final = (AnswerFetch, AnswerFetchSnapshot)


class ElectionSafety(Invariant):
    """At most one node, in one life, leads an epoch."""

    id = "INV-01"
    before_effects = (ReportState,)

    def before(self, machine: Machine, effect: ReportState) -> None:
        if effect.kind == "role" and effect.role == _LEADER:
            who = (machine.host.node_id, machine.host.incarnation)
            first = self.ghost.leaders.get(effect.epoch, who)
            if first != who:
                raise self.violated(
                    f"epoch {effect.epoch} is led by n{first[0]} in life {first[1]} and by"
                    f" n{who[0]} in life {who[1]}",
                    machine,
                )


class MajorityElects(Invariant):
    """An epoch's leader has the votes of a majority of the voter set, given in that epoch."""

    id = "INV-26"
    before_effects = (SendAnswer, SendRequest, ReportState)

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: (epoch, candidate) -> who voted for it; counts once the vote has left its node.
        self._voters: dict[tuple[int, ReplicaKey], dict[NodeId, None]] = {}

    def before(self, machine: Machine, effect: SendAnswer | SendRequest | ReportState) -> None:
        if not isinstance(effect, ReportState):
            vote = cast_vote(machine, effect)
            if vote is not None and self.ghost.voters.get(machine.key.node_id) == (
                machine.key.directory_id
            ):
                self._voters.setdefault(vote, {})[machine.key.node_id] = None
            return
        if effect.kind == "role" and effect.role == _LEADER:
            # The only voter of a set asks nobody.
            voters = {**self._voters.get((effect.epoch, machine.key), {})}
            if len(self.ghost.voters) == 1:
                voters[machine.host.node_id] = None
            if len(voters) < self.ghost.majority:
                names = ", ".join(f"n{voter}" for voter in voters) or "nobody"
                raise self.violated(
                    f"n{machine.host.node_id} leads epoch {effect.epoch} with the votes of {names}"
                    f" alone, of {len(self.ghost.voters)} voters",
                    machine,
                )


class VotesForCompleteLogs(Invariant):
    """No vote and no pre-vote is given to a candidate whose log is behind the voter's own.

    The later last epoch is ahead, then the longer log, as of when the voter was asked.
    """

    id = "INV-27"
    before_effects = (SendAnswer,)

    def before(self, machine: Machine, effect: SendAnswer) -> None:
        if not (isinstance(effect.answer, VoteAnswer) and effect.answer.granted):
            return
        request = machine.asked.get(effect.connection)
        mine = machine.when_asked.get(effect.connection)
        if request is None or mine is None:
            return
        if (request.last_epoch, request.end_offset) < mine:
            raise self.violated(
                f"n{machine.host.node_id} is for n{request.candidate_id} in epoch {request.epoch},"
                f" whose log ends at {request.end_offset} in epoch {request.last_epoch}, and its"
                f" own at {mine[1]} in epoch {mine[0]}",
                machine,
            )


class LeaderCompleteness(Invariant):
    """A leader has every record that an earlier epoch committed, whichever happens first.

    Not those of later epochs: a candidate that slept may count its votes long after others went
    on without it; it leads an epoch that is over, and can commit nothing.
    """

    id = "INV-02"
    before_effects = (ReportState,)
    after_effects = (AdvanceHighWatermark,)

    def before(self, machine: Machine, effect: ReportState) -> None:
        if effect.kind == "role" and effect.role == _LEADER:
            self._check(machine, effect.epoch)

    def after(self, machine: Machine, effect: AdvanceHighWatermark) -> None:
        epoch = machine.host.node.replica.epoch
        if self.ghost.highest_led > epoch and machine.host.node.replica.role == _LEADER:
            # It committed late: who led a later epoch by then must have had the record.
            for other in self.ghost.machines.values():
                if other.log is not None and other.host.node.replica.role == _LEADER:
                    self._check(other, other.host.node.replica.epoch)

    def _check(self, machine: Machine, epoch: int) -> None:
        ghost, log = self.ghost, machine.log
        assert log is not None
        agreed = ghost.agreement(log)
        if agreed < len(ghost.committed) and ghost.commit_epochs[agreed] < epoch:
            raise self.violated(
                f"n{machine.host.node_id} leads epoch {epoch} without the committed record at"
                f" {agreed}",
                machine,
            )


class _Deed(NamedTuple):
    """When a node did something, and in which life."""

    life: int
    time_us: int

    def __str__(self) -> str:
        return f"in life {self.life}, {moment_in_words(self.time_us)}"


class OneVote(Invariant):
    """A node votes once per epoch, and neither its epoch nor its vote is ever taken back."""

    id = "INV-04"
    before_effects = (SendAnswer, SendRequest, PersistQuorumState)

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: (voter, its disk, epoch) -> for whom it voted; counts once the vote has left the node.
        self._votes: dict[tuple[ReplicaKey, int], tuple[ReplicaKey, _Deed]] = {}
        #: (node, its disk, state) -> when the node first had it written.
        self._written: dict[tuple[ReplicaKey, QuorumState], _Deed] = {}
        #: Content of each disk when the present life began.
        self._begun_with: dict[NodeId, QuorumState | None] = {}

    def started(self, machine: Machine) -> None:
        self._begun_with[machine.host.node_id] = machine.quorum_state()

    def before(
        self, machine: Machine, effect: SendAnswer | SendRequest | PersistQuorumState
    ) -> None:
        if isinstance(effect, PersistQuorumState):
            self._check_persisted(machine, effect)
            return
        vote = cast_vote(machine, effect)
        if vote is None:
            return
        epoch, candidate = vote
        deed = (candidate, self._now(machine))
        first, cast = self._votes.setdefault((machine.key, epoch), deed)
        if first != candidate:
            raise self.violated(
                f"n{machine.host.node_id} votes for n{candidate.node_id} in epoch {epoch} after"
                f" n{first.node_id}; {self._lost_vote(machine, epoch, first, cast)}",
                machine,
            )

    def _lost_vote(self, machine: Machine, epoch: int, first: ReplicaKey, cast: _Deed) -> str:
        """Return what became of the first vote."""
        told = f"the one for n{first.node_id} left {cast}"
        life = machine.host.incarnation
        if cast.life == life:
            state = state_in_words(machine.quorum_state())
            return f"{told}: both are of one life, no restart lost the first; its disk has {state}"
        state = self._begun_with.get(machine.host.node_id)
        is_lost = state is None or (state.epoch, state.voted_id) != (epoch, first.node_id)
        lost = "the vote was lost" if is_lost else "the node read the vote and gave another"
        return f"{told}, and life {life} began with {state_in_words(state)}: {lost}"

    def _check_persisted(self, machine: Machine, effect: PersistQuorumState) -> None:
        old, new = machine.quorum_state(), effect.state
        if old is None or machine.disk_past.has_rotted(QUORUM_STATE):
            return
        keeps_vote = old.voted_id in (None, new.voted_id)
        if new.epoch < old.epoch or (new.epoch == old.epoch and not keeps_vote):
            raise self.violated(
                f"n{machine.host.node_id} overwrites {state_in_words(old)} with"
                f" {state_in_words(new)}; {self._taken_back(machine, old, new)}",
                machine,
            )
        self._written.setdefault((machine.key, new), self._now(machine))

    def _taken_back(self, machine: Machine, old: QuorumState, new: QuorumState) -> str:
        """Return what a new state contradicts, since when it stood, and what had left of it."""
        written = self._written.get((machine.key, old))
        since = "" if written is None else f", written {written}"
        lost = f"its epoch falls from {old.epoch} to {new.epoch}"
        if new.epoch == old.epoch:
            lost = f"its vote for n{old.voted_id} in epoch {old.epoch} is lost"
        vote = self._votes.get((machine.key, old.epoch))
        left = "no vote of that epoch has left it"
        if vote is not None:
            left = f"a vote for n{vote[0].node_id} left {vote[1]}"
        life = machine.host.incarnation
        return f"{lost} in life {life} (the old state{since}); {left}"

    def _now(self, machine: Machine) -> _Deed:
        return _Deed(machine.host.incarnation, self.ghost.world.now)


class DurableBeforeSaid(Invariant):
    """No message leaves before the epoch it names, and the vote it gives, are on disk."""

    id = "INV-05"
    before_effects = (SendAnswer, SendRequest, AnswerFetch, AnswerFetchSnapshot)
    needs_promise = False

    def before(
        self,
        machine: Machine,
        effect: SendAnswer | SendRequest | AnswerFetch | AnswerFetchSnapshot,
    ) -> None:
        message = effect.request if isinstance(effect, SendRequest) else effect.answer
        state = machine.quorum_state()
        if machine.disk_past.has_rotted(QUORUM_STATE):
            return
        epoch = getattr(message, "epoch", NO_EPOCH)
        # One that no fault has harmed and that cannot be read is as good as none.
        if state is None or epoch > state.epoch:
            raise self.violated(
                f"n{machine.host.node_id} speaks in epoch {epoch} ({message_name(message)}), its"
                f" disk has {state_in_words(state)}",
                machine,
            )
        has_none = isinstance(effect, _GIVES_NO_VOTE)
        vote = None if has_none else cast_vote(machine, effect)
        if vote is not None and vote[0] == state.epoch and state.voted_id != vote[1].node_id:
            raise self.violated(
                f"n{machine.host.node_id} votes for n{vote[1].node_id} in epoch {vote[0]}, its disk"
                f" has {state_in_words(state)}",
                machine,
            )


def cast_vote(machine: Machine, effect: SendAnswer | SendRequest) -> tuple[int, ReplicaKey] | None:
    """Return the vote that this message gives, if it gives one: to a candidate, or to itself."""
    if isinstance(effect, SendRequest):
        request = effect.request
        if isinstance(request, VoteRequest) and not request.pre_vote:
            return request.epoch, machine.key
        return None
    if isinstance(effect.answer, VoteAnswer) and effect.answer.granted:
        request = machine.asked.get(effect.connection)
        if request is not None and not request.pre_vote:
            candidate = ReplicaKey(request.candidate_id, request.candidate_directory_id)
            return request.epoch, candidate
    return None
