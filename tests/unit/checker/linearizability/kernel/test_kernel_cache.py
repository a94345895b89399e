"""Compiled code is kept for the whole kernel as it is, and compiled ahead where that is asked."""

import re
from pathlib import Path
from typing import Any, cast

import pytest

from splitbrain.checker.linearizability.kernel import kernel_cache, kernel_search
from splitbrain.checker.linearizability.kernel.kernel_cache import (
    KERNEL_FILES,
    is_compiled,
    kernel_folder,
)
from splitbrain.checker.linearizability.precompile import compile_ahead

ROOM = Path(kernel_cache.__file__).parent


def test_every_file_of_the_kernel_counts() -> None:
    kernel = {path.name for path in ROOM.glob("kernel_*.py")} - {"kernel_cache.py"}
    imported = {
        f"{name.removeprefix('kernel.')}.py"
        for file in kernel
        for name in re.findall(
            r"^from [\w.]+\.linearizability\.([\w.]+) import",
            (ROOM / file).read_text(),
            re.MULTILINE,
        )
    }
    assert set(KERNEL_FILES) == kernel | imported


def test_a_change_in_any_file_leads_to_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KERNEL_FILES:
        (tmp_path / name).write_bytes((ROOM / name).read_bytes())
    monkeypatch.setattr(kernel_cache, "__file__", str(tmp_path / "kernel_cache.py"))
    folders: set[Path | None] = set()
    for name in (None, *KERNEL_FILES):
        if name is not None:
            with (tmp_path / name).open("a") as file:
                file.write("# changed\n")
        kernel_folder.cache_clear()
        folders.add(kernel_folder())
        assert not is_compiled()
    kernel_folder.cache_clear()
    assert None not in folders
    assert len(folders) == len(KERNEL_FILES) + 1


def test_where_nothing_can_be_written_there_is_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KERNEL_FILES:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "__pycache__").write_text("no folder")
    (tmp_path / ".cache").write_text("no folder")
    monkeypatch.setattr(kernel_cache, "__file__", str(tmp_path / "kernel_cache.py"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    kernel_folder.cache_clear()
    assert kernel_folder() is None
    assert not is_compiled()
    kernel_folder.cache_clear()


def test_what_was_compiled_ahead_is_kept() -> None:
    compile_ahead()
    assert is_compiled()
    search = cast("Any", kernel_search.search)
    assert str(search.stats.cache_path).startswith(str(kernel_folder()))
