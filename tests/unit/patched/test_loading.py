import os
import subprocess
import sys
from pathlib import Path

import pytest

from splitbrain.harness.pool import worker_process
from splitbrain.harness.pool.framed_child import FramedChild
from splitbrain.nodes.server.host import exit_codes
from splitbrain.patched.loading import (
    PatchedModules,
    install_patches,
    installed_patches,
    load_apart,
    module_words,
)
from splitbrain.patched.loading import read_patch_file as patch_of
from splitbrain.patched.patch import PatchError, read_patch
from tests.unit.patched.test_patch import diff

ROOT = Path(__file__).parents[3]
MODULE = exit_codes.__name__.removeprefix("splitbrain.").replace(".", "/") + ".py"
SOURCE = (ROOT / MODULE).read_text()
WORKER = worker_process.__name__.removeprefix("splitbrain.").replace(".", "/") + ".py"
#: A command of a node that ends with ``exit_codes.UNUSABLE``.
REFUSED = ("--", "-m", "splitbrain.nodes", "run")


def patch_file(folder: Path, name: str, old: str, new: str, path: str = MODULE) -> str:
    file = folder / f"{name}.patch"
    file.write_text(f"{name} does something.\n" + diff(old, new, path))
    return str(file)


def run(*command: str, cache: Path) -> "subprocess.CompletedProcess[str]":
    environment = dict(os.environ, PYTHONPYCACHEPREFIX=str(cache), PYTHONPATH=str(cache))
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )


def launched(*arguments: str, cache: Path) -> "subprocess.CompletedProcess[str]":
    return run("splitbrain.patched", *arguments, cache=cache)


def test_a_module_runs_as_patched_and_nobody_after_it(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    file = patch_file(tmp_path, "other-code", SOURCE, SOURCE + "UNUSABLE = 101\n")
    assert launched(file, *REFUSED, cache=cache).returncode == 101
    cached = {path.name.partition(".")[0] for path in cache.rglob("*.pyc")}
    assert Path(MODULE).stem not in cached
    assert "configuration" in cached
    assert run("splitbrain.nodes", "run", cache=cache).returncode == exit_codes.UNUSABLE
    assert Path(MODULE).stem in {path.name.partition(".")[0] for path in cache.rglob("*.pyc")}
    # Its bytecode is there now, and is not taken for that of the patched module.
    assert launched(file, *REFUSED, cache=cache).returncode == 101
    assert (ROOT / MODULE).read_text() == SOURCE


def test_patches_are_applied_in_order(tmp_path: Path) -> None:
    middle = SOURCE + "UNUSABLE = 101\n"
    first = patch_file(tmp_path, "first", SOURCE, middle)
    second = patch_file(tmp_path, "second", middle, middle.replace("101", "102"))
    assert launched(first, second, *REFUSED, cache=tmp_path).returncode == 102
    refused = launched(second, first, *REFUSED, cache=tmp_path)
    assert (refused.returncode, refused.stderr.count("\n")) == (64, 1)
    assert refused.stderr.startswith(f"Patch second does not fit {MODULE}")


def test_a_traceback_shows_the_patched_line(tmp_path: Path) -> None:
    line = 'raise RuntimeError("planted")  # by the patch'
    failed = launched(
        patch_file(tmp_path, "raises", SOURCE, f"{SOURCE}{line}\n"), *REFUSED, cache=tmp_path
    )
    assert line in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "usage: "),
        (("--", "-m", "splitbrain.nodes"), "usage: "),
        (("{patch}",), "usage: "),
        (("{patch}", "--", "splitbrain.nodes"), "usage: "),
        (("{patch}", "--", "-m"), "usage: "),
        (("nowhere.patch", *REFUSED), "cannot be read: No such file or directory"),
        (("splitbrain", *REFUSED), "cannot be read: Is a directory"),
        (("README.md", *REFUSED), "has no line that begins with '--- '"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_64(
    arguments: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    patch = patch_file(tmp_path, "good", SOURCE, f"{SOURCE}#\n")
    done = launched(*(each.format(patch=patch) for each in arguments), cache=tmp_path)
    assert done.returncode == 64
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "path",
    [
        "nodes/nowhere.py",
        "nodes",
        "README.md",
        "../main/nodes/__main__.py",
        "/etc/passwd.py",
        ".py",
    ],
)
def test_a_patch_changes_modules_only(path: str) -> None:
    with pytest.raises(PatchError, match="is no module of this version"):
        PatchedModules([read_patch("a-bug", diff("a\n", "b\n", path))], ROOT / "splitbrain")


def test_a_loaded_module_is_not_patched(tmp_path: Path) -> None:
    patch = patch_of(Path(patch_file(tmp_path, "late", SOURCE, SOURCE + "UNUSABLE = 101\n")))
    with pytest.raises(PatchError, match=f"{exit_codes.__name__} is loaded already"):
        install_patches([patch])
    assert installed_patches() == ()
    assert exit_codes.UNUSABLE != 101


def test_a_process_has_one_set_of_patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, exit_codes.__name__)
    patch = patch_of(Path(patch_file(tmp_path, "a-bug", SOURCE, SOURCE + "UNUSABLE = 101\n")))
    install_patches([])
    install_patches([patch])
    assert installed_patches() == (patch,)
    assert patch.preamble == "a-bug does something."
    with pytest.raises(PatchError, match="has patches already"):
        install_patches([patch])


