"""Nothing in the rooms that judge and drive knows a system by name, comments apart.

Imports nothing of the project: it reads texts. The names are those of the folders in ``systems/``
and of the parts that such a system consists of.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = ("harness", "nemesis", "workloads", "checker", "spark_analysis")
#: Parts of systems by which one could be known as well.
PARTS = ("sentinel",)
#: Words that only begin like a name: rediscover, redistribute, a format of histories.
ENGLISH = "(?!cover|tribut|-robustness)"
#: Texts of ours; vendored code and pictures are not.
SUFFIXES = {".py", ".j2", ".html", ".css", ".js", ".toml", ".json", ".md", ".txt"}
STRANGERS = {"vendor", "__pycache__"}


def system_names(root: Path) -> set[str]:
    """Names of the folders in ``systems/``, and of parts of systems."""
    folders = (entry for entry in (root / "systems").iterdir() if entry.is_dir())
    return {*PARTS, *(entry.name for entry in folders if not entry.name.startswith("_"))}


def without_comments(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers and texts; of Python without its comments, docstrings kept."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            yield token.start[0], token.string


def known_systems(root: Path) -> list[str]:
    """Every place of a room that names a system."""
    names = "|".join(map(re.escape, sorted(system_names(root))))
    pattern = re.compile(f"(?:{names}){ENGLISH}", re.IGNORECASE)
    found: list[str] = []
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in SUFFIXES or not STRANGERS.isdisjoint(path.parts):
                continue
            place = path.relative_to(root)
            if pattern.search(str(place)):
                found.append(str(place))
            found += [
                f"{place}:{number}: {text.strip()[:80]}"
                for number, text in without_comments(path)
                if pattern.search(text)
            ]
    return found


def test_no_room_that_judges_or_drives_names_a_system() -> None:
    assert {"kraft", "redis", "sentinel"} <= system_names(ROOT)
    assert known_systems(ROOT) == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    (tmp_path / "systems" / "ours").mkdir(parents=True)
    (tmp_path / "systems" / "__pycache__").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("judge.py", 'if system == "ours":\n    pass\n'),
        ("judge.py", '"""Runs Ours, say."""\n'),
        ("judge.py", 'HELP = f"as in {1} OURS"\n'),
        ("judge.py", "from splitbrain.systems.ours import adapter\n"),
        ("judge.py", 'FAILOVER = "+switch of a Sentinel"\n'),
        ("assets/page.html.j2", "<p>ours</p>\n"),
        ("ours.py", ""),
    ],
)
def test_a_room_that_names_one_is_found(tree: Path, name: str, text: str) -> None:
    path = tree / "harness" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert len(known_systems(tree)) == 1


def test_comments_and_what_others_wrote_may_name_one(tree: Path) -> None:
    (tree / "checker" / "verdict.py").write_text("X = 1  # ours does the same\n")
    (tree / "harness" / "vendor").mkdir()
    (tree / "harness" / "vendor" / "plot.js").write_text("ours")
    (tree / "systems" / "ours" / "adapter.py").write_text('name = "ours"\n')
    assert known_systems(tree) == []
