"""The command ``splitbrain analyze --lake LAKE --report FOLDER``: looks at all runs together.

Spark works in a child process; its answer is written as ``index.html``, ``summary.md`` and
``across.json``. The exit code is 0 whatever was found; a gate decides.
"""

import datetime as dt
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.text import Text

from splitbrain.contracts.analysis.across import Findings
from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import UNREADABLE, HarnessError, UsageError
from splitbrain.harness.console.standard_streams import answer
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.harness.folder.results import EXIT_VALID
from splitbrain.harness.pool.spark_service import ask_spark
from splitbrain.harness.report.across.markdown import to_markdown
from splitbrain.harness.report.across.page import across_page
from splitbrain.harness.report.across.words import headline

_MODULE: Final = f"{PACKAGE}.spark_analysis.across_process"


def look_across(lake: str, since: str | None, folder: Path, console: Console) -> int:
    """Analyse all runs of a lake; write and print the findings.

    ``since`` is ISO 8601, UTC without a zone: failures since then are compared with those before;
    None: the last day with a run.

    Raises:
        UsageError: the time is none, or there is no lake.
        HarnessError: Spark failed, or the answer cannot be written.
    """
    findings = _ask(lake, _moment(since))
    page, summary, data = (folder / name for name in ("index.html", "summary.md", "across.json"))
    with tell_refusal(
        "write the page over all runs",
        folder,
        "Make room on that disk, or choose another folder with --report.",
    ):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(data, msgspec.json.encode(findings))
        write_atomically(summary, to_markdown(findings).encode())
        write_atomically(page, across_page(findings).encode())
    console.print(Text(headline(findings)), soft_wrap=True)
    console.print(Text(f"All runs: {page}"), soft_wrap=True)
    answer(console, findings)
    return EXIT_VALID


def _moment(since: str | None) -> dt.datetime | None:
    if since is None:
        return None
    try:
        at = dt.datetime.fromisoformat(since)
    except ValueError as error:
        raise UsageError(
            f"--since cannot be {since!r}", "Write a day or a time, such as 2026-11-21T22:00"
        ) from error
    return at if at.tzinfo else at.replace(tzinfo=dt.UTC)


def _ask(lake: str, since: dt.datetime | None) -> Findings:
    request = {"lake": lake, "since": since}
    answered = ask_spark(_MODULE, request, name="across", timeout_s=None)
    if answered.code != 0:
        raise HarnessError(
            "look at all runs of the lake",
            lake,
            answered.error_line.rstrip(".") or f"Spark ended with exit code {answered.code}",
            "Name a lake that splitbrain ingest made; splitbrain doctor --spark looks at Spark.",
        )
    try:
        return msgspec.json.decode(answered.answer, type=Findings)
    except UNREADABLE as error:
        raise HarnessError(
            "look at all runs of the lake", lake, str(error), "This is a defect of splitbrain."
        ) from error
