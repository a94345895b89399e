"""Each rule of the tidy check is broken once on purpose; ``make tidy`` holds the project to all."""

import ast
from pathlib import PurePosixPath

import pytest

from tidy.style_rules import (
    FUNCTION_LINES_MAX,
    MODULE_LINES_MAX,
    check_names,
    check_python,
    check_text,
    code_lines,
)
from tidy.tree import Finding

DOCSTRING = '"""Says its purpose."""\n'
NODE_MODULE = PurePosixPath("nodes/storage/segment.py")
TEST_MODULE = PurePosixPath("tests/unit/nodes/test_segment.py")


def sentences(found: list[Finding]) -> str:
    return "\n".join(str(finding) for finding in found)


def function_of(lines: int) -> str:
    return "def long():\n" + "    x = 1\n" * (lines - 1)


@pytest.mark.parametrize("name", ["nodes/utils.py", "harness/helpers/clock.py", "tests/misc.py"])
def test_names_that_say_nothing_are_found(name: str) -> None:
    assert "says nothing" in sentences(check_names([PurePosixPath(name)]))


def test_the_engine_folder_must_be_no_package() -> None:
    assert "shadow" in sentences(check_names([PurePosixPath("docker/__init__.py")]))


def test_a_module_without_docstring_is_found() -> None:
    assert "purpose" in sentences(check_python(NODE_MODULE, "X = 1\n"))


def test_a_long_module_needs_a_reason() -> None:
    body = "X = 1\n" * MODULE_LINES_MAX
    assert "split it" in sentences(check_python(NODE_MODULE, DOCSTRING + body))
    reason = '"""A table, longer than 400 lines because\nKafka has that many fields."""\n'
    assert check_python(NODE_MODULE, reason + body) == []


def test_a_long_function_is_found() -> None:
    long = DOCSTRING + function_of(FUNCTION_LINES_MAX + 1)
    assert "read well" in sentences(check_python(NODE_MODULE, long))
    assert check_python(NODE_MODULE, DOCSTRING + function_of(FUNCTION_LINES_MAX)) == []


def test_tables_and_docstrings_are_not_counted_as_code() -> None:
    table = "    table = [\n" + "        1,\n" * 80 + "    ]\n"
    text = (
        'def long():\n    """Says much\n' + "    more\n" * 20 + '    """\n' + table + "    x = 1\n"
    )
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert code_lines(function) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "async def f(): ...",
        "async def f():\n    await g()",
        "async def f():\n    async with g: ...",
    ],
)
def test_coroutines_below_the_server_are_found(statement: str) -> None:
    text = DOCSTRING + statement + "\n"
    assert "coroutines" in sentences(check_python(NODE_MODULE, text))
    assert check_python(PurePosixPath("nodes/server/host.py"), text) == []


@pytest.mark.parametrize(
    "statement",
    [
        "from splitbrain.patched import loading",
        "def f(bugs): ...",
        "if self.planted_bug: x = 1",
        "f(bug_of_votes=1)",
        "class PlantedBug: ...",
    ],
)
def test_a_node_that_knows_of_planted_bugs_is_found(statement: str) -> None:
    text = DOCSTRING + statement + "\n"
    assert "does not know that it is tested" in sentences(check_python(NODE_MODULE, text))
    assert check_python(PurePosixPath("systems/kraft/adapter.py"), text) == []
    assert check_python(NODE_MODULE, DOCSTRING + "debug(dispatched)\n") == []


@pytest.mark.parametrize(
    "statement",
    [
        "@pytest.mark.skip\ndef test_x(): ...",
        "pytest.skip('no engine')",
        "pytest.importorskip('docker')",
    ],
)
def test_skipped_tests_are_found(statement: str) -> None:
    assert "skipped" in sentences(check_python(TEST_MODULE, statement + "\n"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("data = '" + "/ro" + "ot/data'", "one machine"),
        ("# see " + "/ho" + "me/ada/notes", "one machine"),
        ("# TO" + "DO later", "unfinished"),
        ("url = 'https://py" + "pi.org/simple'", "package source"),
    ],
)
def test_text_that_holds_on_one_machine_or_is_unfinished_is_found(line: str, problem: str) -> None:
    assert problem in sentences(check_text(PurePosixPath("README.md"), line + "\n"))


@pytest.mark.parametrize("line", ["cp x /tmp/y", "docs/work/root/x", "a/home/b", "$HOME/work/x"])
def test_relative_and_shared_paths_pass(line: str) -> None:
    assert check_text(PurePosixPath("README.md"), line + "\n") == []


def test_a_script_that_goes_on_after_a_failure_is_found() -> None:
    careless = "#!/usr/bin/env bash\nset -e\n"
    assert "goes on" in sentences(check_text(PurePosixPath("docker/x.sh"), careless))
    careful = "#!/usr/bin/env bash\nset -euo pipefail\n"
    assert check_text(PurePosixPath("docker/x.sh"), careful) == []
