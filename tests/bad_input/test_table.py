"""Each way to be wrong, through the real command line: its sentence, its code, and no traces."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from splitbrain.harness.cli import main as cli
from tests.bad_input.cause import Cause, Scene
from tests.bad_input.page import PAGE, page
from tests.bad_input.table import CAUSES

ROOT = Path(__file__).parents[2]
IN_PROCESS = [pytest.param(cause, id=cause.name) for cause in CAUSES]
AS_PROCESS = [pytest.param(cause, id=cause.name) for cause in CAUSES if cause.as_process]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    # Whatever is not refused in time ends at an engine that is not there.
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    monkeypatch.delenv("SPLITBRAIN_LOCAL", raising=False)
    with ExitStack() as undo:
        yield Scene(folder, monkeypatch, undo)


def content(folder: Path) -> dict[str, bytes]:
    """Every file and folder below, with its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


def expected(cause: Cause, scene: Scene) -> str:
    return f"splitbrain: {cause.says.replace('{folder}', str(scene.folder))}\n"


@pytest.mark.parametrize("cause", IN_PROCESS)
def test_each_is_one_sentence_and_leaves_nothing(
    cause: Cause, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    cause.arrange(scene)
    before = content(scene.folder)
    code = cli.run(shlex.split(cause.command))
    said = capsys.readouterr().err
    assert said == expected(cause, scene)
    assert code == cause.code
    assert content(scene.folder) == before


@pytest.mark.slow
@pytest.mark.parametrize("cause", AS_PROCESS)
def test_a_process_says_the_same(cause: Cause, scene: Scene) -> None:
    cause.arrange(scene)
    before = content(scene.folder)
    done = subprocess.run(
        [sys.executable, "-m", "splitbrain.harness.cli", *shlex.split(cause.command)],
        cwd=scene.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stderr, done.returncode) == (expected(cause, scene), cause.code)
    assert content(scene.folder) == before


def test_the_page_says_what_the_table_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.bad_input.page"


def test_there_are_at_least_sixty_causes_with_sentences_of_their_own() -> None:
    assert len(CAUSES) >= 60
    assert len({cause.name for cause in CAUSES}) == len(CAUSES)
    assert len({(cause.command, cause.arrange) for cause in CAUSES}) == len(CAUSES)
    assert len({cause.says for cause in CAUSES}) >= 60


@pytest.mark.parametrize("cause", IN_PROCESS)
def test_each_sentence_names_a_next_step_and_no_library(cause: Cause) -> None:
    problem, _, next_step = cause.says.partition(". ")
    assert problem
    assert len(next_step.split()) >= 2, "what is wrong, and then what to do"
    for word in ("Traceback", "Errno", "Error(", "msgspec", "token", "`$", "http+docker"):
        assert word not in cause.says
