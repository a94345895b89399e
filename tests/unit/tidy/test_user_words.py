"""Words that users must not meet: each has a plain one instead."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.runtimes.docker.images import ROOT

ROOMS = (
    *("checker", "contracts", "harness", "history", "nemesis", "patched", "plugins", "runtimes"),
    *("simulation", "spark_analysis", "systems", "workloads"),
)
#: Words that are not said, each with what is said instead.
INSTEAD = {
    r"\bbit(ten)?\b(?!s| flip)": "took effect",
    r"of which refused": "mismatches",
    r"nobody knows": "the outcome is unknown",
    r"[Hh]ow surely": "reproduction rate",
    r"where most was going on": "busiest moment",
    r"[Pp]roblems around": "notes",
    r"\bSwept\b": "summary",
    r"believed lies": "undetectable disk damage",
    r"what faults met|faults met\b": "fault coverage",
    r"[Ww]ho believed to lead": "leadership claims",
    r"the run ended before it": "not reached",
    r"simulated seconds a second": "x real time",
    r"is no JSON": "is not valid JSON",
    r"is no pair": "is not a pair",
    r"the PATH is missing": "missing argument",
    r"\bdocs/[a-z/-]+\.md": "`splitbrain docs PAGE`",
}
RULES = re.compile("|".join(f"(?:{words})" for words in INSTEAD))


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of all that a file may show: of a module its texts, without docstrings."""
    whole = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(whole.splitlines(), 1)
        return
    tree = ast.parse(whole)
    # A docstring, of whatever it is, is an expression that is a text alone.
    alone = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


@pytest.mark.parametrize("room", ROOMS)
def test_no_text_has_a_word_that_users_must_not_meet(room: str) -> None:
    files = [path for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".j2", ".js")]
    assert files
    found = [
        f"{path.relative_to(ROOT)}:{line}: {match[0]!r}"
        for path in files
        if "vendor" not in path.parts
        for line, text in texts(path)
        # A name of a field or a phase is no sentence.
        if " " in text and (match := RULES.search(text))
    ]
    assert found == []


def test_each_of_them_is_seen(tmp_path: Path) -> None:
    shown = tmp_path / "shown.py"
    shown.write_text('"""nobody knows"""\nx = f"{1} seeds: nobody knows"\n')
    assert [text for _, text in texts(shown) if RULES.search(text)] == [" seeds: nobody knows"]