def test_a_child_has_its_parent_s_patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module_words("splitbrain.nodes", lambda: tmp_path) == ["-m", "splitbrain.nodes"]
    middle = SOURCE + "UNUSABLE = 101\n"
    changes = ((SOURCE, middle), (middle, middle.replace("101", "102")))
    patches = [read_patch("a-bug", diff(*change, MODULE)) for change in changes]
    finder = PatchedModules(patches, ROOT / "splitbrain")
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    words = module_words("splitbrain.nodes", lambda: tmp_path)
    assert run(*words[1:], "run", cache=tmp_path).returncode == 102
    seen = module_words("splitbrain.nodes", lambda: tmp_path, "/etc/node")
    assert seen[2:4] == ["/etc/node/patches/a-bug.patch", "/etc/node/patches/1-a-bug.patch"]


def test_workers_of_the_pool_are_patched(tmp_path: Path) -> None:
    worker = (ROOT / WORKER).read_text()
    file = patch_file(tmp_path, "dies", worker, "raise SystemExit(103)\n" + worker, WORKER)
    ends = f"from {FramedChild.__module__} import FramedChild\n"
    program = tmp_path / "ends.py"
    program.write_text(
        f"import sys\n{ends}"
        f"child = FramedChild({worker_process.__name__!r}, ('9', '900'))\n"
        "sys.exit(child._process.wait())\n"
    )
    done = launched(file, "--", "-m", program.stem, cache=tmp_path)
    assert done.returncode == 103


def test_a_room_is_loaded_apart_and_the_process_keeps_its_own(tmp_path: Path) -> None:
    path = Path(patch_file(tmp_path, "other", SOURCE, SOURCE + "UNUSABLE = 101\n"))
    room = exit_codes.__name__.rpartition(".")[0]
    host = sys.modules[room]
    loaded = [name for name in sys.modules if name.startswith(room)]
    copy = load_apart(exit_codes.__name__, [room], [patch_of(path)])
    assert (copy.UNUSABLE, exit_codes.UNUSABLE) == (101, 78)
    assert sys.modules[exit_codes.__name__] is exit_codes
    assert [name for name in sys.modules if name.startswith(room)] == loaded
    assert sys.modules[room.rpartition(".")[0]].host is host
    assert installed_patches() == ()


def test_what_cannot_be_loaded_apart_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    broken = patch_of(Path(patch_file(tmp_path, "broken", SOURCE, SOURCE + "1 / 0\n")))
    room = exit_codes.__name__.rpartition(".")[0]
    with pytest.raises(ZeroDivisionError):
        load_apart(exit_codes.__name__, [room], [broken])
    assert sys.modules[exit_codes.__name__] is exit_codes
    assert installed_patches() == ()
