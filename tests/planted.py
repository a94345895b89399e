"""Tests that need a planted bug: each runs in a process of its own, in which the bug is planted.

    @pytest.mark.planted("vote-not-persisted")
    @pytest.mark.parametrize("bug", [with_bug(name) for name in NAMES])

The process is copied from one that has imported pytest and nothing of ours, so that all of ours is
loaded with the patches; there pytest runs the one test, fixtures included. A test without the mark
never sees a patch.
"""

import functools
import multiprocessing
import os
import sys
from collections.abc import Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from splitbrain.patched.loading import install_patches, installed_patches, read_patch_file

FOLDER = Path(__file__).parents[1] / "systems/kraft/planted"
#: Of the pytest in that process, which is loaded before it can rewrite what its plugins assert.
_OPTIONS = (
    *("-n0", "-sq", "--no-header", "-p", "no:cacheprovider"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    # Where our own plugin is found by pytest itself, it rewrites the modules that are patched.
    *("--disable-plugin-autoload", "-p", "xdist", "-p", "timeout", "-p", "hypothesispytest"),
)


def with_bug(name: str, *values: object) -> object:
    """A parameter set for which the bug is planted; its value is the bug's name, or those given."""
    return pytest.param(*(values or (name,)), marks=pytest.mark.planted(name), id=name)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a marked test where its bugs are planted; any other is run as ever."""
    marked = [name for mark in pyfuncitem.iter_markers("planted") for name in mark.args]
    patches = [FOLDER / f"{name}.patch" for name in dict.fromkeys(marked)]
    if [each.stem for each in patches] == [each.name for each in installed_patches()]:
        return None
    folders: pytest.TempPathFactory = pyfuncitem._request.getfixturevalue("tmp_path_factory")
    _run_alone(pyfuncitem, patches, folders.mktemp("planted"))
    return True


def _run_alone(item: pytest.Function, patches: Sequence[Path], folder: Path) -> None:
    root = item.config.rootpath
    rewriting = [each for each in item.config.invocation_params.args if each.startswith("--rew")]
    words = [f"{root}/{item.nodeid}", f"--rootdir={root}", f"--basetemp={folder / 'tmp'}"]
    words += [*_OPTIONS, *rewriting]
    output = folder / "output.txt"
    child = _template().Process(target=_plant_and_run, args=(patches, words, output), daemon=True)
    child.start()
    child.join()
    if child.exitcode != 0:
        how = f"where {item.name} has its bugs, pytest ended with code {child.exitcode}"
        pytest.fail(f"{how}:\n{output.read_text()}", pytrace=False)


@functools.cache
def _template() -> ForkServerContext:
    """The process that those with bugs are copied from: one thread, and no module of ours."""
    context = multiprocessing.get_context("forkserver")
    loaded = sorted(name for name in sys.modules if name.startswith("_pytest."))
    context.set_forkserver_preload(["pytest", "hypothesis", "msgspec", *loaded])
    return context


def _plant_and_run(patches: Sequence[Path], words: list[str], output: Path) -> None:
    with output.open("w") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    install_patches([read_patch_file(each) for each in patches])
    sys.exit(pytest.main(words))
