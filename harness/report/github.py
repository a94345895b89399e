"""Words to GitHub Actions, where a command is a step of it: annotations and the job's summary.

Source: GitHub, "Workflow commands for GitHub Actions". Annotations go to standard error, which the
runner reads too, so that an answer in JSON stays one.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from splitbrain.harness.console.plain_text import markdown, printable
from splitbrain.harness.report.alarms import Alarm, file_in_repository

#: Of one step GitHub shows no more, of each level.
ANNOTATIONS_MAX: Final = 10
#: Bytes of a step's summary: GitHub drops a larger one as a whole.
SUMMARY_BYTES_MAX: Final = 1 << 20
_CUT: Final = "\n\nThe rest is left out, for a summary may have 1 MiB; the files have all of it.\n"
_FENCE: Final = "```"
_VARIABLES: Final = ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY")
_IN_MESSAGES: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTIES: Final = {**_IN_MESSAGES, ":": "%3A", ",": "%2C"}


def tell_github(
    alarms: Sequence[Alarm], summary: Callable[[], str], *named: str | Path | None
) -> None:
    """Annotate the step and add to the summary of the job; elsewhere than on GitHub do nothing.

    ``named`` are files that the alarms belong to, if they lie in the repository. A summary that
    cannot be written costs no verdict.
    """
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for line in annotations(alarms, file_in_repository(*named)):
        print(line, file=sys.stderr, flush=True)
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with suppress(OSError):
            _add(Path(path), summary())


def summary_of(title: str, lines: Iterable[str]) -> str:
    """Return the summary of a command that has none of its own: what it said, line by line."""
    return "\n".join([f"# {markdown(title)}", "", *(f"- {markdown(line)}" for line in lines)])


def annotations(alarms: Sequence[Alarm], file: str | None) -> Iterable[str]:
    """Return at most ten lines; of more alarms the last line tells their number."""
    shown = list(islice(alarms, ANNOTATIONS_MAX))
    more = len(alarms) - len(shown)
    if more:
        last = f"and {more + 1} more"
        shown[-1] = Alarm(title=last, sentence=f"{last}: see the summary of the job.")
    return [_line(alarm, file) for alarm in shown]


def unannounced(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a child that must not speak to GitHub: a run of a suite's night."""
    return {name: value for name, value in environment.items() if name not in _VARIABLES}


def _line(alarm: Alarm, file: str | None) -> str:
    properties = {
        "title": printable(alarm.title),
        **({} if file is None else {"file": file, "line": "1"}),
    }
    told = ",".join(f"{name}={_escaped(text, _IN_PROPERTIES)}" for name, text in properties.items())
    lines = alarm.sentence.splitlines()
    if alarm.reproduce:
        lines.append(f"Reproduce: {alarm.reproduce}")
    text = "\n".join(map(printable, lines))
    return f"::{alarm.level} {told}::{_escaped(text, _IN_MESSAGES)}"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)


def _add(path: Path, summary: str) -> None:
    """Append a summary as far as there is room; other commands of the step have written there."""
    content = summary.encode().strip() + b"\n\n"
    there = path.stat().st_size if path.exists() else 0
    room = SUMMARY_BYTES_MAX - there
    if len(content) > room:
        # At a whole line, and with room for what closes it.
        end = content.rfind(b"\n", 0, max(room - len(_CUT) - len(_FENCE) - 1, 0))
        kept = content[: max(end, 0)]
        fences = sum(line.startswith(_FENCE.encode()) for line in kept.splitlines())
        closing = f"\n{_FENCE}" if fences % 2 else ""
        content = kept + f"{closing}{_CUT}".encode() if end > 0 else b""
    with path.open("ab") as file:
        file.write(content)
