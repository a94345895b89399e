"""CONTRIBUTING's recipes: each names the files to touch and the test that adds a dummy so.

A dummy is added where the code keeps the thing of its kind, by ``monkeypatch``. Were a recipe's
files not enough, the dummy's test would have to replace something in another module, and fails
here for it.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RECIPE = re.compile(
    r"^\*\*(?:A|An) ([^*]+)\*\*([^\n]*)\n(.*?)(?=^\*\*|^And besides|\Z)", re.MULTILINE | re.DOTALL
)
RECIPES = {
    match[1]: (match[2] + match[3], re.findall(r"`(tests/\S+\.py)`", match[2]))
    for match in RECIPE.finditer((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
}
#: Recipes of which a test adds a dummy.
HELD = sorted(name for name, (_, tests) in RECIPES.items() if tests)


def source_of(module: str) -> Path:
    """File of a module, or of a folder its ``__init__``; relative to the root."""
    path = Path(*module.removeprefix("splitbrain.").split("."))
    return path.with_suffix(".py") if (ROOT / path).with_suffix(".py").exists() else path


def imported(tree: ast.Module) -> dict[str, str]:
    """Each name that a module imports, to the module that it is, or in which it stands."""
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def home(module: str, attribute: str) -> Path:
    """File in which an attribute of a module is declared, however often it is imported."""
    source = source_of(module)
    if (ROOT / source).is_dir():
        return source
    names = imported(ast.parse((ROOT / source).read_text(encoding="utf-8")))
    return source_of(names[attribute].rpartition(".")[0]) if attribute in names else source


def touched(test: str) -> set[str]:
    """Files and folders in which a dummy's test replaces something."""
    tree = ast.parse((ROOT / test).read_text(encoding="utf-8"))
    names = imported(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if ast.unparse(node.func.value) != "monkeypatch":
            continue
        place, name, value = (ast.unparse(argument) for argument in node.args)
        if node.func.attr == "setitem":
            place, _, name = place.rpartition(".")
        if name == "'FOLDER'":
            # In place of a new file of the folder that the module reads.
            found.add(f"{source_of(names[place]).parent}/planted/*.patch")
            continue
        for module in LOOPS.get(place, (place,)):
            # A list that the module itself makes of what it finds is made anew.
            if not value.startswith(f"{module}.found_"):
                found.add(str(home(names.get(module, module), name.strip("'"))))
    return found


#: Modules that a loop of a dummy's test goes through, by its variable.
LOOPS = {"reader": ("analyze", "analysis_process")}


def test_there_are_the_eleven_recipes() -> None:
    assert list(RECIPES) == [
        *("fault kind", "workload", "model", "system under test", "option of `test`"),
        *(
            "option of `sim`",
            "Spark job",
            "invariant",
            "planted bug",
            "column of the report's faults",
            "export",
        ),
    ]
    assert sorted(RECIPES) == HELD


@pytest.mark.parametrize("recipe", HELD)
def test_a_dummy_touches_no_file_that_its_recipe_does_not_name(recipe: str) -> None:
    text, (test,) = RECIPES[recipe]
    files = {name.rstrip("/") for name in re.findall(r"`([\w./*-]+)`", text)}
    assert touched(test) <= files


def test_a_file_that_a_recipe_lacks_is_seen() -> None:
    assert touched("tests/unit/systems/test_a_new_system.py") == {"systems/registry.py"}
    assert "contracts/analysis/run.py" in touched("tests/spark/test_a_new_job.py")
    assert touched("tests/unit/nemesis/test_a_new_kind.py") == {
        *("nemesis/families", "harness/run/acting.py", "harness/run/world/acting.py")
    }
