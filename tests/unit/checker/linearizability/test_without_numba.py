"""Where numba is not installed everything is decided all the same."""

import subprocess
import sys

#: Judges a history that the first try in Python does not decide; numba cannot be imported.
PROGRAM = """
import importlib.util, sys
{blocked}
from bench.histories import HistoryOptions, generate
from splitbrain.checker.linearizability import portfolio
from splitbrain.checker.linearizability.check import check
from splitbrain.contracts.budget import Unlimited

portfolio.FIRST_TRY_CONFIGURATIONS_MAX = 100
portfolio.FIRST_TRY_PER_OPERATION = 0
for options in (HistoryOptions(600, 10), HistoryOptions(300, 5, info=0.1, violation=True)):
    print(check(generate(options), "cas-register", Unlimited()).verdict)
print("numba" in sys.modules)
"""
BLOCKED = """
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "numba" else find_spec(name, *more)
sys.modules["llvmlite"] = None
"""


def judged(blocked: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM.format(blocked=blocked)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_verdicts_are_the_same_without_numba() -> None:
    assert judged("") == ["valid", "invalid", "True"]
    assert judged(BLOCKED) == ["valid", "invalid", "False"]
