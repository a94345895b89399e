"""The main job wherever it can run: what ``make run`` starts.

A container engine that answers is used; else nodes run on this machine itself, and the faults that
this machine cannot make are left out. Nothing is ever installed.

``python -m splitbrain.harness.cli.main_job [OPTION...]`` adds options of ``splitbrain test``.
"""

import sys
from collections.abc import Sequence

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.runtime import Runtime
from splitbrain.harness.cli.main import main as command_line
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.runtimes import registry as runtimes

#: Runtimes in the order of preference.
_PREFERENCE = ("docker", "local")
_FAULTS = ("partition", "pause", "kill")


class Choice(msgspec.Struct, frozen=True):
    """How the main job runs here."""

    runtime: str
    #: As ``--nemesis`` takes it.
    nemesis: str
    #: The line that says so.
    sentence: str


def choose() -> Choice:
    """Return the first runtime that can be had, and which of the main job's faults it can make.

    Raises:
        HarnessError: not one of them can be had; says why the last cannot.
    """
    missed: list[str] = []
    for name in _PREFERENCE:
        try:
            runtime = runtimes.runtime(name)
        except HarnessError as error:
            if name == _PREFERENCE[-1]:
                raise
            missed.append(f"{name} cannot be had ({error.problem})")
            continue
        try:
            return _choice(runtime, missed)
        finally:
            runtime.teardown()
    raise AssertionError("the last runtime is had or raises")


def _choice(runtime: Runtime, missed: Sequence[str]) -> Choice:
    capabilities = runtime.capabilities()
    possible = [kind for kind in _FAULTS if fault_kind(kind).needs <= capabilities]
    left_out = [kind for kind in _FAULTS if kind not in possible]
    versions = runtime.versions()
    how = versions.get(runtime.name)
    clauses = [*missed, f"runtime {runtime.name}" + (f" ({how})" if how else "")]
    if left_out:
        clauses.append(f"faults {','.join(possible)} alone, without {','.join(left_out)}")
    return Choice(runtime.name, ",".join(possible), f"main job: {'; '.join(clauses)}")


def main(options: Sequence[str]) -> None:
    """Choose, say it, and run; ends the process with the exit code of the test."""
    try:
        choice = choose()
    except HarnessError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    print(choice.sentence, flush=True)
    command_line(["test", "--nemesis", choice.nemesis, "--runtime", choice.runtime, *options])


if __name__ == "__main__":
    main(sys.argv[1:])
