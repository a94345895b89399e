"""Everything of ours is imported below one name, and no string spells that name out.

A room that is imported by its folder's name is a twin of the one that everybody else imports: its
classes are others (ruff's TID251 refuses such imports). A module that is named in a string, as
``-m MODULE`` or ``MODULE:FUNCTION``, is named by ``__name__``, ``__package__`` or
``contracts.distribution.PACKAGE``, so that it is found wherever the package lies.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidy.tree import project_files

ROOT = Path(__file__).parents[3]
LINKS = sorted(path for path in (ROOT / "splitbrain").iterdir() if path.is_symlink())
#: The pages that are printed to users, which are no room.
PAGES = "docs"
ROOMS = tuple(link.name for link in LINKS if link.name != PAGES)
#: A module's full name, maybe with a function behind it, or the beginning of such a name.
NAMED = re.compile(rf"(?:splitbrain\.)?((?:{'|'.join(ROOMS)})(?:\.\w+)*)\.?(?::\w+)?")


def strings(tree: ast.AST) -> Iterator[ast.Constant]:
    """The strings of a module, its docstrings and the parts of f-strings apart."""
    passed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr | ast.JoinedStr):
            passed.update(id(each) for each in ast.iter_child_nodes(node))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in passed
        ):
            yield node


def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return "." in name and (path.is_dir() or path.with_suffix(".py").is_file())


def named_modules(text: str) -> list[str]:
    """Modules of ours that a source names in strings."""
    found = [
        (each, match)
        for each in strings(ast.parse(text))
        if (match := NAMED.fullmatch(str(each.value))) is not None
    ]
    return [str(each.value) for each, match in found if is_module(match[1])]


def test_each_room_is_a_link_to_the_folder_beside() -> None:
    assert [str(link.readlink()) for link in LINKS] == [f"../{link.name}" for link in LINKS]
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert set(ROOMS) == folders - {"bench", "splitbrain", "tests", "tidy"}


@pytest.mark.parametrize("room", ROOMS)
def test_no_string_names_a_room(room: str) -> None:
    files = [path for path in project_files(ROOT) if path.parts[0] == room]
    sources = [ROOT / path for path in files if path.suffix == ".py"]
    assert sources
    assert {
        str(path): named for path in sources if (named := named_modules(path.read_text()))
    } == {}


@pytest.mark.parametrize(
    "source",
    [
        'MODULE = "harness.pool.worker_process"',
        'FUNCTION = "splitbrain.harness.judge.checking:check_whole"',
        'OURS = "checker.models."',
        'run([sys.executable, "-m", "runtimes.watchdog"])',
    ],
)
def test_a_string_that_names_one_is_seen(source: str) -> None:
    assert len(named_modules(source)) == 1


@pytest.mark.parametrize(
    "source", ['"history.jsonl"', 'f"{PACKAGE}.harness.cli"', '"nodes"', "'''see nodes.wire'''"]
)
def test_other_strings_are_left_alone(source: str) -> None:
    assert named_modules(f"NAME = {source}") == []


def test_a_node_starts_by_its_folders_name_in_a_clone() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nodes", "--help"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "format" in done.stdout
