"""Variables in compose files: every form of the specification, nested, and what is no template."""

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.systems.compose_file.variables import Variables, read_variables

VALUES = {"A": "a", "EMPTY": "", "B": "b"}


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("plain", "plain"),
        ("$A-$B", "a-b"),
        ("${A}${B}", "ab"),
        ("${A:-x}", "a"),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY-x}", ""),
        ("${NONE-x}", "x"),
        ("${NONE:-${A}}", "a"),
        ("${NONE:-{A}}", "{A}"),
        ("${NONE:-}", ""),
        ("${NONE:-a:b-c}", "a:b-c"),
        ("${A:+set}${NONE+set}${EMPTY+set}${EMPTY:+set}", "setset"),
        ("$$A costs 3$$", "$A costs 3$"),
        ("${A:?no}", "a"),
        ("a\n$A", "a\na"),
    ],
)
def test_a_text_is_substituted(text: str, becomes: str) -> None:
    assert Variables(VALUES).substituted(text, "here") == becomes


@pytest.mark.parametrize("text", ["costs 3$", "${", "${A", "${}", "${1}", "$1", "${A!x}", "${A:}"])
def test_a_dollar_that_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"here is .* where a \$ stands before no name"):
        Variables(VALUES).substituted(text, "here")


@pytest.mark.parametrize(("text", "why"), [("${NONE:?set it}", "set it"), ("${EMPTY:?}", "no val")])
def test_a_variable_that_must_be_set_is_asked_for(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"needs the variable .*{why}"):
        Variables(VALUES).substituted(text, "here")


def test_values_are_substituted_keys_are_not_and_what_is_missing_is_known() -> None:
    variables = Variables(VALUES)
    content = {"$A": ["$A", {"x": "$NONE"}, None]}
    assert variables.in_all(content, "here") == {"$A": ["a", {"x": ""}, None]}
    assert list(variables.missing) == ["NONE"]


def test_a_file_of_variables_has_comments_quotes_and_exports() -> None:
    text = "# of us\n\nA=1 # one\nexport B='two # two'\nC=\"x=y\"\nD=\nE=a#b\n"
    assert read_variables(text, "x.env") == {
        "A": "1",
        "B": "two # two",
        "C": "x=y",
        "D": "",
        "E": "a#b",
    }


@pytest.mark.parametrize("line", ["A", "1=2", "=x", "A B=1"])
def test_a_line_that_is_no_variable_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match=r"x\.env, line 2"):
        read_variables(f"A=1\n{line}", "x.env")
