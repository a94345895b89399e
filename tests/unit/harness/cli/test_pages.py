"""The documentation in an installed tool: each page can be read, and messages name pages it has."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.harness.cli.main import run
from splitbrain.harness.cli.pages import page_names
from splitbrain.runtimes.docker.images import ROOT

SOURCES = sorted(
    path for room in (ROOT / "splitbrain").iterdir() for path in room.resolve().rglob("*.py")
)


def read_by_users(source: Path) -> Iterator[str]:
    """Yield the strings of a module, without docstrings unless they are a command's help."""
    tree = ast.parse(source.read_text())
    hidden: set[int] = set()
    for node in ast.walk(tree):
        is_help = isinstance(node, ast.FunctionDef) and node.name.endswith("_command")
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and not is_help:
            # The first expression of a body: its docstring, if it is one.
            hidden.add(id(getattr(node.body[0], "value", None)) if node.body else 0)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in hidden
        ):
            yield node.value


def test_messages_name_pages_that_an_installed_tool_has() -> None:
    names = page_names()
    named: set[str] = set()
    for source in SOURCES:
        for text in read_by_users(source):
            assert not re.search(r"docs/[a-z/-]+\.md", text), (source, text)
            named |= set(re.findall(r"`splitbrain docs ([a-z/-]+)`", text))
    assert len(named) >= 10
    assert named - set(names) == set()


@pytest.mark.parametrize("name", page_names())
def test_every_page_is_printed_as_it_is_written(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["docs", name]) == 0
    file = ROOT / "docs" / (name if (ROOT / "docs" / name).is_file() else f"{name}.md")
    assert capsys.readouterr().out == file.read_text()


@pytest.mark.parametrize("name", ["power", "faults/power", "docs/faults/power.md"])
def test_a_page_is_found_by_its_last_word_and_by_its_path(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["docs", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["page"] == "faults/power"


def test_without_a_name_it_is_the_table_of_contents(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["docs"]) == 0
    assert capsys.readouterr().out.startswith("# Documentation\n")


def test_a_page_that_is_not_there_has_a_neighbour(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["docs", "suites"]) == 64
    assert capsys.readouterr().err.strip() == (
        "splitbrain: there is no page 'suites'. Did you mean 'suite'?"
    )
