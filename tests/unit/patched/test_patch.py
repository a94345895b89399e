import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.patched.patch import PatchError, apply_patch, read_patch

TEN = "".join(f"line {number}\n" for number in range(1, 11))


def diff(old: str, new: str, path: str = "nodes/quorum/leader.py") -> str:
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"a/{path}", f"b/{path}", lineterm=""
    )
    return "\n".join(lines) + "\n"


def applied(patch: str, source: str) -> str:
    (part,) = read_patch("a-bug", patch).files
    return apply_patch("a-bug", source, part)


#: Sources whose lines look like parts of a diff, or are alike.
LINES = st.lists(
    st.sampled_from(["", " ", "a", "b", "-- a", "++ b", "-", "+", "@@ -1,1 +1,1 @@", "\\ x"]),
    min_size=1,
    max_size=30,
)


@given(LINES, LINES)
def test_a_diff_makes_the_old_source_the_new(old: list[str], new: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    if before != after:
        assert applied(diff(before, after), before) == after


def test_a_hunk_is_found_after_the_file_grew_above_it() -> None:
    patch = diff(TEN, TEN.replace("line 8", "line eight"))
    grown = "new\n" * 40 + TEN
    assert applied(patch, grown) == grown.replace("line 8", "line eight")


def test_the_line_that_is_named_decides_between_equal_places() -> None:
    twice = TEN + "between\n" * 9 + TEN
    changed = twice[: len(TEN)] + "between\n" * 9 + TEN.replace("line 5", "line five")
    assert applied(diff(twice, changed), twice) == changed


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(TEN.replace("line 7", "other"), id="its context has changed"),
        pytest.param("new\n" + TEN + "between\n" + TEN, id="it could stand in two places"),
        pytest.param("", id="the file is empty"),
    ],
)
def test_a_hunk_that_does_not_fit_is_refused(source: str) -> None:
    patch = diff(TEN, TEN.replace("line 8", "line eight"))
    with pytest.raises(PatchError, match=r"a-bug does not fit nodes/quorum/leader.py.*line 5"):
        applied(patch, source)


def test_the_preamble_is_what_stands_before_the_first_file() -> None:
    patch = "A vote is forgotten.\n\nSeen: a report.\n" + diff(TEN, TEN[7:])
    assert read_patch("a-bug", patch).preamble == "A vote is forgotten.\n\nSeen: a report."


def test_git_writes_lines_between_files_that_say_nothing() -> None:
    head = "diff --git a/nodes/x.py b/nodes/x.py\nindex 1..2 100644\n"
    files = read_patch("a-bug", head + diff(TEN, TEN[7:]) + head + diff("a\n", "b\n", "x.py")).files
    assert [file.path for file in files] == ["nodes/quorum/leader.py", "x.py"]


def test_the_packages_name_and_a_time_stamp_are_left_out_of_a_path() -> None:
    path = "splitbrain/nodes/x.py\t2026-11-23 10:00:00"
    assert read_patch("a-bug", diff("a\n", "b\n", path)).files[0].path == "nodes/x.py"


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        ("", "has no line that begins with '--- '"),
        ("just words\n", "has no line that begins with '--- '"),
        ("--- a/x.py\n", "has no line that begins with '--- '"),
        ("--- a/x.py\n+++ b/x.py\n", "x.py has no hunk"),
        ("--- a/x.py\n+++ b/x.py\nwords\n", "x.py has no hunk"),
        ("--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+a\n", "adds or deletes a file"),
        ("--- a/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "adds or deletes a file"),
        ("--- a/x.py\n+++ b/y.py\n@@ -1 +1 @@\n-a\n+b\n", "renames x.py to y.py"),
        ("--- a/x.py\n+++ b/x.py\n@@ -1,0 +2 @@\n+a\n", "without a line of context"),
        ("--- a/x.py\n+++ b/x.py\n@@ what @@\n-a\n+b\n", "is not a hunk's head"),
        ("--- a/x.py\n+++ b/x.py\n@@ -1,2 +1 @@\n-a\n+b\n", "ends where a line of a hunk"),
        ("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n*b\n", r"'\*b' begins with none of"),
        ("--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n-a\n-b\n+c\n+d\n", "other lines than its head"),
        ("@@ -1 +1 @@\n-a\n+b\n", "before the '--- ' and"),
        (diff("a\n", "b\n", "x.py") * 2, "names x.py twice"),
    ],
)
def test_what_is_no_patch_is_refused_in_one_sentence(patch: str, problem: str) -> None:
    with pytest.raises(PatchError, match=problem) as caught:
        read_patch("a-bug", patch)
    assert str(caught.value).startswith("Patch a-bug")
    assert "\n" not in str(caught.value)
