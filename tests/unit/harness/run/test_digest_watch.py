"""Running members are asked for their digests during a run and at its end, and are compared."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.errors import AdapterError
from splitbrain.contracts.member_digest import DigestAnswer, MemberDigest
from splitbrain.contracts.names import NodeName
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.results import Results
from splitbrain.harness.run.digest_watch import DigestWatch
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.history.plan import decode_plan
from splitbrain.history.writer import LineWriter
from tests.unit.harness.fake_quorum import FakeSystem
from tests.unit.harness.judged_runs import edit, judged, judged_run, verdict_of
from tests.unit.harness.run_fake import FakeRun, fault

pytestmark = pytest.mark.usefixtures("in_process")

N1, N2, N3 = (NodeName(f"n{number}") for number in (1, 2, 3))
#: A member's word, whatever its type.
Answer = Any


class TellingSystem(FakeSystem):
    """A quorum whose members tell digests."""

    declares_digests = True

    def digest(self, runtime: Any, node: NodeName, timeout_s: float) -> Answer:
        with self.quorum.lock:
            fake = self.quorum.nodes[node]
            return MemberDigest(len(fake.log), repr(sorted(fake.registers.items())))


def a_run(folder: Path, system: type[FakeSystem] = TellingSystem, **options: Any) -> FakeRun:
    run = FakeRun(folder, **options)
    run.system = system(run.quorum)
    return run


def answers(run: FakeRun) -> list[DigestAnswer]:
    return run.lines(run.outcome.folder.digests, DigestAnswer)


def result_of(found: Results) -> tuple[Verdict, str]:
    (result,) = (each for each in found.checkers if each.checker == "member-digests")
    return result.verdict, result.reason


def test_a_run_asks_its_members_and_they_agree(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    assert run.run().failure is None
    last = [answer for answer in answers(run) if answer.final]
    assert [answer.node for answer in last] == ["n1", "n2", "n3"]
    assert len({msgspec.json.encode(answer.told) for answer in last}) == 1
    # While clients worked, too.
    assert len(answers(run)) > len(last)
    assert result_of(judged_run(run))[0] is Verdict.VALID


def test_the_judgement_needs_no_adapter_and_believes_no_changed_record(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    folder = run.run().folder

    def diverge(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        lines[-1]["told"]["digest"] = "another"
        return lines

    edit(folder.digests, diverge)
    assert result_of(judged_run(run))[0] is Verdict.UNKNOWN
    assert result_of(judged(folder))[0] is Verdict.INVALID
    folder.digests.unlink()
    assert result_of(judged(folder)) == (Verdict.UNKNOWN, "No member was asked for a digest.")


def test_a_killed_member_is_not_asked(tmp_path: Path) -> None:
    run = a_run(tmp_path, time_limit_s=2.5)
    run.options = msgspec.structs.replace(
        run.options, schedule=(fault("kill", "n3", at_ms=200, duration_ms=1600),)
    )
    assert run.run().failure is None
    asked = [answer.node for answer in answers(run)]
    assert asked.count("n3") < asked.count("n1")
    assert all(answer.told for answer in answers(run))


def test_a_member_that_diverges_is_found(tmp_path: Path) -> None:
    class Diverging(TellingSystem):
        def digest(self, runtime: Any, node: NodeName, timeout_s: float) -> Answer:
            told = super().digest(runtime, node, timeout_s)
            return msgspec.structs.replace(told, digest="x") if node == "n2" else told

    run = a_run(tmp_path, Diverging)
    run.run()
    verdict, reason = result_of(judged_run(run))
    assert verdict is Verdict.INVALID
    assert "n2" in reason


def test_members_that_never_stand_at_one_position_are_said(tmp_path: Path) -> None:
    class Lagging(TellingSystem):
        def digest(self, runtime: Any, node: NodeName, timeout_s: float) -> Answer:
            told = super().digest(runtime, node, timeout_s)
            # Behind every position at which another one was asked while clients worked.
            return MemberDigest(-1, "before") if node == "n3" else told

    run = a_run(tmp_path, Lagging)
    run.run()
    verdict, reason = result_of(judged_run(run))
    assert verdict is Verdict.UNKNOWN
    assert "did not come to stand at one position" in reason


@pytest.mark.parametrize(
    ("digest", "said"),
    [
        (lambda: {}["oops"], "KeyError"),
        (lambda: (7, "e"), "no MemberDigest"),
        (lambda: MemberDigest(7.5, "e"), "Expected `int`"),  # pyright: ignore[reportArgumentType]
        (lambda: None, "told a digest"),
    ],
)
def test_an_adapter_that_answers_nonsense_is_told_and_fails_no_run(
    tmp_path: Path, digest: Callable[[], Answer], said: str
) -> None:
    class Odd(TellingSystem):
        def digest(self, runtime: Any, node: NodeName, timeout_s: float) -> Answer:
            return digest()

    run = a_run(tmp_path, Odd)
    run.timing = msgspec.structs.replace(run.timing, converged_s=0.1)
    assert run.run().failure is None
    verdict, reason = result_of(judged_run(run))
    assert verdict is Verdict.UNKNOWN
    assert said in reason or said in str(answers(run)[-1].problem)


@pytest.mark.parametrize("options", [{"nodes": 1}, {}])
def test_who_tells_nothing_or_stands_alone_is_not_judged(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    run = a_run(tmp_path, TellingSystem if options else FakeSystem, **options)
    folder = run.run().folder
    plan = decode_plan(folder.plan.read_bytes())
    assert "member-digests" not in plan.checkers
    assert folder.digests.exists() == bool(options)
    with pytest.raises(StopIteration):
        verdict_of(judged_run(run), "member-digests")


# --- one round at a time -----------------------------------------------------------------------


class Revisions(FakeSystem):
    """Members of a store that keeps what it had at earlier revisions."""

    def __init__(self, **stand: int) -> None:
        self.stand, self.asked_at = stand, list[tuple[str, int]]()

    def digest(self, runtime: Any, node: NodeName, timeout_s: float) -> Answer:
        return MemberDigest(self.stand[node], f"at {self.stand[node]}", "old" if node == N3 else "")

    def digest_at(self, runtime: Any, node: NodeName, position: int, timeout_s: float) -> Answer:
        self.asked_at.append((node, position))
        return MemberDigest(position, f"at {position}")


class ThreeNodes:
    """As much of a runtime as is asked."""

    def __init__(self, **statuses: str) -> None:
        self._statuses = statuses

    def nodes(self) -> tuple[NodeName, ...]:
        return (N1, N2, N3)

    def status(self, node: NodeName) -> str:
        return self._statuses.get(node, "running")


def asked_last(folder: Path, system: Any, runtime: Any, patience_s: float) -> list[DigestAnswer]:
    path = folder / "digests.jsonl"
    with LineWriter(path) as lines:
        watch = DigestWatch(system, runtime, RunClock(), lines, Stop(), interval_s=0.01)
        watch.start()
        watch.ask_last(patience_s)
        watch.finish()
    return [msgspec.json.decode(line, type=DigestAnswer) for line in path.read_bytes().splitlines()]


def test_who_is_ahead_is_asked_for_its_state_at_the_lowest_position(tmp_path: Path) -> None:
    system = Revisions(n1=9, n2=7, n3=3)
    told = asked_last(tmp_path, system, ThreeNodes(n3="exited"), 5)
    assert [(each.node, each.told) for each in told if each.final] == [
        ("n1", MemberDigest(7, "at 7")),
        ("n2", MemberDigest(7, "at 7")),
    ]
    assert set(system.asked_at) == {("n1", 7)}


def test_positions_of_another_scope_are_not_asked_for(tmp_path: Path) -> None:
    system = Revisions(n1=9, n2=9, n3=3)
    told = asked_last(tmp_path, system, ThreeNodes(n2="paused"), 0)
    assert [each.told and each.told.position for each in told if each.final] == [9, 3]
    assert system.asked_at == []


class Sparse(Revisions):
    """Members that note the digest of every tenth position, and only what they saw themselves."""

    provoked = 0

    def digest(self, runtime: Any, node: NodeName, timeout_s: float) -> Answer:
        return None if node == N3 and self.provoked < 2 else super().digest(runtime, N1, timeout_s)

    def provoke_digests(self, runtime: Any, timeout_s: float) -> None:
        self.provoked += 1
        self.stand = {N1: 10 * (self.provoked + 1)}


def test_a_system_is_let_move_on_until_who_came_back_late_has_noted_a_digest(
    tmp_path: Path,
) -> None:
    system = Sparse(n1=10)
    told = asked_last(tmp_path, system, ThreeNodes(), 5)
    assert {each.told.position for each in told if each.final and each.told} == {30}
    assert [each.told for each in told if each.final].count(None) == 0
    assert system.provoked == 2


@pytest.mark.parametrize("error", [OSError("no way"), AdapterError("digest", "n1", "no", "mend")])
def test_a_system_that_cannot_be_let_move_on_says_why(tmp_path: Path, error: Exception) -> None:
    class Stuck(Sparse):
        def provoke_digests(self, runtime: Any, timeout_s: float) -> None:
            raise error

    if isinstance(error, AdapterError):
        with pytest.raises(AdapterError):
            asked_last(tmp_path, Stuck(n1=10), ThreeNodes(), 0.3)
        return
    told = asked_last(tmp_path, Stuck(n1=10), ThreeNodes(), 0.3)
    assert [each.problem for each in told if each.final] == [None, None, "OSError: no way"]
