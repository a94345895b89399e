"""Things named by file and name, loaded from a folder that is the user's."""

import re
import sys
from pathlib import Path

import pytest

from splitbrain.plugins.files import digest_of, found_in_file


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


def test_a_digest_is_of_the_file_and_of_all_that_it_imports_from_beside_it(tmp_path: Path) -> None:
    texts = {
        "mine.py": "import os, near\ndef late():\n    from far.away import thing\n",
        "near.py": "import indirect\n",
        "indirect.py": "X = 1\n",
        "far/__init__.py": "",
        "far/away.py": "from . import other\n",
        "far/other.py": "thing = 1\n",
        "broken.py": "this is no Python",
        "stranger.py": "Y = 1\n",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def digest() -> str:
        return digest_of(f"{tmp_path / 'mine.py'}:Mine")

    before = digest()
    assert re.fullmatch("[0-9a-f]{16}", before)
    for name in ("stranger.py", "broken.py"):
        (tmp_path / name).write_text("Z = 2\n", encoding="utf-8")
        assert digest() == before
    for name in ("mine.py", "near.py", "indirect.py", "far/__init__.py", "far/other.py"):
        (tmp_path / name).write_text(f"{texts[name]}# changed\n", encoding="utf-8")
        assert digest() != before, name
        (tmp_path / name).write_text(texts[name], encoding="utf-8")
    assert digest() == before
    # Text that moves from one file to another is a change.
    (tmp_path / "near.py").write_text("", encoding="utf-8")
    (tmp_path / "indirect.py").write_text("import indirect\nX = 1\n", encoding="utf-8")
    assert digest() != before


def test_a_neighbour_that_is_no_python_counts_and_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def late():\n    import broken\n", encoding="utf-8")
    digests = set[str]()
    for text in ("this is no Python", "nor is this", "\0"):
        (tmp_path / "broken.py").write_text(text, encoding="utf-8")
        digests.add(digest_of(f"{tmp_path / 'mine.py'}:Mine"))
    assert len(digests) == 3
