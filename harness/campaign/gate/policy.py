"""Reader of a policy (TOML) that refuses errors in it with their line.

A policy is a list of thresholds, in tiers that may inherit from each other, and of known failures
that are spared until a date; ``docs/gate.md`` shows the file to users. Asks no clock: whether a
quarantine has expired is decided in ``failures``.
"""

import datetime as dt
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from splitbrain.checker.fingerprints import is_fingerprint
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.figure import Subject
from splitbrain.contracts.nearest import or_nearest
from splitbrain.harness.campaign.gate.catalogue import figure_named, refuse_unknown_value
from splitbrain.harness.campaign.gate.expressions import Threshold, parse_threshold
from splitbrain.harness.campaign.gate.toml_file import TomlFile

POLICY_SCHEMA: Final = 1
ONLY_TIER: Final = "gate"
#: Demanded by every tier that says nothing of violations itself.
IMPLIED: Final = Threshold("violations == 0", Subject("violations"), "==", 0.0, is_implied=True)
#: Demanded wherever a suite's runs that should fail are selected: a night that misses one proves
#: nothing.
IMPLIED_OF_CANARIES: Final = Threshold(
    "canaries_missed == 0", Subject("canaries_missed"), "==", 0.0, is_implied=True
)
#: Demanded wherever a sweep is selected, of a tier that says nothing of it.
IMPLIED_OF_SWEEPS: Final = Threshold(
    "seeds_failed == 0", Subject("seeds_failed"), "==", 0.0, is_implied=True
)
_NEXT: Final = "Correct the file; `splitbrain docs gate` says what may stand in it"
_TOP_KEYS: Final = ("schema", "default_tier", "require", "tier", "samples_min", "quarantine")
_TIER_KEYS: Final = ("inherits", "require")
_QUARANTINE_KEYS: Final = ("fingerprint", "until", "reason")


class Quarantine(msgspec.Struct, frozen=True, order=True):
    """A known failure that is spared for a while."""

    fingerprint: str
    #: The last day on which it counts, UTC.
    until: dt.date
    reason: str


class Tier(msgspec.Struct, frozen=True):
    """Demands of one tier, inherited thresholds included."""

    name: str
    thresholds: tuple[Threshold, ...]


class Policy(msgspec.Struct, frozen=True):
    """A policy file."""

    path: str
    digest: str
    tiers: dict[str, Tier]
    default_tier: str | None
    #: Figure to the least samples on both sides of a regression, where not the catalogue's.
    samples_min: dict[str, int]
    quarantines: tuple[Quarantine, ...]

    def tier(self, name: str | None) -> Tier:
        """Return the tier of a name, or the default one; raise UsageError if there is no such."""
        wanted = name or self.default_tier
        if wanted is None and len(self.tiers) == 1:
            (wanted,) = self.tiers
        if wanted is None:
            next_step = f"Choose one with --tier: {', '.join(self.tiers)}"
            raise UsageError(f"the policy {self.path} has several tiers", next_step)
        if wanted not in self.tiers:
            next_step = or_nearest(wanted, self.tiers, "tiers")
            raise UsageError(f"the policy {self.path} has no tier {wanted!r}", next_step)
        return self.tiers[wanted]

    def samples_needed(self, subject: Subject) -> int:
        """Return the least samples of a regression on either side."""
        return self.samples_min.get(subject.figure, figure_named(subject.figure).samples_min)


def read_policy(path: Path) -> Policy:
    """Read and check a policy; raise UsageError if it cannot be read, or is wrong."""
    return _Reading(path, "policy", _NEXT).policy()


