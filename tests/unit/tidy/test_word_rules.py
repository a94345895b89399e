"""The rule against riddles finds each kind of prose and lets questions pass."""

from pathlib import PurePosixPath

import pytest

from tidy.word_rules import check_words

MODULE = PurePosixPath("tidy/tree.py")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('"""What a broker has applied."""\n', 1),
        ('"""Offsets.\n\nWhich are applied.\n"""\n', 3),
        ('class A:\n    """Offsets. Who reads them, waits."""\n', 2),
        ("X = 1\n#: What a broker has applied.\nY = 2\n", 2),
        ("X = 1  # Who reads it, waits\n", 1),
        ("# Offsets of all brokers.\n# Which are applied.\n", 2),
    ],
)
def test_a_statement_that_begins_like_a_question_is_found(text: str, line: int) -> None:
    assert [finding.line for finding in check_words(MODULE, text)] == [line]


@pytest.mark.parametrize(
    "text",
    [
        '"""Who reads this?"""\n',
        '"""Offsets of the brokers\nWhich Kafka calls end offsets."""\n',
        "# The name of the class\n# What is kept here.\n",
        'X = "What a string holds."\n',
    ],
)
def test_questions_names_and_strings_pass(text: str) -> None:
    assert check_words(MODULE, text) == []
