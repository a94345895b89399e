"""The commands, against the quorum in memory: exit codes, sentences, what is kept."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from rich.console import Console

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.names import NodeName
from splitbrain.harness.campaign import cleaning
from splitbrain.harness.campaign.replaying.verdicts import ReplayVerdict
from splitbrain.harness.cli import commands, systems_list
from splitbrain.harness.cli import main as cli
from splitbrain.harness.folder import tool_version
from splitbrain.harness.folder.store import create_run
from splitbrain.harness.run.options import TestOptions
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes import registry
from splitbrain.runtimes.dead_runs import claimed
from tests.unit.harness.run_fake import FakeRun

N1 = NodeName("n1")


@pytest.fixture
def fake_registries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeRun:
    """The command line meets the quorum in memory under the names ``fake``."""
    from splitbrain.runtimes import registry as runtimes
    from splitbrain.systems import registry as systems

    made = FakeRun(tmp_path)
    monkeypatch.setattr(systems, "_FACTORIES", {"fake": lambda: made.system})
    entry = runtimes._Entry(lambda: made.runtime, lambda *_: None, lambda _: [])
    monkeypatch.setattr(runtimes, "_RUNTIMES", {"fake": lambda: entry})
    return made


def fake_test(folder: Path, *options: str) -> list[str]:
    return [
        *("test", "--system", "fake", "--runtime", "fake", "--runs-folder", str(folder)),
        *("--seed", "3", "--operation-timeout", "0.25", "--rate", "400", "--no-analyze"),
        *options,
    ]


PLAN = '{"faults":[{"kind":"partition","target":"leader","at_ms":300,"duration_ms":900}]}'


def test_a_valid_run_ends_with_0_and_drops_its_data(
    fake_registries: FakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Long enough that a busy machine has done the least that a run must show.
    code = cli.run(fake_test(tmp_path, "--nemesis", "none", "--time-limit", "3"))
    printed = capsys.readouterr().out
    assert code == 0, printed
    root = (tmp_path / "latest").resolve()
    assert "splitbrain test --system fake" in printed
    assert re.search(r"^judging$\n^judging took \d+\.\d s$", printed, re.MULTILINE), printed
    assert (root / "results.json").is_file()
    assert not (root / "nodes" / "n1" / "data").exists()
    assert cli.run(["check", str(tmp_path / "latest"), "--no-analyze", "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["verdict"] == "valid"


def test_a_planted_bug_ends_with_1_and_keeps_its_data(
    fake_registries: FakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.json").write_text(PLAN)
    code = cli.run(
        fake_test(
            tmp_path,
            *("--nemesis", str(tmp_path / "plan.json"), "--time-limit", "1.8"),
            *("--bug", "ack-before-commit"),
        )
    )
    printed = capsys.readouterr().out
    assert code == 1, printed
    assert "--bug ack-before-commit" in printed
    assert ((tmp_path / "latest").resolve() / "nodes" / "n1" / "data").is_dir()


def test_a_failing_harness_ends_with_3(
    fake_registries: FakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_registries.runtime.fails_at = "deploy"
    assert cli.run(fake_test(tmp_path, "--nemesis", "none", "--time-limit", "1")) == 3
    assert "could not deploy" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["test", "--sed", "3"], "--seed"),
        (["tset"], "Did you mean 'test'"),
        (["test", "--system", "fak"], "Did you mean 'fake'"),
        (["test", "--system", "fake", "--nodes", "x"], "--nodes"),
        (["test", "--system", "fake", "--setting", "x"], "NAME=VALUE"),
        (["test", "--system", "fake", "--seed", "-1"], "--seed"),
        (["check", "missing"], "there is no missing"),
        (["replay", "missing"], "is no run folder"),
        (["replay", "missing", "--times", "0"], "--times cannot be 0"),
    ],
)
def test_bad_usage_is_one_sentence_and_64(
    fake_registries: FakeRun, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(arguments) == 64
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert says in said
    assert "Traceback" not in said


def test_a_defect_of_ours_shows_its_traceback_and_ends_with_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def explode(console: Console, *, as_json: bool) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(systems_list, "list_systems", explode)
    assert cli.run(["systems"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_replays_report_how_many_came_out_invalid_and_the_worst_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from splitbrain.systems import registry as systems

    run = FakeRun(tmp_path, time_limit_s=0.2)
    run.system.versions = lambda: {"fake": "1.2"}
    folder = run.run().folder
    monkeypatch.setattr(systems, "_FACTORIES", {"fake": lambda: run.system})
    codes = [0, 1, 2]

    def run_once(options: TestOptions, console: Console, *, analyze: bool) -> Any:
        assert options.replay_of == str(folder.root)
        code = codes.pop(0)
        verdict = {0: Verdict.VALID, 1: Verdict.INVALID, 2: Verdict.UNKNOWN}[code]
        found = ReplayVerdict(verdict.value.upper())
        return SimpleNamespace(exit_code=code, interrupted=False, verdict=found, results=None)

    monkeypatch.setattr(commands, "run_once", run_once)
    assert cli.run(["replay", str(tmp_path / "latest"), "--times", "3"]) == 1
    printed = capsys.readouterr().out
    assert "1 of 3 replays failed." in printed
    assert "changed" not in printed
    made_by = tool_version.this_tool()
    # The same system as it is by now.
    run.system.versions = lambda: {"fake": "1.3", "more": "1"}
    codes += [0]
    assert cli.run(["replay", str(tmp_path / "latest")]) == 0
    said = capsys.readouterr().out
    assert "changed since the run: fake was 1.2, now 1.3\n" in said
    assert "made by" not in said
    monkeypatch.setattr(tool_version, "this_tool", lambda: "splitbrain 9.9.9")
    codes += [0]
    assert cli.run(["replay", str(tmp_path / "latest")]) == 0
    assert f"made by {made_by}; this is splitbrain 9.9.9, with " in capsys.readouterr().out


def test_a_dead_run_gets_the_dumps_that_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = FakeRun(tmp_path, time_limit_s=0.3)
    folder = run.run().folder
    from splitbrain.systems import registry as systems

    monkeypatch.setattr(systems, "_FACTORIES", {"fake": lambda: run.system})
    expected = folder.committed_log(N1).read_bytes()
    folder.committed_log(N1).unlink()
    cleaning.dump_missing_logs(folder)
    assert folder.committed_log(N1).read_bytes() == expected


def test_systems_are_listed_with_their_planted_bugs(
    fake_registries: FakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["systems"]) == 0
    assert "ack-before-commit" in capsys.readouterr().out


def test_doctor_says_what_a_runtime_can_do(
    fake_registries: FakeRun,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    assert cli.run(["doctor"]) == 0
    assert "kill, partition, pause" in capsys.readouterr().out
    fake_registries.runtime.can = frozenset({"kill"})
    assert cli.run(["doctor"]) == 3


def test_a_live_run_is_not_salvaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touched: list[RunFolder] = []
    monkeypatch.setattr(cleaning, "dump_missing_logs", touched.append)
    with create_run(tmp_path, "t", 1) as living:
        living.folder.node(N1).mkdir(parents=True)
        cleaning.salvage(living.folder)
    assert touched == []


def test_a_complete_run_that_was_killed_before_its_nodes_were_removed_is_swept_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[Path | None] = []
    monkeypatch.setattr(registry, "sweep_all", swept.append)
    with create_run(tmp_path, "t", 1) as living:
        folder = living.folder
        folder.node(N1).mkdir(parents=True)
        folder.committed_log(N1).touch()
    cleaning.salvage(folder)
    assert swept == []
    folder.phases.write_text('{"time":1,"phase":"collected"}\n{"time":2,"ph')
    cleaning.salvage(folder)
    assert swept == [folder.lock]
    # Held by a sweep before.
    with claimed(folder.lock) as dead:
        assert dead
    cleaning.salvage(folder)
    assert swept == [folder.lock]
    folder.lock.write_bytes(b"")
    folder.phases.write_text('{"time":1,"phase":"torn-down"}\n{"time":2,"phase":"failed"}\n')
    cleaning.salvage(folder)
    assert swept == [folder.lock]
