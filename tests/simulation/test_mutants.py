"""Rules that no planted bug switches off: without each of them, the simulated world turns red."""

from collections.abc import Callable

import pytest

from nodes.quorum import replica as replica_module
from nodes.quorum.effects import SendAnswer, SendRequest
from nodes.quorum.errors import InvariantViolation
from nodes.quorum.follower import Follower
from nodes.quorum.identifiers import ConnectionId, NodeId
from nodes.quorum.linearizable_reads import LinearizableReads
from nodes.quorum.log_positions import LogPositions
from nodes.quorum.messages import ErrorCode, FetchAnswer, FetchRequest, VoteRequest
from nodes.quorum.outbox import Outbox
from nodes.quorum.role import Role, RoleContext
from tests.simulation.scenarios import (
    a_diverging_answer_leaves_foreign_records,
    a_fetch_of_the_past_reaches_a_deposed_leader,
)
from tests.simulation.schedule import run_seed

Patch = pytest.MonkeyPatch


def high_watermark_from_a_diverging_answer(patch: Patch) -> None:
    take = Follower._take

    def mutant(self: Follower, answer: FetchAnswer, asked: FetchRequest) -> bool:
        taken = take(self, answer, asked)
        if taken and answer.error is ErrorCode.NONE:
            known = self._leader_high_watermark
            self._leader_high_watermark = max(known, answer.high_watermark)
            self._follow_high_watermark()
        return taken

    patch.setattr(Follower, "_take", mutant)


def messages_are_not_held(patch: Patch) -> None:
    def mutant(self: Outbox, message: SendRequest | SendAnswer) -> None:
        self.emit(message)

    patch.setattr(Outbox, "send", mutant)


def fetches_promise_what_is_not_flushed(patch: Patch) -> None:
    patch.setattr(LogPositions, "settled", property(lambda _: True))


def votes_look_at_no_log(patch: Patch) -> None:
    def mutant(context: RoleContext, role: Role, request: VoteRequest) -> bool:
        if request.pre_vote:
            return role.grants_pre_votes
        return context.durable.leader_id is None and context.durable.voted is None

    patch.setattr(replica_module, "may_grant", mutant)


def any_fetch_confirms_a_read(patch: Patch) -> None:
    def mutant(self: LinearizableReads, voter: NodeId, connection: ConnectionId) -> None:
        del connection
        self._confirmed[voter] = self._asked_count

    patch.setattr(LinearizableReads, "fetched", mutant)


#: Mutant -> (seeds searched, who may catch it).
MUTANTS: list[tuple[Callable[[Patch], None], range, tuple[str, ...]]] = [
    (messages_are_not_held, range(5), ("INV-05",)),
    (fetches_promise_what_is_not_flushed, range(5), ("INV-07",)),
    (votes_look_at_no_log, range(12), ("INV-02",)),
]
#: Mutants that hardly any seed catches (3 and 1 of some 8,000), each with the script that does.
RARE_MUTANTS: list[tuple[Callable[[Patch], None], Callable[[], None], str]] = [
    (high_watermark_from_a_diverging_answer, a_diverging_answer_leaves_foreign_records, "INV-11"),
    (any_fetch_confirms_a_read, a_fetch_of_the_past_reaches_a_deposed_leader, "INV-10"),
]


@pytest.mark.parametrize(
    ("mutate", "seeds", "invariants"), MUTANTS, ids=[mutant[0].__name__ for mutant in MUTANTS]
)
def test_the_world_misses_the_rule(
    monkeypatch: Patch, mutate: Callable[[Patch], None], seeds: range, invariants: tuple[str, ...]
) -> None:
    mutate(monkeypatch)
    outcomes = (run_seed(seed, is_long=True) for seed in seeds)
    caught = next((outcome for outcome in outcomes if outcome.violated), None)
    assert caught is not None
    assert caught.violated in invariants


@pytest.mark.parametrize(
    ("mutate", "script", "invariant"), RARE_MUTANTS, ids=[rare[0].__name__ for rare in RARE_MUTANTS]
)
def test_the_script_misses_the_rule_and_nothing_else(
    monkeypatch: Patch, mutate: Callable[[Patch], None], script: Callable[[], None], invariant: str
) -> None:
    script()
    mutate(monkeypatch)
    with pytest.raises(InvariantViolation) as caught:
        script()
    assert caught.value.invariant == invariant
