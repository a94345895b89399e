"""``splitbrain systems check`` passes a sound adapter; each defect of one turns a finding red."""

import asyncio
import inspect
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import LeaderView, System
from splitbrain.harness.cli import conformance
from splitbrain.harness.cli.doctor import Finding
from splitbrain.harness.cli.main import run
from splitbrain.plugins.files import found_in_file
from splitbrain.systems import registry
from splitbrain.systems.servers import Server, ServerSystem
from tests.integration.test_your_system import CABINET, MODULE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> type[ServerSystem]:
    """The system of the page, which is sound."""
    file = tmp_path_factory.mktemp("shelf") / "shelf.py"
    file.write_text(MODULE)
    found: Any = found_in_file(f"{file}:Shelf", "system", System, "")
    return found


@pytest.fixture(scope="module")
def cabinet(tmp_path_factory: pytest.TempPathFactory) -> type[ServerSystem]:
    """The page's system whose members can be compared, with a server that knows how."""
    told = (
        "    with alone:\n        if f == 'digest':\n            return [len(shelf), str(shelf)]\n"
    )
    file = tmp_path_factory.mktemp("cabinet") / "cabinet.py"
    file.write_text(MODULE.replace("    with alone:\n", told) + CABINET)
    found: Any = found_in_file(f"{file}:Cabinet", "system", System, "")
    return found


