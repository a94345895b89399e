"""The oracle sees what bugs and broken rules do, tells it in words, and changes nothing."""

from collections.abc import Callable

import pytest

from splitbrain.contracts.scenario import LoadOptions, RecoveryOptions, Scenario, ViolationError
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.trial import draw
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.nodes.quorum.effects import SendAnswer, SendRequest
from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId
from splitbrain.nodes.quorum.log_positions import LogPositions
from splitbrain.nodes.quorum.outbox import Outbox
from splitbrain.nodes.quorum.persistent import EMPTY_STATE, QuorumState
from splitbrain.nodes.registers.commands import CompareAndSet, encode_command
from splitbrain.nodes.registers.machine import Applied
from splitbrain.nodes.server.registers.proposals import Proposals
from splitbrain.nodes.storage.layout import log_folder, segment_name
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from splitbrain.simulation.kraft.mirrored_log import Entry
from splitbrain.simulation.kraft.system import KraftSimulation
from splitbrain.simulation.kraft.wording import (
    class_of_end,
    record_in_words,
    state_in_words,
    value_in_words,
)
from tests.planted import with_bug
from tests.unit.simulation.kraft.small_quorum import Quorum

#: Bug, and the invariant that sees it first.
RED = [
    with_bug("vote-not-persisted", "vote-not-persisted", "INV-05"),
    with_bug("ack-before-fsync", "ack-before-fsync", "INV-07"),
    with_bug("prior-epoch-commit", "prior-epoch-commit", "INV-09"),
    ("ack-before-commit", "INV-12"),
]


@pytest.mark.parametrize(("bug", "invariant"), RED)
def test_a_planted_bug_is_seen(bug: str, invariant: str) -> None:
    trial = SimOptions(system="kraft", bugs=(bug,))
    outcomes = (simulate(draw(seed, trial), KraftSimulation()) for seed in range(10))
    violations = (outcome.violation for outcome in outcomes if outcome.violation is not None)
    first = next(violations, None)
    assert first is not None
    assert first.invariant == invariant


def test_a_run_is_the_same_whoever_watches() -> None:
    scenario = Scenario(system="kraft", seed=3, load_us=500_000)
    watched = simulate(scenario, KraftSimulation())
    everybody = frozenset(invariant.id for invariant in INVARIANTS)
    unwatched = simulate(scenario, KraftSimulation(), muted=everybody)
    assert watched.violation is None
    assert (watched.trace_hash, watched.steps) == (unwatched.trace_hash, unwatched.steps)
    assert watched.figures == unwatched.figures


def flip(quorum: Quorum, position: int) -> str:
    """A follower's first batch rots at this byte, below its durable mark, and it starts again."""
    host = quorum.followers[0].host
    quorum.oracle.harmed(host, "bytes rotted")
    host.disk.rot(log_folder(host.folder) / segment_name(0), position)
    quorum.restart(host.name)
    return host.ended or "started"


#: Of the leader epoch in a batch's header, and of its records.
EPOCH, RECORDS = 15, 66


@pytest.mark.parametrize("position", [EPOCH, RECORDS])
def test_a_node_that_refuses_rotten_bytes_is_no_finding(position: int) -> None:
    assert flip(Quorum(), position).startswith("could not start")


@pytest.mark.parametrize(
    "position",
    [
        with_bug("corruption-as-torn-tail", RECORDS),
        with_bug("checksum-not-verified", RECORDS),
        with_bug("epoch-rot-unnoticed", EPOCH),
    ],
)
def test_a_node_that_begins_with_rotten_bytes_is_one(position: int) -> None:
    with pytest.raises(ViolationError) as caught:
        flip(Quorum(), position)
    assert caught.value.invariant in ("INV-03", "INV-15")


Patch = pytest.MonkeyPatch


def messages_are_not_held(patch: Patch) -> None:
    def mutant(self: Outbox, message: SendRequest | SendAnswer) -> None:
        self.emit(message)

    patch.setattr(Outbox, "send", mutant)


def fetches_promise_what_is_not_flushed(patch: Patch) -> None:
    patch.setattr(LogPositions, "settled", property(lambda _: True))


