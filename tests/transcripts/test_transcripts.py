"""Golden transcripts: one small text file per scenario, commands and the full expected trace.

A file is a title (``#`` lines), then commands (``> ...``), each followed by its trace. Rewrite them
with ``pytest tests/transcripts --rewrite-transcripts`` and read the diff. In ``bug_*.txt`` the bug
that it is named after is planted; it is caught by a VIOLATION or a WRONG line, never by a changed
trace alone. No other transcript may have one.
"""

from pathlib import Path

import pytest

from tests.planted import with_bug
from tests.transcripts.stage import Stage

FOLDER = Path(__file__).parent
TRANSCRIPTS = sorted(FOLDER.glob("*.txt"), key=lambda path: path.name)
BUGS = {
    path: path.stem.removeprefix("bug_").replace("_", "-")
    for path in TRANSCRIPTS
    if path.stem.startswith("bug_")
}


def replay(text: str) -> tuple[str, bool]:
    """The transcript as it would be written now, and whether anything went wrong in it."""
    stage = Stage()
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            lines.append(line)
        elif line.startswith("> "):
            lines.extend(("", line, *stage.perform(line[2:])))
    return "\n".join(lines) + "\n", stage.went_wrong


@pytest.mark.parametrize(
    "path",
    [with_bug(BUGS[path], path) if path in BUGS else path for path in TRANSCRIPTS],
    ids=lambda path: path.stem,
)
def test_the_core_does_what_the_transcript_says(path: Path, request: pytest.FixtureRequest) -> None:
    expected = path.read_text(encoding="utf-8")
    actual, went_wrong = replay(expected)
    if request.config.getoption("--rewrite-transcripts", default=False):
        path.write_text(actual, encoding="utf-8")
        expected = actual
    assert actual == expected
    assert went_wrong == (path in BUGS)


@pytest.mark.parametrize("path", BUGS, ids=lambda path: path.stem)
def test_nothing_goes_wrong_in_a_bug_transcript_without_the_bug(path: Path) -> None:
    _, went_wrong = replay(path.read_text(encoding="utf-8"))
    assert not went_wrong


def test_there_are_at_least_fifteen_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 15
