"""The page on tests of one's own is true: its tests are run by two workers at once.

Besides, whoever does not ask for the fixture does not notice the plugin.
"""

import re
import subprocess
import sys

import msgspec
import pytest

from splitbrain.runtimes.docker.images import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def blocks(page: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_page_passes_and_fails_as_it_says_also_side_by_side(pytester: pytest.Pytester) -> None:
    (shelf, *_), (tests,) = blocks("your-system.md"), blocks("pytest.md")
    pytester.makepyfile(shelf=shelf, test_shelf=tests)
    # From elsewhere: the file of the system lies beside that of the test.
    (pytester.path / "elsewhere").mkdir()
    runs = pytester.path / "elsewhere" / "kept"
    words = ("-n", "2", "--splitbrain-seed", "11", "--splitbrain-runs", "kept")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    done = subprocess.run(
        [*command, "--rootdir", str(pytester.path), str(pytester.path / "test_shelf.py")],
        check=False,
        cwd=runs.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    text = done.stdout
    assert (done.returncode, "1 failed, 1 passed" in text) == (1, True), text
    assert "splitbrain: --splitbrain-seed 11" in text
    assert re.search(
        r"E +AssertionError: INVALID: (Lost write|Stale read)\. n1 acknowledged write", text
    ), text
    assert re.search(r"It contradicts write 1 \(index 0, process 0\)", text), text
    assert "seed 11, again: pytest test_shelf.py::test_a_shelf_survives_a_kill" in text
    (pause,), (kill,) = (
        list(runs.glob(f"test_a_shelf_survives_a_{fault}/*")) for fault in ("pause", "kill")
    )
    assert f"splitbrain check {kill}" in text
    plans = [msgspec.json.decode((run / "plan.json").read_bytes()) for run in (pause, kill)]
    assert [plan["seed"] for plan in plans] == [11, 11]
    again = subprocess.run(
        [sys.executable, "-P", "-m", "splitbrain.harness.cli", "replay", str(kill)],
        check=False,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert again.returncode == 64
    assert "test_shelf.py::test_a_shelf_survives_a_kill, which stand in no plan" in again.stderr


def test_it_costs_nothing_where_nobody_asks_for_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys

        def test_without():
            ours = [name for name in sys.modules if name.partition(".")[0] == "splitbrain"]
            assert [name for name in ours if "plugin" not in name] == [
                "splitbrain", "splitbrain.harness", "splitbrain.harness.testing"
            ]
            assert "msgspec" not in sys.modules
    """)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    done.assert_outcomes(passed=1)
