"""Faults that may make a voter forget are held to the promise while they strike."""

from typing import Any

import pytest

from splitbrain.contracts.fault import ActualFault
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.judge.fault_coverage import fault_coverage
from splitbrain.harness.judge.fault_results import fault_results
from splitbrain.harness.run.state_watch import StateWatch
from splitbrain.history.fault_windows import fault_windows
from splitbrain.nemesis.aim import Patience
from splitbrain.nemesis.effects import AskReports, Doing, Present, Reports, Wait
from splitbrain.nemesis.fault_options import BEYOND_PROMISE
from splitbrain.nemesis.gate import FaultGate, ReportedPromise, SparedError
from splitbrain.nemesis.holds import Holds
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.promise import NEVER, VoterReport
from tests.unit.harness.run.driven import Driven, fault

N1 = NodeName("n1")
WIPE = fault_kind("wipe")


#: Two of five take in nothing from before the others on.
LAGGING = fault(
    "partition", "n4", at_ms=1000, duration_ms=60_000, index=9, options={"nodes": ["n4", "n5"]}
)


@pytest.mark.parametrize("kind", ["wipe", "flip", "truncate"])
def test_a_voter_forgets_while_enough_others_hold_all(kind: str) -> None:
    run = Driven([fault(kind, "n2")])
    assert run.phases() == ["invoked", "verified", "healing", "removed", "resumed"]


@pytest.mark.parametrize("kind", ["wipe", "flip", "truncate"])
def test_a_voter_is_spared_while_others_lag_and_comes_back_unharmed(kind: str) -> None:
    run = Driven([LAGGING, fault(kind, "n2", at_ms=4000)])
    assert run.phases()[:4] == ["invoked", "not-applicable", "healing", "removed"]
    assert "n4, n5 did not tell" in run.evidence("not-applicable")
    assert "wipe" not in run.world.calls
    assert run.world.states[NodeName("n2")] == "running"
    assert run.world.files[NodeName("n2")] == b"kept"
    # It met nothing, though its node was down.
    windows = {window.index: window for window in fault_windows(run.events, 10**12)}
    assert windows[0].spared
    assert windows[0].healed
    told = {result.index: result for result in fault_results((), run.events)}
    assert not told[0].applied
    assert not told[0].verified
    cells = fault_coverage(
        run.events, nodes=run.world.nodes(), workload="set", end_time=10**12, state_events={}
    )
    assert {cell.kind for cell in cells} == {"partition"}


class Asked:
    """Return the voters' reports to a fault at its gate, and how long that took."""

    def __init__(self, watch: StateWatch) -> None:
        self._watch = watch
        self.present = Present()

    def result(self, doing: Doing[Any]) -> Any:
        answer: Any = None
        try:
            while True:
                match doing.send(answer):
                    case Wait(until_us):
                        self.present.now_us, answer = until_us, None
                    case AskReports():
                        answer = Reports(self._watch.reports(), self._watch.looks())
                    case other:
                        raise AssertionError(other)
        except StopIteration as over:
            return over.value


def wiped(gate: FaultGate, number: int) -> Doing[str | None]:
    """Why a wipe of this node may not strike; None: it strikes."""
    return gate.enter(WIPE, fault("wipe", f"n{number}", index=number), hit(number))


def hit(number: int) -> ActualFault:
    node = NodeName(f"n{number}")
    return ActualFault(number, "wipe", node, (node,))


def test_who_was_spared_has_not_forgotten() -> None:
    nodes = [NodeName(f"n{number}") for number in range(1, 6)]
    watch = StateWatch()
    for node in nodes:
        tell(watch, "high-watermark", 2, 7, flushed=7, node=node)
    promise = ReportedPromise(nodes, Patience(held_us=0))
    gate, asked = FaultGate(Holds(), nodes, promise), Asked(watch)
    assert asked.result(wiped(gate, 1)) is None
    # Nobody looks any more, so that nothing is known.
    wipe = fault("wipe", "n1", index=1)
    with pytest.raises(SparedError):
        asked.result(gate.before_forgetting(WIPE, wipe, hit(1), asked.present))
    assert asked.present.now_us == 1_000_000
    # Two of five may forget. Had n1, it would be one too many already.
    assert asked.result(wiped(gate, 2)) is None
    assert asked.result(wiped(gate, 3)) is None
    assert asked.result(wiped(gate, 4)) is not None


def test_a_plan_beyond_the_promise_strikes_all_the_same() -> None:
    run = Driven([LAGGING, fault("wipe", "n2", at_ms=4000, options={BEYOND_PROMISE: True})])
    assert "verified" in run.phases()


def test_without_the_second_question_a_voter_would_forget_what_nobody_else_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FaultGate, "before_forgetting", lambda *_: ())
    run = Driven([LAGGING, fault("wipe", "n2", at_ms=4000)])
    assert "wipe" in run.world.calls


# --- what the nodes tell --------------------------------------------------------------------------


def tell(
    watch: StateWatch,
    kind: str,
    epoch: int,
    offset: int,
    flushed: int | None = None,
    node: NodeName = N1,
) -> None:
    detail = {} if flushed is None else {"flushed": flushed}
    watch.heard(StateEvent(node, 0, 0, kind, epoch, offset=offset, detail=detail, time=0))  # type: ignore[arg-type]


def test_a_node_holds_what_it_knows_to_be_committed_and_has_on_its_disk() -> None:
    watch = StateWatch()
    tell(watch, "append", 2, 8, flushed=3)
    assert watch.reports()[N1] == VoterReport(epoch=2, end=8)
    tell(watch, "commit", 2, 7, flushed=5)
    assert watch.reports()[N1] == VoterReport(2, 8, 7, 5, 2)
    tell(watch, "append", 2, 9, flushed=8)
    assert watch.reports()[N1] == VoterReport(2, 9, 7, 7, 2)


def test_what_was_committed_in_an_earlier_epoch_proves_nothing_of_a_new_one() -> None:
    watch = StateWatch()
    tell(watch, "high-watermark", 2, 7, flushed=7)
    tell(watch, "append", 3, 9, flushed=9)
    assert watch.reports()[N1] == VoterReport(3, 9, 7, 7, 2)


def test_a_truncation_and_a_start_with_less_take_back_what_is_held() -> None:
    watch = StateWatch()
    tell(watch, "high-watermark", 2, 7, flushed=7)
    tell(watch, "truncate", 3, 5, flushed=5)
    assert watch.reports()[N1].held == 5
    tell(watch, "started", 3, 0, flushed=0)
    assert watch.reports()[N1] == VoterReport(3, 0, 7, 0, 2)


def test_a_node_that_does_not_tell_what_is_on_its_disk_holds_nothing() -> None:
    watch = StateWatch()
    tell(watch, "high-watermark", 2, 7)
    assert watch.reports()[N1].held == NEVER