#: Mutant, and who sees it first.
MUTANTS: list[tuple[Callable[[Patch], None], str]] = [
    (messages_are_not_held, "INV-05"),
    (fetches_promise_what_is_not_flushed, "INV-07"),
]


@pytest.mark.parametrize(
    ("mutate", "invariant"), MUTANTS, ids=[mutant[0].__name__ for mutant in MUTANTS]
)
def test_the_world_misses_the_rule(
    monkeypatch: Patch, mutate: Callable[[Patch], None], invariant: str
) -> None:
    mutate(monkeypatch)
    outcomes = (
        simulate(draw(seed, SimOptions(system="kraft")), KraftSimulation()) for seed in range(5)
    )
    violations = (outcome.violation for outcome in outcomes if outcome.violation is not None)
    first = next(violations, None)
    assert first is not None
    assert first.invariant == invariant


CALM = Scenario(
    system="kraft",
    seed=1,
    load=LoadOptions(clients=3, rate=100.0),
    load_us=500_000,
    recovery=RecoveryOptions(patience_us=2_000_000),
)


def test_a_quorum_that_answers_everything_makes_progress() -> None:
    assert simulate(CALM, KraftSimulation()).violation is None


@pytest.mark.parametrize("mute", ["write", "cas"])
def test_a_kind_that_is_never_acknowledged_is_no_progress(
    mute: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = Proposals.applied

    def mutant(self: Proposals, offset: int, epoch: int, result: Applied | None) -> None:
        waiting = self._appended.get(offset, [])
        self._appended[offset] = [one for one in waiting if one.request.kind != mute]
        applied(self, offset, epoch, result)

    monkeypatch.setattr(Proposals, "applied", mutant)
    violation = simulate(CALM, KraftSimulation()).violation
    assert violation is not None
    assert violation.invariant == "INV-40"
    assert f"no {mute} that was invoked after the heal" in violation.problem


VOTED = QuorumState(Epoch(3), None, NodeId(2), DirectoryId("d"))
LED = QuorumState(Epoch(3), NodeId(1), None, None)


def test_states_are_told() -> None:
    assert state_in_words(EMPTY_STATE) == "epoch 0, with no vote"
    assert state_in_words(VOTED) == "epoch 3, with a vote for n2"
    assert state_in_words(LED) == "epoch 3 led by n1, with no vote"
    assert state_in_words(None) == "a quorum state that cannot be read"


def test_records_are_told() -> None:
    payload = encode_command(CompareAndSet("op-8", "k", None, [1]))
    assert record_in_words(Entry(2, payload)) == "the cas of [null,[1]] to k (op-8) of epoch 2"
    assert record_in_words(Entry(2, None)) == "raft's own record of epoch 2"
    told = "a record that is no command (1 bytes: 78) of epoch 2"
    assert record_in_words(Entry(2, b"x")) == told
    assert record_in_words(Entry(2, bytes(17))).endswith("00 00, ...) of epoch 2")
    assert record_in_words(None) == "nothing"
    assert [value_in_words(value) for value in (None, True, [1, "x"])] == [
        "nothing", "true", '[1,"x"]',
    ]  # fmt: skip


ENDS = [
    ("exit code 74: disk failed: a sync", "exit code 74"),
    (
        "exit code 71: leader 1 of epoch 3 wants the log truncated to 5",
        "leader # of epoch # wants the log truncated to #",
    ),
    ("leader 7 of epoch 44", "leader # of epoch #"),
    ("exit code 71: INV-23 violated: n2 leads without 4", "INV-23 violated: # leads without #"),
    (
        "could not start: /n1/00.log is corrupt at byte 17 (log offset 3): checksum is 0x1f",
        "could not start: # is corrupt",
    ),
    (
        "could not start: /n2/00.log is corrupt (log offset 9): no batch",
        "could not start: # is corrupt",
    ),
]


@pytest.mark.parametrize(("reason", "kind"), ENDS)
def test_an_end_is_of_a_class_without_numbers_and_names(reason: str, kind: str) -> None:
    assert class_of_end(reason) == kind
