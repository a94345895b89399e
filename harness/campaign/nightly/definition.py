"""Reader of the file of ``splitbrain nightly`` (TOML) that refuses errors in it with their line.

``docs/nightly.md`` shows the file to users. Paths in it are relative to the file, so that it means
the same from everywhere. Starts nothing.
"""

import re
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.campaign.gate.baseline import LAST, NONE
from splitbrain.harness.campaign.gate.policy import read_policy
from splitbrain.harness.campaign.gate.toml_file import TomlFile
from splitbrain.harness.campaign.suite.reading import SuiteFile, plan, read_suite
from splitbrain.history.durations import EXAMPLES, positive_seconds_of

NIGHTLY_SCHEMA: Final = 1
#: Share of the whole budget for the steps after the suite, where the file names none. They need
#: minutes even of a small night, as far as that leaves the suite its half.
_ANALYSIS_SHARE: Final = 0.1
_ANALYSIS_LEAST_S: Final = 600.0
_ANALYSIS_SHARE_MAX: Final = 0.5
_NEXT: Final = "Correct the file; `splitbrain docs nightly` says what may stand in it"
_TEXTS: Final = ("suite", "policy", "tier", "baseline", "lake")
_KEYS: Final = ("schema", *_TEXTS, "time_budget", "analysis_budget", "keep_valid", "webhook_env")
#: Name of an environment variable.
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Nightly(msgspec.Struct, frozen=True, kw_only=True):
    """A file, read and checked with the files that it names."""

    path: Path
    digest: str
    suite: SuiteFile
    policy: Path
    #: None: the tier that the policy names.
    tier: str | None
    #: ``last``, ``none``, or a reference of ``splitbrain gate --baseline``.
    baseline: str
    #: Folder or URI; None: ``lake`` in the folder of runs.
    lake: str | None
    budget_s: float
    #: Part of it for the steps after the suite.
    analysis_s: float
    #: Keep the whole folders of valid runs, although the lake has them.
    keep_valid: bool
    #: Environment variable with the address that is told of a night that is not green.
    webhook_env: str | None = None

    @property
    def suite_s(self) -> float:
        """Return the suite's part of the budget."""
        return self.budget_s - self.analysis_s


def read_nightly(path: Path, time_budget: str | None = None) -> Nightly:
    """Read and check a file and those that it names; raise UsageError if one is wrong.

    ``time_budget`` replaces the file's.
    """
    return _Reading(path, "nightly file", _NEXT).nightly(time_budget)


class _Reading(TomlFile):
    def nightly(self, time_budget: str | None) -> Nightly:
        self._refuse_unknown_keys(self.data, _KEYS)
        self._refuse_other_schema(NIGHTLY_SCHEMA)
        texts = {key: self._text(key) for key in _TEXTS}
        keep_valid = self.data.get("keep_valid", False)
        if not isinstance(keep_valid, bool):
            self._refuse_value("keep_valid", "is neither true nor false")
        webhook_env = self._variable()
        suite = self._suite(texts["suite"])
        policy = self._beside(self._needed("policy", texts["policy"]))
        tier = read_policy(policy).tier(texts["tier"]).name
        budget_s, analysis_s = self._budgets(time_budget)
        lake = texts["lake"]
        if lake is not None and "://" not in lake:
            lake = str(self._beside(lake))
        return Nightly(
            path=self._path,
            digest=self.digest,
            suite=suite,
            policy=policy,
            tier=tier,
            baseline=self._reference(texts["baseline"] or LAST),
            lake=lake,
            budget_s=budget_s,
            analysis_s=analysis_s,
            keep_valid=keep_valid,
            webhook_env=webhook_env,
        )

    def _suite(self, name: str | None) -> SuiteFile:
        suite = read_suite(self._beside(self._needed("suite", name)))
        if not any(run.expect == "invalid" for run in plan(suite, 0)):
            problem = f"the suite {suite.suite.name!r} has no canary: nothing would show that the"
            next_step = (
                'Give the suite a matrix of a planted bug or a known loss, and expect = "invalid"'
            )
            line = self._lines.key("", "suite")
            self._refuse(f"{problem} night can see a bug", next_step, line)
        return suite

    def _budgets(self, time_budget: str | None) -> tuple[float, float]:
        if time_budget is None:
            budget_s = self._seconds("time_budget")
            if budget_s is None:
                self._refuse("it names no time_budget", "Write time_budget = '8h'")
        else:
            try:
                budget_s = positive_seconds_of(time_budget)
            except ValueError as error:
                next_step = "Correct it, or leave it out"
                raise UsageError(f"--time-budget: {error}", next_step) from error
        usual_s = max(budget_s * _ANALYSIS_SHARE, _ANALYSIS_LEAST_S)
        usual_s = min(usual_s, budget_s * _ANALYSIS_SHARE_MAX)
        analysis_s = self._seconds("analysis_budget") or usual_s
        if analysis_s >= budget_s:
            self._refuse_value("analysis_budget", "leaves the suite no time")
        return budget_s, analysis_s

    def _seconds(self, key: str) -> float | None:
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self._refuse_value(key, f"is no time; write {EXAMPLES}")
        try:
            return positive_seconds_of(value)
        except ValueError as error:
            self._refuse(str(error), _NEXT, self._lines.key("", key))

    def _text(self, key: str) -> str | None:
        value = self.data.get(key)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            self._refuse_value(key, "is no text")
        return value

    def _variable(self) -> str | None:
        name = self._text("webhook_env")
        # Not shown: whoever wrote the address there would find the secret in a log too.
        if name is not None and not _VARIABLE.fullmatch(name):
            line = self._lines.key("", "webhook_env")
            next_step = (
                "Write webhook_env = 'SPLITBRAIN_WEBHOOK', and the address into that variable"
            )
            self._refuse("webhook_env is not the name of an environment variable", next_step, line)
        return name

    def _needed(self, key: str, value: str | None) -> str:
        if value is None:
            self._refuse(f"it names no {key}", f"Write {key} = 'FILE.toml'")
        return value

    def _beside(self, name: str) -> Path:
        return self._path.parent / name

    def _reference(self, name: str) -> str:
        """Return a baseline; a file or folder beside this one is named from here."""
        beside = self._beside(name)
        return str(beside) if name not in (LAST, NONE) and beside.exists() else name

    def _refuse_value(self, key: str, why: str) -> NoReturn:
        self._refuse(f"{key} {self.data.get(key)!r} {why}", _NEXT, self._lines.key("", key))
