"""New folders never touch what is there."""

from pathlib import Path

import pytest

from splitbrain.harness.folder import store
from splitbrain.harness.folder.store import new_folder


def test_a_taken_name_gets_a_number(tmp_path: Path) -> None:
    names = [new_folder(tmp_path / "new", "run").name for _ in range(3)]
    assert names == ["run", "run-2", "run-3"]
    assert [new_folder(tmp_path, "night", digits=2).name for _ in range(2)] == ["night", "night-02"]


def test_too_many_of_a_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_NAME_TRIES", 2)
    new_folder(tmp_path, "run")
    new_folder(tmp_path, "run")
    with pytest.raises(FileExistsError, match="2 folders called run exist"):
        new_folder(tmp_path, "run")
