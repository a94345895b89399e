import importlib
import sys
from pathlib import Path

import pytest

from bench.mutant_child import installed
from bench.mutant_sites import mutants_of, mutated

SOURCE = "def is_below(offset, end):\n    return offset < end\n"


@pytest.fixture
def module_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "mutable_thing.py"
    file.write_text(SOURCE)
    return file


def test_import_gives_the_mutant_and_afterwards_the_file_again(module_file: Path) -> None:
    (mutant,) = mutants_of(SOURCE, "mutable_thing.py")
    finders = list(sys.meta_path)
    with installed({"mutable_thing": (module_file, mutated(SOURCE, mutant))}):
        changed = importlib.import_module("mutable_thing")
        assert changed.is_below(3, 3)
        assert changed.__file__ == str(module_file)
    assert sys.meta_path == finders
    assert not importlib.import_module("mutable_thing").is_below(3, 3)
    del sys.modules["mutable_thing"]


def test_the_work_tree_is_not_touched(module_file: Path) -> None:
    (mutant,) = mutants_of(SOURCE, "mutable_thing.py")
    with installed({"mutable_thing": (module_file, mutated(SOURCE, mutant))}):
        importlib.import_module("mutable_thing")
    assert module_file.read_text() == SOURCE
    assert list(module_file.parent.iterdir()) == [module_file]


def test_a_module_that_is_loaded_already_cannot_be_mutated(module_file: Path) -> None:
    importlib.import_module("mutable_thing")
    (mutant,) = mutants_of(SOURCE, "mutable_thing.py")
    with (
        pytest.raises(RuntimeError, match="imported before it could be mutated"),
        installed({"mutable_thing": (module_file, mutated(SOURCE, mutant))}),
    ):
        pass
    del sys.modules["mutable_thing"]
