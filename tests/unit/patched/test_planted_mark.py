import subprocess
import sys
from pathlib import Path

from tests.unit.patched.test_loading import ROOT, SOURCE, patch_file

TESTS = """
import os
import pytest
from splitbrain.nodes.server.host.exit_codes import UNUSABLE

def test_no_mark_no_bug():
    assert UNUSABLE == 78

@pytest.mark.parametrize("code", [78, pytest.param(101, marks=pytest.mark.planted({patch!r}))])
def test_each_value_has_its_own(code, tmp_path):
    assert UNUSABLE == code and tmp_path.is_dir()

@pytest.mark.planted({patch!r})
def test_that_fails():
    print("printed before")
    assert UNUSABLE == 78, "for this reason"

@pytest.mark.planted({patch!r})
def test_that_dies():
    os.write(2, b"last words")
    os._exit(7)

@pytest.mark.planted("no-such-bug")
def test_without_a_patch():
    pass
"""


def test_a_marked_test_runs_where_its_bug_is_planted_and_no_other_does(tmp_path: Path) -> None:
    patch = patch_file(tmp_path, "other-code", SOURCE, f"{SOURCE}UNUSABLE = 101\n")
    tests = tmp_path / "test_marked.py"
    tests.write_text(TESTS.format(patch=patch.removesuffix(".patch")))
    # Our own plugin would have pytest rewrite the modules that are patched.
    plugins = ("--disable-plugin-autoload", "-p", "xdist", "-p", "tests.planted")
    options = (*plugins, "-n0", "-rA", f"--rootdir={tmp_path}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tests)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert "3 failed, 3 passed" in done.stdout
    assert "printed before" in done.stdout
    assert "AssertionError: for this reason" in done.stdout
    assert "pytest ended with code 7:\nlast words" in done.stdout
    assert "no-such-bug.patch cannot be read" in done.stdout
