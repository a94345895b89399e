import ast
from textwrap import dedent

import pytest

from bench.mutant_rooms import ROOMS, ROOT, files_of
from bench.mutant_sites import Mutant, mutants_of, mutated

FILE = "nodes/quorum/thing.py"


def changes(source: str) -> list[tuple[str, str]]:
    """Operator and resulting line of each mutant."""
    return [(one.operator, one.after) for one in mutants_of(dedent(source), FILE)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = b < c", [("comparison", "a = b <= c")]),
        ("a = b >= c", [("comparison", "a = b > c")]),
        ("a = b != c", [("comparison", "a = b == c")]),
        ("a = b is None", [("comparison", "a = b is not None")]),
        ("a = b not in c", [("comparison", "a = b in c")]),
        ("a = 1", [("constant", "a = 2"), ("constant", "a = 0")]),
        ("a = True", [("boolean", "a = False")]),
        ("a = not b", [("negation", "a = b")]),
        ("a = b + c", [("arithmetic", "a = b - c")]),
        ("a = b // c", [("arithmetic", "a = b * c")]),
        ("a += b", [("arithmetic", "a -= b")]),
        ("a = min(b, c)", [("function", "a = max(b, c)")]),
        ("a = any(b)", [("function", "a = all(b)")]),
        ("a.b = c", [("deletion", "pass")]),
        ("a[b] = c", [("deletion", "pass")]),
        ("del a[b]", [("deletion", "pass")]),
        ("a(b)", [("deletion", "pass")]),
        ("raise Error(a < b, 1)", [("deletion", "pass")]),
        ("if a: b = c", [("negation", "if not a:")]),
        ("if a == b: c = d", [("comparison", "if a != b:")]),
        ("a = [b for b in c if d]", []),
        (
            "a = b and c",
            [("junction", "a = b or c"), ("operand", "a = c"), ("operand", "a = b")],
        ),
        (
            "if a < b: c = d",
            [("negation", "if not a < b:"), ("comparison", "if a <= b:")],
        ),
        ("a = b if c else d", [("negation", "a = b if not c else d")]),
    ],
)
def test_each_operator_makes_its_changes(source: str, expected: list[tuple[str, str]]) -> None:
    assert changes(source) == expected


def test_a_function_that_returns_nothing_may_return_at_once() -> None:
    source = "def f(self) -> None:\n    a = b\n    c = d"
    assert changes(source) == [("return", "def f: return None")]


def test_only_a_function_that_may_say_none_says_it() -> None:
    assert changes("def f() -> int | None:\n    return a") == [("return", "return None")]
    assert changes("def f() -> int | None:\n    return None") == []
    assert changes("def f() -> int:\n    return a") == []


def test_jumps_within_a_loop_are_dropped() -> None:
    source = "for a in b:\n    if c is d:\n        continue\n    break"
    operators = [operator for operator, _ in changes(source)]
    assert operators == ["comparison", "deletion", "deletion"]


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring with 1 < 2."""',
        "def f(a: Literal[1]) -> Literal[2]:\n    pass",
        "a: Literal[1]",
        "if TYPE_CHECKING:\n    a = 1",
        'a = f"{b + 1} of {c - 1}"',
        "class A(Protocol):\n    a = 1",
        "class A(IntEnum):\n    a = 1",
        "class A:\n    def __init__(self):\n        self.a = b",
        "@decorated(1)\ndef f():\n    pass",
        'a = "text" + b',
    ],
)
def test_what_no_test_should_see_is_left_out(source: str) -> None:
    assert changes(source) == []


def test_a_mutant_keeps_its_name_when_lines_move() -> None:
    source = "def f(a):\n    return a < 1"
    names = [one.id for one in mutants_of(source, FILE)]
    moved = mutants_of("import b\n\n" + source, FILE)
    assert [one.id for one in moved] == names
    assert {one.line for one in moved} == {4}


def test_equal_changes_in_one_function_have_different_names() -> None:
    mutants = mutants_of("a(b)\na(b)", FILE)
    assert len({one.id for one in mutants}) == 2


def test_a_mutant_differs_from_the_source_in_its_one_statement() -> None:
    source = "def f(a, b):\n    if a < b:\n        return 1\n    return b - a\n"
    original = ast.unparse(ast.parse(source)).splitlines()
    for mutant in mutants_of(source, FILE):
        lines = ast.unparse(mutated(source, mutant)).splitlines()
        pairs = zip(original, lines, strict=True)
        differing = [(one.strip(), other.strip()) for one, other in pairs if one != other]
        assert differing == [(mutant.before, mutant.after)]


def test_a_mutant_of_another_text_is_refused() -> None:
    (mutant,) = mutants_of("a = b < c", FILE)
    with pytest.raises(ValueError, match="has changed since the mutant"):
        mutated("a = b > c", mutant)
    with pytest.raises(ValueError, match="has changed since the mutant"):
        mutated("", mutant)


def test_mutants_of_real_code_can_be_compiled_and_are_other_programs() -> None:
    for file in [file for room in ROOMS for file in files_of(room)][::7]:
        source = (ROOT / file).read_text()
        mutants = mutants_of(source, file)
        assert len({one.id for one in mutants}) == len(mutants)
        for mutant in mutants[::40]:
            tree = mutated(source, mutant)
            compile(tree, file, "exec")
            assert ast.dump(tree) != ast.dump(ast.parse(source)), mutant


def test_the_module_of_a_file() -> None:
    mutant = Mutant(
        id="00000000", file=FILE, line=1, scope="", operator="", before="", after="", number=0
    )
    assert mutant.module == "splitbrain.nodes.quorum.thing"
