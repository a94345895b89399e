"""``splitbrain new-system`` writes a system that runs, and is that of the page."""

import tomllib
from pathlib import Path

import pytest

from splitbrain.harness.cli.main import run
from tests.integration.test_your_system import MODULE, splitbrain

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_what_is_written_is_the_page_under_another_name(tmp_path: Path) -> None:
    assert run(["new-system", "shelf", "--folder", str(tmp_path)]) == 0
    assert (tmp_path / "shelf" / "shelf.py").read_text() == MODULE


def test_the_commands_that_it_names_run_it(tmp_path: Path) -> None:
    written = splitbrain(tmp_path, "new-system", "my-store2")
    assert written.returncode == 0, written.stdout
    folder = tmp_path / "my-store2"
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["splitbrain.systems"] == {"my-store2": "my_store2:MyStore2"}
    lines = [line.strip() for line in written.stdout.splitlines()]
    (test,) = [line.split()[1:] for line in lines if line.startswith("splitbrain test")]
    done = splitbrain(folder, *test, "--time-limit", "8", "--seed", "3", "--no-analyze")
    # It keeps nothing on disk.
    assert done.returncode == 1, done.stdout
    assert "my-store2-register" in done.stdout
    (init,) = [line.split()[1:] for line in lines if line.startswith("splitbrain init")]
    assert splitbrain(folder, *init).returncode == 0
    night = splitbrain(folder, "suite", "suite.toml", "--time-budget", "1s")
    assert night.returncode != 64, night.stdout


@pytest.mark.parametrize("name", ["msgspec", "rich", "json"])
def test_a_system_named_as_a_module_hides_none(name: str, tmp_path: Path) -> None:
    assert run(["new-system", name, "--folder", str(tmp_path)]) == 0
    folder = tmp_path / name
    assert (folder / f"{name}_system.py").is_file()
    class_name = name.capitalize()
    assert (
        run(
            ["init", "--system", f"{folder}/{name}_system.py:{class_name}", "--output", str(folder)]
        )
        == 0
    )
    suite = (folder / "suite.toml").read_text()
    assert f'system = "{name}_system.py:{class_name}"' in suite
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["splitbrain.systems"]
    assert points == {name: f"{name}_system:{class_name}"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["Shelf"], "is no name of a system"),
        (["../shelf"], "is no name of a system"),
        (["kraft"], "there is a system called 'kraft' already"),
        (["there"], "already. Choose another name or --folder"),
        (["shelf", "--folder", "a-file"], "cannot be written"),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_is_changed(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "a-file").touch()
    before = sorted(tmp_path.rglob("*"))
    assert run(["new-system", *words]) == 64
    assert says in " ".join(capsys.readouterr().err.split())
    assert sorted(tmp_path.rglob("*")) == before
