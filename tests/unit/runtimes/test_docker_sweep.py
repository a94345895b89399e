"""Labels in an engine that name a run folder are believed as far as they stay in it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.names import RunId
from splitbrain.runtimes.docker import archives, sweep
from splitbrain.runtimes.docker.names import DATA_LABEL, NODE_LABEL, mark_of_run


def client(*names: str) -> Any:
    """An engine with one node of each name."""
    nodes = [
        SimpleNamespace(labels={NODE_LABEL: name, DATA_LABEL: "/data"}, kill=lambda _: None)
        for name in names
    ]
    return SimpleNamespace(containers=SimpleNamespace(list=lambda **_: nodes))


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders that something was copied into."""
    folders: list[Path] = []
    monkeypatch.setattr(sweep, "release_run", lambda *_, **__: None)
    monkeypatch.setattr(archives, "copy_output", lambda _, folder: folders.append(folder))
    monkeypatch.setattr(archives, "copy_data", lambda *_: None)
    return folders


def test_a_node_whose_name_leads_out_of_the_run_folder_is_not_copied(
    tmp_path: Path, copied: list[Path]
) -> None:
    mark = mark_of_run(RunId("r"), tmp_path / "run" / "lock")
    sweep._salvage(client("../../other", "..", "n1", "/etc"), mark)
    assert copied == [tmp_path / "run" / "nodes" / "n1"]
    assert not (tmp_path / "other").exists()


def test_nothing_is_copied_into_a_run_folder_with_a_link(
    tmp_path: Path, copied: list[Path]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "nodes").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="holds a link, nodes"):
        sweep._salvage(client("n1"), mark_of_run(RunId("r"), run / "lock"))
    assert copied == []
