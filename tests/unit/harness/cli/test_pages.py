"""The documentation in an installed tool: each page can be read, and messages name pages it has."""

import json
import re

import pytest

from splitbrain.harness.cli.command_app import EXAMPLE_LINES, app
from splitbrain.harness.cli.main import run
from splitbrain.harness.cli.pages import page_names
from splitbrain.runtimes.docker.images import ROOT
from tests.unit.tidy.test_user_words import ROOMS, RULES, texts

SOURCES = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]


def test_messages_and_helps_name_pages_that_an_installed_tool_has() -> None:
    messages = [text for source in SOURCES for _, text in texts(source)]
    helps = [app[name].default_command.__doc__ or "" for name in EXAMPLE_LINES]
    assert [text for text in helps if RULES.search(text)] == []
    named = re.findall(r"`splitbrain docs ([a-z/-]+)`", "\n".join([*messages, *helps]))
    assert len({*named}) >= 10
    assert {*named} - {*page_names()} == set()


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