@pytest.fixture
def check(shelf: type[ServerSystem], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Check":
    return Check(shelf, tmp_path, monkeypatch)


class Check:
    """Checks a changed shelf."""

    def __init__(
        self, shelf: type[ServerSystem], folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Changed ones are made of it, and no type checker knows what it has.
        self.shelf: Any = shelf
        self._folder, self._monkeypatch = folder, monkeypatch

    def __call__(
        self, made: Callable[[], System], *titles: str, options: Sequence[str] = ()
    ) -> dict[str, Finding]:
        runs = {title: conformance._RUNS[title] for title in titles}
        self._monkeypatch.setattr(conformance, "_RUNS", runs)
        # Half the length that a user's system gets shows each of these defects.
        self._monkeypatch.setattr(conformance, "_CALM_S", 3.0)
        self._monkeypatch.setattr(registry, "_FACTORIES", {"shelf": made})
        found: list[Finding] = []
        monkeypatch = self._monkeypatch
        monkeypatch.setattr(
            conformance, "show_findings", lambda findings, _: found.extend(findings)
        )
        words = ("--runtime", "local", "--runs-folder", str(self._folder / "runs"))
        code = run(["systems", "check", "shelf", *words, *options])
        if code == UsageError.exit_code:
            return {}
        assert code == int(any(finding.answer == "no" for finding in found))
        return {finding.name: finding for finding in found}


def red(found: dict[str, Finding]) -> set[str]:
    return {name for name, finding in found.items() if finding.answer == "no"}


def test_a_sound_adapter_passes_and_is_told_what_it_does_not_declare(check: Check) -> None:
    found = check(check.shelf, "calm", "kill", "pause", "partition")
    assert red(found) == set()
    assert found["calm: outcomes"].answer == found["pause: outcomes"].answer == "yes"
    # It keeps nothing on disk, and does not promise to.
    assert "linearizability" in found["kill: outcomes"].detail
    assert found["kill: recovery"].answer == found["pause: recovery"].answer == "yes"
    assert "--nodes 2" in found["partition"].next_step
    assert found["evidence: leader"].detail.startswith("not told")
    assert found["evidence: member digests"].answer == "unknown"


def test_settings_reach_the_adapter_and_an_unknown_one_is_refused(check: Check) -> None:
    seen: list[dict[str, str]] = []

    class Tuned(check.shelf):
        def check_options(self, options: Experiment) -> None:
            seen.append(options.settings)
            if options.settings.keys() - {"mode"}:
                raise UsageError("shelf has no such setting", "Give mode")
            super().check_options(msgspec.structs.replace(options, settings={}))

    found = check(Tuned, options=("--setting", "mode=fast"))
    assert seen[0] == {"mode": "fast"}
    assert found["unknown settings"].answer == "yes"
    assert check(Tuned, options=("--setting", "mood=fast")) == {}


#: Changes a completion, and may take its time for it.
Change = Callable[[Operation, Completion], Completion | Awaitable[Completion]]


class Wrapped:
    """A client whose completions are changed."""

    def __init__(self, client: Any, change: Change) -> None:
        self._client, self._change = client, change

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        changed = self._change(operation, await self._client.invoke(operation, timeout_s))
        return await changed if inspect.isawaitable(changed) else changed

    async def close(self) -> None:
        await self._client.close()


def with_client(shelf: type[ServerSystem], change: Change) -> type[ServerSystem]:
    class Changed(shelf):
        def open_client(self, runtime: Any, route: Any) -> Any:
            return Wrapped(super().open_client(runtime, route), change)

    return Changed


async def _fails_late(operation: Operation, completion: Completion) -> Completion:
    # The writes of a paused node's clients are often overwritten before anybody reads them. These
    # stand while their client waits, so that the others do.
    if operation.f != "write" or completion.type != "ok" or random.random() > 0.1:
        return completion
    await asyncio.sleep(conformance._TIMEOUT_S)
    return Completion("fail", error="timeout")


def _misreads(operation: Operation, completion: Completion) -> Completion:
    is_read = operation.f == "read" and completion.type == "ok"
    return msgspec.structs.replace(completion, value=77) if is_read else completion


def _refuses_many(operation: Operation, completion: Completion) -> Completion:
    return Completion("fail", error="no-luck") if operation.f == "cas" else completion


def _blocks(_operation: Operation, completion: Completion) -> Completion:
    time.sleep(0.5)
    return completion


def _tells_no_refusal(operation: Operation, completion: Completion) -> Completion:
    is_cas = operation.f == "cas" and completion.type == "ok"
    return msgspec.structs.replace(completion, value=None) if is_cas else completion


def _raises(operation: Operation, completion: Completion) -> Completion:
    raise KeyError(operation.f)


@pytest.mark.parametrize(
    ("change", "title", "finding", "says"),
    [
        (_fails_late, "calm", "calm: outcomes", "in time called fail, such as"),
        (_misreads, "calm", "calm: outcomes", "linearizability"),
        (_refuses_many, "calm", "calm: successes", "no-luck"),
        (_raises, "calm", "calm: the run", "it raised KeyError"),
        (_blocks, "calm", "calm: successes", "put a library that blocks into asyncio.to_thread"),
        (_tells_no_refusal, "calm", "calm: the run", "the operation cas (client"),
    ],
)
def test_a_client_that_breaks_a_rule_is_told_which(
    check: Check,
    change: Change,
    title: str,
    finding: str,
    says: str,
) -> None:
    found = check(with_client(check.shelf, change), title)
    assert finding in red(found), found
    assert says in found[finding].detail


def test_operations_that_lose_a_conflict_are_no_failures_where_the_adapter_says_so(
    check: Check,
) -> None:
    refusing = with_client(check.shelf, _refuses_many)
    refusing.conflicts = ("no-luck",)
    assert "calm: successes" not in red(check(refusing, "calm"))


@pytest.mark.nightly
def test_a_client_that_never_connects_anew_does_not_recover(check: Check) -> None:
    broken: set[str] = set()

    class Sulking(check.shelf):
        def open_client(self, runtime: Any, route: Any) -> Any:
            def change(_operation: Operation, completion: Completion) -> Completion:
                if completion.type != "ok":
                    broken.add(route.node)
                return Completion("info", error="broken") if route.node in broken else completion

            return Wrapped(super().open_client(runtime, route), change)

    assert "kill: recovery" in red(check(Sulking, "kill"))


def test_evidence_that_is_declared_must_be_there(check: Check) -> None:
    class Boasting(check.shelf):
        declares_state_events = True

        def leader(self, runtime: Any, timeout_s: float) -> LeaderView:
            return LeaderView(NodeName("n9"), 1)

        def metrics(self, runtime: Any, node: NodeName, timeout_s: float) -> None:
            return None

    found = check(Boasting, "calm")
    assert {"evidence: state events", "evidence: leader", "evidence: figures"} <= red(found)
    assert "n9, no node" in found["evidence: leader"].detail


def test_declared_digests_must_come_from_every_member_and_be_equal_at_one_position(
    check: Check, cabinet: type[ServerSystem]
) -> None:
    class Several(cabinet):
        """Two shelves of which only the first is ever asked: the second stays empty."""

        node_counts = (2,)
        position = 7

        def open_client(self, runtime: Any, route: Any) -> Any:
            first = msgspec.structs.replace(route, node=NodeName("n1"))
            return super().open_client(runtime, first)

        def digest(self, runtime: Any, node: NodeName, timeout_s: float) -> MemberDigest | None:
            told = super().digest(runtime, node, timeout_s)
            assert told is not None
            return msgspec.structs.replace(told, position=self.position)

    class Equal(Several):
        def digest(self, runtime: Any, node: NodeName, timeout_s: float) -> MemberDigest | None:
            return super().digest(runtime, NodeName("n2"), timeout_s)

    class Mute(Several):
        def digest(self, runtime: Any, node: NodeName, timeout_s: float) -> MemberDigest | None:
            return None

    title = "evidence: member digests"
    assert check(Equal, "calm")[title].answer == "yes"
    differing = check(Several, "calm")
    assert red(differing) == {title}
    assert "at position 7" in differing[title].detail.lower()
    assert check(Mute, "calm")[title].detail == "No member told a digest."


def test_a_process_that_outlives_the_run_is_told_and_ended(check: Check) -> None:
    starter = (
        "import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', "
        "'import time; time.sleep(300)'], start_new_session=True); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )

    class Detaching(check.shelf):
        def command(self, server: Server, others: Sequence[Server]) -> Sequence[str]:
            _, *words = super().command(server, others)
            return (server.placement.python, "-c", starter, *words)

    found = check(Detaching, "calm")
    assert red(found) <= {"calm: clean-up"}
    # Where each node has a namespace of processes of its own, it goes with it.
    if red(found):
        assert "left behind: 1 processes" in found["calm: clean-up"].detail


def test_options_that_nobody_knows_must_be_refused(check: Check) -> None:
    class Careless(check.shelf):
        def check_options(self, options: Experiment) -> None:
            if options.bugs:
                raise ValueError(options.bugs)

        def workloads(self, state_machine: str | None) -> Sequence[str]:
            return ("register", "no-such-workload")

    found = check(Careless, "calm")
    assert {"unknown settings", "unknown bugs", "workloads"} <= red(found)
    assert found["unknown bugs"].detail.startswith("it raised ValueError")


def test_a_system_that_never_gets_ready_is_one_finding_with_its_last_words(check: Check) -> None:
    class Ending(check.shelf):
        def command(self, server: Server, others: Sequence[Server]) -> Sequence[str]:
            return (sys.executable, "-c", "raise SystemExit('no licence')")

    found = check(Ending, "calm", "kill")
    assert red(found) == {"calm: the run"}
    assert "no licence" in found["calm: the run"].detail
    assert not any(name.startswith("kill") for name in found)


@pytest.mark.parametrize("words", [["chek", "kraft"], ["check"]])
def test_a_request_that_is_none_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["systems", *words]) == 64
    assert "splitbrain systems check NAME" in " ".join(capsys.readouterr().err.split())
