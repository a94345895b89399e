"""Alarms: why a run, a sweep or a gate is not green, as CI servers are told one by one.

Annotations and SARIF are made of them, so that both say the same.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from splitbrain.checker.anomalies.account import headline_of, rank_of_result
from splitbrain.checker.anomalies.names import name_of
from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.folder.results import EXIT_UNKNOWN, Results, leading_sentence
from splitbrain.history.plan import PLAN_FILE_ENDINGS, Plan


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """One reason."""

    #: A few words.
    title: str
    sentence: str
    #: The line that makes it again on any machine; empty where there is none.
    reproduce: str = ""
    level: Literal["error", "warning"] = "error"
    #: Name of an anomaly or an invariant, for `splitbrain explain`; empty: it is no violation.
    rule: str = ""
    checker: str = ""
    fingerprint: str = ""
    #: How often it was met.
    count: int = 1


def alarms_of(results: Results) -> list[Alarm]:
    """Return the alarms of a run, most telling first; none where it is valid."""
    if results.exit_code == 0:
        return []
    if results.verdict is Verdict.INVALID:
        invalid = [each for each in results.checkers if each.verdict is Verdict.INVALID]
        found = [
            alarm
            for result in sorted(invalid, key=rank_of_result)
            for alarm in _violations(result, results)
        ]
        if found:
            return found
    return [
        Alarm(
            title=f"{results.headline}: {_run(results)}",
            sentence=leading_sentence(results),
            reproduce=results.reproduce,
            level="warning" if results.exit_code == EXIT_UNKNOWN else "error",
        )
    ]


def _violations(result: CheckResult, results: Results) -> Iterator[Alarm]:
    """Yield an alarm for the violations of each name."""
    by_name: dict[str, list[dict[str, object]]] = {}
    for violation in result.violations:
        by_name.setdefault(name_of(result.checker, violation), []).append(violation)
    for name, violations in (by_name or {result.checker: []}).items():
        alike = msgspec.structs.replace(result, violations=tuple(violations))
        fingerprint = fingerprint_of(alike)
        yield Alarm(
            title=f"{name}: {_run(results)}",
            sentence=headline_of(alike),
            reproduce=results.reproduce,
            rule=name,
            checker=result.checker,
            fingerprint="" if fingerprint is None else fingerprint.text,
            count=max(len(violations), 1),
        )


def _run(results: Results) -> str:
    return results.test if results.seed is None else f"{results.test}, seed {results.seed}"


#: Of a workflow: ``owner/name/.github/workflows/file.yml@refs/heads/main``.
_WORKFLOW: Final = re.compile(r"[^/]+/[^/]+/(?P<path>[^@]+)@")
#: Files of a repository that stand for it where none tells more.
_USUAL_FILES: Final = (
    *(".gitlab-ci.yml", "Jenkinsfile"),
    *("policy.toml", "gate.toml"),
    "README.md",
)


def file_in_repository(*named: str | Path | None) -> str | None:
    """Return the first named file that lies in the repository around this folder, else a usual one.

    An alarm has no line of code, and code scanning demands a file that the repository has: the
    adapter, the plan file or the policy where one is named, else the workflow. Relative, with
    slashes. A name may end in ``:Class``. None: nothing is there.
    """
    root = _repository()
    workflow = _WORKFLOW.match(os.environ.get("GITHUB_WORKFLOW_REF", ""))
    usual = (
        workflow["path"] if workflow else None,
        os.environ.get("CI_CONFIG_PATH"),
        *_USUAL_FILES,
    )
    candidates = [_path_of(name) for name in named if name is not None]
    candidates += [root / name for name in usual if name]
    for path in candidates:
        inner = path.absolute().resolve()
        if inner.is_file() and inner.is_relative_to(root):
            return inner.relative_to(root).as_posix()
    return None


def files_of(plan: Plan | None) -> Iterable[str | None]:
    """Return the files that a plan may name: its adapter, and its plan of faults."""
    if plan is None:
        return ()
    nemesis = plan.experiment.nemesis
    return plan.system_file, nemesis if nemesis.endswith(PLAN_FILE_ENDINGS) else None


def _path_of(name: str | Path) -> Path:
    return Path(re.sub(r"(\.py):\w+$", r"\1", str(name)))


def _repository() -> Path:
    """Return the root of the work tree around this folder; this folder where there is none."""
    here = Path.cwd().resolve()
    if workspace := os.environ.get("GITHUB_WORKSPACE"):
        return Path(workspace).resolve()
    return next((each for each in (here, *here.parents) if (each / ".git").exists()), here)
