"""Rules about the sentences of docstrings and comments."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath

from tidy.tree import Finding

#: A riddle: a statement that begins like a question. Group 2 is the mark of a question.
_RIDDLE = re.compile(r"(?:\A|(?<=\.)\s+|\n[ \t]*\n\s*)((?:What|Who|Which)\b)[^.?!]*(\?)?")
_COMMENT_MARK = re.compile(r"#:?[ ]?")


def check_words(path: PurePosixPath, text: str) -> list[Finding]:
    """Sentences that begin with one of the question words and ask nothing."""
    return [
        Finding(
            str(path),
            line + prose.count("\n", 0, riddle.start(1)),
            f"a sentence begins with {riddle[1]!r} and is no question; name the thing",
        )
        for line, prose in (*_docstrings(text), *_comments(text))
        for riddle in _RIDDLE.finditer(prose)
        if riddle[2] is None
    ]


def _docstrings(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and (docstring := ast.get_docstring(node)):
            yield node.body[0].lineno, docstring


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """First line and text of each comment; lines below each other are one comment."""
    first, last, column = 0, -1, -1
    lines: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        row = token.start[0]
        if lines and (row, token.start[1]) != (last + 1, column):
            yield first, "\n".join(lines)
            lines = []
        if not lines:
            first, column = row, token.start[1]
        last = row
        lines.append(_COMMENT_MARK.sub("", token.string, count=1))
    if lines:
        yield first, "\n".join(lines)