class _Reading(TomlFile):
    def policy(self) -> Policy:
        self._refuse_unknown_keys(self.data, _TOP_KEYS)
        self._refuse_other_schema(POLICY_SCHEMA)
        tiers = self._tiers()
        default = self.data.get("default_tier")
        if default is not None and default not in tiers:
            next_step = or_nearest(str(default), tiers, "tiers")
            line = self._lines.key("", "default_tier")
            self._refuse(f"there is no tier {default!r}", next_step, line)
        return Policy(
            path=str(self._path),
            digest=self.digest,
            tiers=tiers,
            default_tier=default,
            samples_min=self._samples_min(),
            quarantines=self._quarantines(),
        )

    def _tiers(self) -> dict[str, Tier]:
        common = self._thresholds(self.data, "")
        declared = self._table("tier")
        own: dict[str, tuple[Threshold, ...]] = {}
        parents: dict[str, str] = {}
        for name, content in declared.items():
            place = f"tier.{name}"
            if not isinstance(content, dict):
                self._refuse(f"tier {name!r} is no table", _NEXT, self._lines.key("tier", name))
            tier = cast("dict[str, Any]", content)
            self._refuse_unknown_keys(tier, _TIER_KEYS, place)
            own[name] = self._thresholds(tier, place)
            if "inherits" in tier:
                parents[name] = self._parent(tier["inherits"], name, declared)
        if not declared:
            own[ONLY_TIER] = ()
        tiers: dict[str, Tier] = {}
        for name in own:
            thresholds = common
            for ancestor in self._ancestry(name, parents):
                thresholds = _replaced(thresholds, own[ancestor])
            if not thresholds:
                where = f"the tier {name!r} demands nothing" if declared else "it demands nothing"
                self._refuse(where, "Give it a threshold, such as require = ['violations == 0']")
            if not any(threshold.measure == IMPLIED.measure for threshold in thresholds):
                thresholds = (IMPLIED, *thresholds)
            tiers[name] = Tier(name, thresholds)
        return tiers

    def _parent(self, value: Any, name: str, declared: dict[str, Any]) -> str:
        line = self._lines.key(f"tier.{name}", "inherits")
        if not isinstance(value, str) or value not in declared:
            problem = f"the tier {name!r} inherits from {value!r}, which is no tier"
            self._refuse(problem, or_nearest(str(value), declared, "tiers"), line)
        return value

    def _ancestry(self, name: str, parents: dict[str, str]) -> list[str]:
        """Return the tier's name and its ancestors', the farthest first."""
        line = [name]
        while line[-1] in parents:
            parent = parents[line[-1]]
            if parent in line:
                place = self._lines.key(f"tier.{name}", "inherits")
                self._refuse(f"the tier {name!r} inherits from itself", _NEXT, place)
            line.append(parent)
        return line[::-1]

    def _thresholds(self, table: dict[str, Any], place: str) -> tuple[Threshold, ...]:
        texts = table.get("require", [])
        if not isinstance(texts, list):
            self._refuse("require is no list of texts", _NEXT, self._lines.key(place, "require"))
        thresholds: list[Threshold] = []
        for text in cast("list[Any]", texts):
            line = self._lines.text(place, str(text)) or self._lines.key(place, "require")
            if not isinstance(text, str):
                self._refuse(f"the threshold {text!r} is no text", _NEXT, line)
            try:
                threshold = parse_threshold(text)
                for condition in threshold.subject.conditions:
                    refuse_unknown_value(condition)
            except UsageError as error:
                self._refuse(error.problem, error.next_step, line)
            if (threshold.measure, threshold.text) in [(t.measure, t.text) for t in thresholds]:
                self._refuse(f"{text!r} stands there twice", "Leave one of them out", line)
            thresholds.append(threshold)
        return tuple(thresholds)

    def _samples_min(self) -> dict[str, int]:
        samples_min: dict[str, int] = {}
        for name, count in self._table("samples_min").items():
            line = self._lines.key("samples_min", name)
            try:
                figure = figure_named(name)
            except UsageError as error:
                self._refuse(error.problem, error.next_step, line)
            if not isinstance(count, int) or isinstance(count, bool) or count < 1:
                self._refuse(f"{name} = {count!r} is no number of samples from 1", _NEXT, line)
            samples_min[figure.name] = count
        return samples_min

    def _quarantines(self) -> tuple[Quarantine, ...]:
        listed = self.data.get("quarantine", [])
        if not isinstance(listed, list):
            self._refuse("quarantine is no list", "Write it as [[quarantine]]")
        quarantines: dict[str, Quarantine] = {}
        for number, content in enumerate(cast("list[Any]", listed)):
            line = self._lines.header("quarantine", number)
            if not isinstance(content, dict):
                self._refuse("a quarantine is no table", "Write it as [[quarantine]]", line)
            quarantine = self._quarantine(cast("dict[str, Any]", content), number)
            name = quarantine.fingerprint
            if name in quarantines:
                self._refuse(f"{name} is quarantined twice", "Leave one of them out", line)
            quarantines[name] = quarantine
        return tuple(quarantines.values())

    def _quarantine(self, content: dict[str, Any], number: int) -> Quarantine:
        def line(key: str) -> int | None:
            place = self._lines.key("quarantine", key, number)
            return place or self._lines.header("quarantine", number)

        self._refuse_unknown_keys(content, _QUARANTINE_KEYS, "quarantine", number)
        fingerprint, until, reason = (content.get(key) for key in _QUARANTINE_KEYS)
        if not isinstance(fingerprint, str) or not is_fingerprint(fingerprint):
            next_step = "Copy one from the gate's summary: f1- and twelve hex digits"
            problem = f"a quarantine's fingerprint is {fingerprint!r}"
            self._refuse(problem, next_step, line("fingerprint"))
        lacks = f"the quarantine of {fingerprint} has no"
        if not isinstance(until, dt.date) or isinstance(until, dt.datetime):
            next_step = "Give it one without quotes, such as until = 2027-01-31"
            self._refuse(f"{lacks} last day", next_step, line("until"))
        if not isinstance(reason, str) or not reason.strip():
            next_step = "Say why it is spared, and where it is being worked on"
            self._refuse(f"{lacks} reason", next_step, line("reason"))
        return Quarantine(fingerprint, until, reason.strip())

    def _table(self, name: str) -> dict[str, Any]:
        value = self.data.get(name, {})
        if not isinstance(value, dict):
            self._refuse(f"{name} is no table", f"Write it as [{name}]", self._lines.key("", name))
        return cast("dict[str, Any]", value)


def _replaced(
    inherited: tuple[Threshold, ...], own: tuple[Threshold, ...]
) -> tuple[Threshold, ...]:
    """Return both; a tier's own thresholds replace inherited ones of the same measure."""
    replaced = {threshold.measure for threshold in own}
    return (*(each for each in inherited if each.measure not in replaced), *own)
