"""Questions that share a session: one process for many, and whatever ends it costs one of them."""

import json
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.harness.judge.analysis_process import AnalysisProcess, AskedAnalysis, start_analysis
from splitbrain.harness.pool.spark_service import VARIABLE, Answered, ask_spark, shared_session
from tests.awaiting import await_true
from tests.unit.harness.fake_spark import fake_spark

#: Says which process did it; a folder's name says what becomes of it.
_SERVICE = """
import json, os, pathlib, socket, sys
listener = socket.socket(fileno=int(sys.argv[1]))
pathlib.Path(sys.argv[0]).with_name("begun").touch()
while True:
    connection, _ = listener.accept()
    module, folder = json.loads(connection.makefile("rb").readline())
    if module.endswith("unserved"):
        connection.close()
        continue
    if module.endswith("asked"):
        request = json.loads(pathlib.Path(folder).read_text())
        if request == "hang":
            connection.recv(1)
            os._exit(0)
        answer = [0, json.dumps([request, os.getpid()]), ""]
        if request == "fail":
            answer = [3, "", "it could not."]
        connection.sendall(json.dumps(answer).encode() + b"\\n")
        connection.close()
        continue
    folder = pathlib.Path(folder)
    if folder.name == "deadly":
        os._exit(9)
    if folder.name == "telling":
        (folder / "analysis.log").write_text("0 of 13 jobs\\n5 of 13 jobs\\n")
        connection.recv(1)
        os._exit(0)
    if folder.name == "hanging":
        connection.recv(1)
        os._exit(0)
    (folder / "by").write_text(str(os.getpid()))
    broken = folder.name == "broken"
    problem = [3, "", "could not be: broken."] if broken else [0, "", ""]
    connection.sendall(json.dumps(problem).encode() + b"\\n")
    connection.close()
"""
_OWN = """
import os, pathlib, signal, sys
pathlib.Path(sys.argv[1], "by").write_text(str(os.getpid()))
if sys.argv[1].endswith("telling"):
    print("0 of 13 jobs", "5 of 13 jobs", sep="\\n", flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(VARIABLE, raising=False)
    made = fake_spark(tmp_path, _OWN, _SERVICE)
    monkeypatch.syspath_prepend(made)
    return Path(made)


def analyse(folder: Path) -> tuple[str | None, int]:
    """The problem with an analysis, and the process that made it, 0 for none."""
    folder.mkdir()
    with start_analysis(folder) as analysis:
        problem = analysis.wait()
    by = folder / "by"
    return problem, int(by.read_text()) if by.exists() else 0


def test_one_process_serves_all_and_ends_with_the_block(tmp_path: Path) -> None:
    with shared_session():
        made = [analyse(tmp_path / name) for name in ("a", "b", "c")]
        assert [problem for problem, _ in made] == [None] * 3
        (process,) = {process for _, process in made}
        assert process not in (0, os.getpid())
    assert not Path(f"/proc/{process}").exists()
    assert VARIABLE not in os.environ


@pytest.mark.parametrize("shared", [True, False])
def test_an_analysis_tells_how_many_jobs_are_done(tmp_path: Path, *, shared: bool) -> None:
    folder = tmp_path / "telling"
    folder.mkdir()
    # One of another analysis.
    (folder / "analysis.log").write_text("9 of 13 jobs\n")
    told: list[tuple[int, int]] = []
    with shared_session() if shared else nullcontext(), start_analysis(folder) as analysis:
        assert isinstance(analysis, AskedAnalysis if shared else AnalysisProcess)
        analysis.wait(
            give_up=lambda: "told" if told else None,
            took=lambda done, total: told.append((done, total)),
        )
    assert told == [(5, 13)]


def test_a_broken_folder_spoils_its_own_analysis_alone(tmp_path: Path) -> None:
    with shared_session():
        _, first = analyse(tmp_path / "a")
        problem, _ = analyse(tmp_path / "broken")
        assert problem == "The Spark analysis could not be: broken."
        assert "broken" in (tmp_path / "broken" / "analysis.log").read_text()
        assert analyse(tmp_path / "b") == (None, first)


def test_a_folder_that_ends_the_process_is_tried_alone_and_the_next_has_a_new_one(
    tmp_path: Path,
) -> None:
    with shared_session():
        _, first = analyse(tmp_path / "a")
        problem, alone = analyse(tmp_path / "deadly")
        _, second = analyse(tmp_path / "b")
    assert problem is None
    assert len({0, first, alone, second}) == 4


def test_processes_that_only_die_leave_everyone_to_his_own(tmp_path: Path, path: Path) -> None:
    (path / "splitbrain" / "spark_analysis" / "service.py").write_text("raise SystemExit(1)")
    with shared_session():
        for name in ("a", "b"):
            problem, process = analyse(tmp_path / name)
            assert (problem, process > 0) == (None, True)
        # Nobody listens any longer.
        with start_analysis(tmp_path / "b") as analysis:
            assert isinstance(analysis, AnalysisProcess)
            assert analysis.wait() is None


def test_who_waits_no_longer_hangs_up_and_the_next_has_a_new_process(tmp_path: Path) -> None:
    with shared_session():
        _, first = analyse(tmp_path / "first")
        (tmp_path / "hanging").mkdir()
        with start_analysis(tmp_path / "hanging") as analysis:
            assert isinstance(analysis, AskedAnalysis)
            assert analysis.wait(give_up=lambda: "interrupted") == (
                "The Spark analysis was stopped: interrupted."
            )
        with start_analysis(tmp_path / "hanging") as analysis:
            problem = analysis.wait(0.2)
        assert problem == "The Spark analysis did not end within 0.2 s and was stopped."
        problem, second = analyse(tmp_path / "second")
    assert problem is None
    assert second not in (0, first)


def test_a_session_may_begin_before_anybody_asks(tmp_path: Path, path: Path) -> None:
    begun = path / "splitbrain" / "spark_analysis" / "begun"
    with shared_session() as service:
        assert service is not None
        service.begin()
        await_true(begun.exists, 60)
        assert analyse(tmp_path / "a")[0] is None


def test_a_session_that_is_offered_already_is_the_one(tmp_path: Path) -> None:
    with shared_session():
        offered = os.environ[VARIABLE]
        with shared_session() as inner:
            assert inner is None
            assert os.environ[VARIABLE] == offered
        assert analyse(tmp_path / "a")[0] is None


def test_an_offer_of_a_process_that_is_gone_is_no_offer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    (tmp_path / "a").mkdir()
    with start_analysis(tmp_path / "a") as analysis:
        assert isinstance(analysis, AnalysisProcess)
        assert analysis.wait() is None


def test_a_question_of_another_kind_shares_it_and_what_is_not_served_is_asked_alone(
    tmp_path: Path, path: Path
) -> None:
    asked = f"{PACKAGE}.spark_analysis.asked"
    (path / "splitbrain" / "spark_analysis" / "unserved.py").write_text("print(7)")
    with shared_session():
        _, process = analyse(tmp_path / "a")
        answered = ask_spark(asked, "request", name="test", timeout_s=60)
        assert json.loads(answered.answer) == ["request", process]
        failed = ask_spark(asked, "fail", name="test", timeout_s=None)
        assert failed == Answered(3, b"", "it could not.")
        assert ask_spark(asked, "hang", name="test", timeout_s=0.2) == Answered(None, b"", "")
        unserved = ask_spark(f"{PACKAGE}.spark_analysis.unserved", 1, name="test", timeout_s=60)
        assert unserved == Answered(0, b"7", "")
