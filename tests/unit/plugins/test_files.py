"""Things named by file and name, loaded from a folder that is the user's."""

import sys
from pathlib import Path

import pytest

from splitbrain.plugins.files import found_in_file


def test_a_file_and_its_neighbours_are_loaded_and_their_folder_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "a_neighbour.py").write_text("class Base: pass\n", encoding="utf-8")
    (tmp_path / "mine.py").write_text(
        "from a_neighbour import Base\nclass Mine(Base): pass\n", encoding="utf-8"
    )
    found = found_in_file(f"{tmp_path / 'mine.py'}:Mine", "thing", object, "read on")
    assert isinstance(found, type)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a_neighbour.py", "mine.py"]
    assert not sys.dont_write_bytecode
