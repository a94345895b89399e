"""Papers are true: names of ours in them exist, figures of the code are those of the code.

Decision records are left out: they speak of the code of their day.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from splitbrain.checker.models.registry import MODELS
from splitbrain.harness.report.explanations import explained
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from splitbrain.systems.registry import system
from tidy.tree import project_files

ROOT = Path(__file__).parents[3]
FILES = {str(path) for path in project_files(ROOT)}
FOLDERS = {str(parent) for path in project_files(ROOT) for parent in path.parents}
ROOMS = {*(name.split("/")[0] for name in FILES if name.endswith("/__init__.py")), "tests"}
ROOMS -= {"splitbrain"}
PAPERS = sorted(
    name
    for name in FILES
    if name.endswith(".md")
    and not name.startswith(("docs/decisions/", "CHANGELOG"))
    and ("/" not in name or name.startswith("docs/"))
)
NAME = re.compile(
    rf"(?<![\w./~-])(?:splitbrain\.)?((?:{'|'.join(sorted(ROOMS))})(?:[./][\w-]+)+/?)"
)
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
#: A method that is named after its class was: ``Seat.end``.
SHORT = re.compile(r"`([A-Z]\w+)\.(\w+)`")
#: Endings of files that runs make or users have, beside rooms of the same name: ``history.jsonl``.
DATA = (".jsonl", ".jsonl.gz", ".json", ".parquet", ".py", ".txt")


def named(text: str) -> set[str]:
    """Names of ours in the code of a paper, those that end with a star apart."""
    names = {
        match[1]
        for code in CODE.findall(text)
        for match in NAME.finditer(code)
        if code[match.end() : match.end() + 1] not in ("*", "<", "{")
        and ("/" in match[1] or not match[1].endswith(DATA))
    }
    classes = {name[: place.end()] for name in names for place in re.finditer(r"\.[A-Z]\w+", name)}
    short = {
        f"{name}.{member}"
        for name_of_class, member in SHORT.findall(text)
        for name in classes
        if name.endswith(f".{name_of_class}")
    }
    return names | short


@cache
def _module(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def _member(node: ast.Module | ast.ClassDef, name: str) -> ast.AST | None:
    for each in node.body:
        if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            bound = [each.name]
        elif isinstance(each, ast.ImportFrom | ast.Import):
            bound = [alias.asname or alias.name for alias in each.names]
        elif isinstance(each, ast.Assign):
            bound = [target.id for target in each.targets if isinstance(target, ast.Name)]
        elif isinstance(each, ast.AnnAssign):
            bound = [ast.unparse(each.target)]
        else:
            bound = []
        if name in bound:
            return each
    return None


def exists(name: str) -> bool:
    """Whether there is such a file, folder, module, or member of a module or of its class."""
    if "/" in name:
        return name.rstrip("/") in FILES | FOLDERS
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = "/".join(parts[:length])
        members = parts[length:]
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if file in FILES:
                return _has(_module(file), members)
        if path in FILES | FOLDERS:
            return not members
    return False


def _has(node: ast.AST, members: list[str]) -> bool:
    for member in members:
        found = _member(node, member) if isinstance(node, ast.Module | ast.ClassDef) else None
        if found is None:
            return False
        node = found
    return True


@pytest.mark.parametrize("paper", PAPERS)
def test_every_name_in_a_paper_is_one_of_the_code(paper: str) -> None:
    text = (ROOT / paper).read_text(encoding="utf-8")
    assert sorted(name for name in named(text) if not exists(name)) == []


@pytest.mark.parametrize(
    "name",
    [
        "nodes.server.host.nodes",
        "nodes.server.host.node.Nodes",
        "nodes.server.host.node.Node.fed",
        "checker/models/nothing.py",
        "harness/runs/",
    ],
)
def test_a_name_of_nothing_is_seen(name: str) -> None:
    assert named(f"See `{name}`.") == {name}
    assert not exists(name)


def test_a_method_named_after_its_class_is_looked_for_there() -> None:
    text = "`nodes.server.host.node.Node.feed` is called by `Node.fed` and `Elsewhere.fed`."
    assert [name for name in sorted(named(text)) if not exists(name)] == [
        "nodes.server.host.node.Node.fed"
    ]


def test_each_of_the_six_walks_has_at_most_ten_lines() -> None:
    walks = (
        (ROOT / "ARCHITECTURE.md").read_text().partition("## Six walks")[2].partition("\n## ")[0]
    )
    lengths = [len(walk.strip().splitlines()) for walk in walks.strip().split("\n\n")]
    assert len(lengths) == 6
    assert max(lengths) <= 10


def test_figures_of_the_code_in_papers_are_those_of_the_code() -> None:
    report = (ROOT / "docs" / "understanding-a-report.md").read_text(encoding="utf-8")
    assert re.findall(r"(\w+) models and your own", report) == [{13: "Thirteen"}[len(MODELS)]]
    bugs = system("kraft").planted_bugs
    measured = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    assert re.findall(r"There are (\d+) planted bugs", measured) == [str(len(bugs))]


def test_the_paper_on_invariants_says_of_each_what_is_explained() -> None:
    paper = (ROOT / "docs" / "invariants.md").read_text()
    rows = dict(re.findall(r"^\| (INV-\d+) \| (.*?) \|", paper, re.MULTILINE))
    assert {invariant.id for invariant in INVARIANTS} - rows.keys() == set()
    # A link leads nowhere on a terminal.
    said = {name: re.sub(r" \(\[[^]]*\]\([^)]*\)\)", "", text) for name, text in rows.items()}
    assert said == {text.name: text.says for text in explained()["invariant"]}
