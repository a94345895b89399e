"""Smaller plans on a runtime: the whole command against the quorum in memory, and its signals."""

import json
import re
import threading
import tomllib
from pathlib import Path

import pytest

from splitbrain.harness.campaign.shrinking.plan_runs import LoudInterrupts
from splitbrain.harness.cli import main as cli
from splitbrain.history.blobs import unpack
from splitbrain.history.plan import decode_plan
from splitbrain.history.run_folder import RunFolder
from tests.unit.harness.in_process import judge_in_process
from tests.unit.harness.run_fake import FakeRun

PLAN = """
[[faults]]
kind = "pause"
target = "follower"
at_ms = 200
duration_ms = 200

[[faults]]
kind = "partition"
target = "leader"
at_ms = 600
duration_ms = 900
"""


@pytest.fixture
def fake_registries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each run has a fresh quorum in memory, under the names ``fake``."""
    from splitbrain.runtimes import registry as runtimes
    from splitbrain.systems import registry as systems

    judge_in_process(monkeypatch)
    made = [FakeRun(tmp_path)]

    def runtime() -> object:
        made.append(FakeRun(tmp_path))
        vars(made[0].system).update(vars(made[-1].system))
        return made[-1].runtime

    monkeypatch.setattr(systems, "_FACTORIES", {"fake": lambda: made[0].system})
    entry = runtimes._Entry(runtime, lambda *_: None, lambda _: [])  # type: ignore[arg-type]
    monkeypatch.setattr(runtimes, "_RUNTIMES", {"fake": lambda: entry})


@pytest.mark.slow
@pytest.mark.usefixtures("fake_registries")
def test_a_run_is_shrunk_by_running_smaller_plans_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    runs = tmp_path / "runs"
    # An element that is lost stays missing, whenever it is read: no verdict depends on the timing.
    common = ["--workload", "set", "--operation-timeout", "0.25", "--rate", "300", "--seed", "3"]
    command = [
        *("test", "--system", "fake", "--runtime", "fake", "--runs-folder", str(runs)),
        *("--nemesis", str(tmp_path / "plan.toml"), "--time-limit", "1.8", "--no-analyze"),
        *("--bug", "ack-before-commit", *common),
    ]
    assert cli.run(command) == 1, capsys.readouterr().out
    failed = (runs / "latest").resolve()
    capsys.readouterr()
    # The plan itself, then no fault, then each fault alone; a busy machine may need a second try.
    options = ["--tries", "3", "--at-least", "1", "--runs", "9", "--no-simulate"]
    code = cli.run(["shrink", str(failed), *options])
    told = capsys.readouterr().out
    assert code == 0, told
    assert "faults 2 -> 1, " in told
    assert "  fault 1: partition of leader, at 600 ms for 900 ms" in told
    left = RunFolder((runs / "latest").resolve())
    assert left.root.parent.parent == runs / "shrinking" / failed.name
    assert f"plan:      {runs}/shrinking/{failed.name}/plan.toml" in told
    (word,) = re.findall(r"--nemesis (blob:\S+) ", told)
    kept = (runs / "shrinking" / failed.name / "plan.toml").read_text()
    assert tomllib.loads(unpack(word).text) == tomllib.loads(kept)
    plan = decode_plan(left.plan.read_bytes())
    assert (plan.planned_faults, plan.experiment.bugs, plan.experiment.seed) == (
        1,
        ("ack-before-commit",),
        3,
    )
    assert plan.experiment.nemesis.endswith(".toml")
    assert json.loads(left.results.read_bytes())["verdict"] == "invalid"
    assert (runs / "shrinking" / failed.name / "tries.log").read_text()
    # The result can be shrunk again; the searches lie side by side.
    assert cli.run(["shrink", str(left.root), "--tries", "1", "--runs", "1", "--no-simulate"]) == 0
    assert (runs / "shrinking" / left.root.name / "tries.jsonl").exists()


def test_a_signal_that_a_run_tells_its_log_alone_is_told_to_the_user_too() -> None:
    said: list[str] = []
    done: list[str] = []
    heard = threading.Event()

    def say(sentence: str) -> None:
        said.append(sentence)
        if len(said) == 2:
            heard.set()

    def quiet(what: str) -> str:
        done.append(what)
        return ""

    interrupts = LoudInterrupts(say)
    with (
        interrupts,
        interrupts.during(
            lambda: quiet("first"), lambda: quiet("second"), farewell=lambda: ("", 3)
        ),
    ):
        for _ in range(2):
            interrupts._arrived.put(True)
        assert heard.wait(5.0)
    assert done == ["first", "second"]
    assert said[0].startswith("interrupted: this try is ended in order")
    assert said[1].startswith("interrupted again: the nodes are removed at once")
