"""Output of ``splitbrain doctor``: one line for each thing that runs need, and what to do about it.

Each thing is looked at in a thread of its own and has a time limit, so that nothing that hangs can
make this command hang. No cluster is started, and the machine is not changed.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.console.standard_streams import write_bytes

#: Things that the main job cannot go without; it leaves out partitions where they cannot be had.
MAIN_JOB = frozenset({"kill", "pause"})
#: Seconds that all probes together may take. They run side by side.
TIME_LIMIT_S = 20.0


class Finding(msgspec.Struct, frozen=True):
    """Finding about one thing."""

    #: The thing: "engine", "java".
    name: str
    answer: Literal["yes", "no", "unknown"]
    #: Finding, or why there is none, one clause.
    detail: str
    #: Next step, a sentence; empty where there is none.
    next_step: str = ""
    #: Whether a runtime can run the main job; None for what is no runtime.
    main_job: bool | None = None

    @classmethod
    def tried(cls, name: str, problem: str | None, detail: str, next_step: str) -> "Finding":
        """Return yes and the detail where there is no problem, else no and what to do."""
        if problem is None:
            return cls(name, "yes", detail)
        return cls(name, "no", problem, next_step)


#: Looks at one thing; a HarnessError that it raises is the finding "no".
Look = Callable[[], Sequence[Finding]]


class Probe(msgspec.Struct, frozen=True):
    """One look, and the name under which it stands if it fails or does not end."""

    name: str
    look: Look
    #: More than the others take; a Spark session needs it.
    time_limit_s: float = TIME_LIMIT_S


class Diagnosis(msgspec.Struct, frozen=True):
    """All findings, and what follows."""

    #: Whether the main job can run in some way.
    usable: bool
    findings: tuple[Finding, ...]


def doctor(
    console: Console,
    *,
    as_json: bool = False,
    spark: bool = False,
    runs_folder: Path = Path("runs"),
    probes: Sequence[Probe] | None = None,
) -> int:
    """Print what this machine can do; returns 0 if the main job can run here in some way, else 3.

    ``probes`` are by default all there are, that of a Spark session if ``spark`` is set.
    """
    if probes is None:
        from splitbrain.harness.cli.machine_probes import machine_probes

        probes = machine_probes(runs_folder, spark=spark)
    diagnosis = diagnose(probes)
    if as_json:
        write_bytes(msgspec.json.format(msgspec.json.encode(diagnosis), indent=2) + b"\n")
    else:
        show_findings(diagnosis.findings, console)
        lacks = "The main job cannot run here: no runtime can kill and pause nodes."
        usable = Text("The main job can run here.")
        console.print(usable if diagnosis.usable else Text(lacks, style="red"))
    return 0 if diagnosis.usable else HarnessError.exit_code


def diagnose(probes: Sequence[Probe]) -> Diagnosis:
    """Look at everything side by side, each within its time."""
    looks = [_UnderWay(probe) for probe in probes]
    findings = [finding for look in looks for finding in look.findings()]
    usable = any(finding.main_job for finding in findings)
    return Diagnosis(usable, tuple(findings))


class _UnderWay:
    """One look under way in a thread, which is left behind where it does not end."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._found: Sequence[Finding] | None = None
        self._thread = threading.Thread(target=self._look, name=f"look {probe.name}", daemon=True)
        self._thread.start()

    def findings(self) -> Sequence[Finding]:
        """Return the finding; wait for it no longer than the probe's time."""
        self._thread.join(self._probe.time_limit_s)
        if self._found is None:
            limit = f"no answer within {self._probe.time_limit_s:g} s"
            return [Finding(self._probe.name, "unknown", limit, "Ask again when it is less busy")]
        return self._found

    def _look(self) -> None:
        name = self._probe.name
        try:
            self._found = self._probe.look()
        except HarnessError as error:
            self._found = [Finding(name, "no", error.problem, error.next_step)]
        except Exception as error:  # noqa: BLE001 - one broken look must not hide the others
            what = f"the look at it failed: {type(error).__name__}: {error}"
            self._found = [Finding(name, "unknown", what, "Please report this")]


def show_findings(findings: Sequence[Finding], console: Console) -> None:
    """Print findings as a table."""
    table = Table(box=None, pad_edge=False)
    for heading in ("what", "there", "what it is, or what to do about it"):
        table.add_column(heading, overflow="fold")
    styles = {"yes": "green", "no": "red", "unknown": "yellow"}
    for finding in findings:
        parts = [part.rstrip(".") for part in (finding.detail, finding.next_step) if part]
        table.add_row(
            Text(printable(finding.name)),
            Text(finding.answer, style=styles[finding.answer]),
            Text(printable(". ".join(parts))),
        )
    console.print(table)
