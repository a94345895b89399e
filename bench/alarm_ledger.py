"""The ledger of runs within the promise: what each came to, and what all of them say together.

One JSON line per run, appended and synced; a torn last line is what a killed campaign was writing,
and that run is done again. Pure sums beside it: counts of verdicts, what bit and healed of each
kind of fault, and the bound that follows. Must never leave out a run that was not valid.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from splitbrain.harness.folder.results import FaultResult, Results

Word = Literal["valid", "invalid", "unknown", "vacuous", "failed"]
WORDS: Final[tuple[Word, ...]] = ("valid", "invalid", "unknown", "vacuous", "failed")
#: Of a bound that holds with this probability nothing was seen in n tries: -ln(0.05), about 3.
_RULE_OF_THREE: Final = 3.0


class FaultLine(msgspec.Struct, frozen=True):
    """One planned fault of a run."""

    kind: str
    target: str
    #: Its target existed and the promise allowed it.
    applied: bool
    #: Seen from outside to have bitten.
    bit: bool
    #: Seen from outside to be gone.
    healed: bool
    #: Evidence; kept of those that did not apply, bite or heal.
    evidence: str | None = None


class RunLine(msgspec.Struct, frozen=True, tag_field="line", tag="run"):
    """One run."""

    number: int
    seed: int
    #: Arguments of ``splitbrain test``.
    arguments: tuple[str, ...]
    #: Of the tool.
    commit: str
    verdict: Word
    #: Why it is not valid; empty if it is.
    reason: str
    violated: tuple[str, ...]
    faults: tuple[FaultLine, ...]
    took_s: float
    #: None where nothing of it is kept.
    run_folder: str | None
    reproduce: str


class Explained(msgspec.Struct, frozen=True, tag_field="line", tag="explained"):
    """Cause of an alarm, in the words of the person who looked into it."""

    number: int
    #: A defect of the system under test is no false alarm.
    is_false_alarm: bool
    words: str


Line = RunLine | Explained
_decoder: Final = msgspec.json.Decoder(Line)


def read_lines(path: Path) -> list[Line]:
    """All whole lines; none where there is no ledger.

    Raises:
        msgspec.DecodeError: a line that is not the last one is broken.
    """
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [_decoder.decode(line) for line in whole.split(b"\n") if line]


def append_line(path: Path, line: Line) -> None:
    """Write one line behind the last whole one; it is on the disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "r+b") as file:
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)
        file.seek(0, os.SEEK_END)
        file.write(msgspec.json.encode(line) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def verdict_word(results: Results) -> Word:
    """One word for what a run came to; invalid wins over all."""
    headline = results.headline
    if headline == "INVALID":
        return "invalid"
    if headline == "HARNESS FAILED":
        return "failed"
    if headline == "VALID":
        return "valid"
    return "vacuous" if headline == "VACUOUS" else "unknown"


def fault_line(result: FaultResult) -> FaultLine:
    """Return the ledger's record of one fault."""
    is_whole = result.applied and result.verified and result.healed
    return FaultLine(
        kind=result.kind,
        target=result.target,
        applied=result.applied,
        bit=result.verified,
        healed=result.healed,
        evidence=None if is_whole else result.evidence,
    )


class KindSum(msgspec.Struct):
    """One kind of fault over all runs."""

    planned: int = 0
    applied: int = 0
    bit: int = 0
    healed: int = 0


class AlarmSum(msgspec.Struct, kw_only=True):
    """All runs together."""

    runs: int
    verdicts: dict[str, int]
    #: Runs that could have alarmed: valid or invalid. A vacuous one proves nothing.
    judged: int
    #: Numbers of the runs that were invalid, and of those the ones that nobody has explained, or
    #: that were explained as false.
    alarms: list[int]
    false_alarms: list[int]
    #: With 95 % confidence false alarms are rarer than this; None where there were any, or no run.
    rate_max: float | None
    kinds: dict[str, KindSum]
    #: Why faults did not apply, bite or heal: kind and evidence to how often, most frequent first.
    misses: dict[str, int]


def summed(lines: Sequence[Line], kinds: Iterable[str]) -> AlarmSum:
    """Return the sums of a ledger; of a run that has two lines the last line counts.

    Args:
        lines: of the ledger.
        kinds: all fault kinds, so that those that no run tried are there too.
    """
    runs = {line.number: line for line in lines if isinstance(line, RunLine)}
    explained = {line.number: line for line in lines if isinstance(line, Explained)}
    verdicts = Counter(run.verdict for run in runs.values())
    sums = {kind: KindSum() for kind in sorted(kinds)}
    misses: Counter[str] = Counter()
    for fault in (fault for run in runs.values() for fault in run.faults):
        kind = sums.setdefault(fault.kind, KindSum())
        kind.planned += 1
        kind.applied += fault.applied
        kind.bit += fault.bit
        kind.healed += fault.healed
        if fault.evidence:
            # Its first clause; figures after it differ from run to run.
            misses[f"{fault.kind}: {fault.evidence.partition(';')[0]}"] += 1
    alarms = sorted(number for number, run in runs.items() if run.verdict == "invalid")
    false = [run for run in alarms if run not in explained or explained[run].is_false_alarm]
    judged = verdicts["valid"] + verdicts["invalid"]
    return AlarmSum(
        runs=len(runs),
        verdicts={word: verdicts[word] for word in WORDS},
        judged=judged,
        alarms=alarms,
        false_alarms=false,
        rate_max=min(1.0, _RULE_OF_THREE / judged) if judged and not false else None,
        kinds=sums,
        misses=dict(misses.most_common()),
    )


def summary_lines(total: AlarmSum, lines: Sequence[Line]) -> list[str]:
    """Return the sums as lines for people, what is not valid last, each with its reproduce line."""
    counts = ", ".join(f"{count} {word}" for word, count in total.verdicts.items())
    text = [f"{total.runs} runs: {counts}", *_bound(total), "", *_kind_table(total.kinds)]
    if total.misses:
        text += ["", "did not apply, bite or heal:"]
        text += [f"{count:4d}x {miss}" for miss, count in total.misses.items()]
    runs = {line.number: line for line in lines if isinstance(line, RunLine)}
    explained = {line.number: line.words for line in lines if isinstance(line, Explained)}
    wrong = [run for _, run in sorted(runs.items()) if run.verdict != "valid"]
    if wrong:
        text += ["", "not valid:"]
    for run in wrong:
        text.append(f"run {run.number}, seed {run.seed}: {run.verdict}: {run.reason}")
        if run.number in explained:
            text.append(f"    explained: {explained[run.number]}")
        text.append(f"    {run.reproduce}")
    return text


def _bound(total: AlarmSum) -> list[str]:
    if not total.judged:
        return ["no run has been judged yet"]
    lines = [f"{len(total.alarms)} alarms, {len(total.false_alarms)} of them false or unexplained"]
    if total.rate_max is not None:
        lines.append(
            f"0 false alarms in {total.judged} judged runs: with 95 % confidence fewer than "
            f"{100 * total.rate_max:.1f} % of such runs raise one (rule of three)"
        )
    return lines


def _kind_table(kinds: Mapping[str, KindSum]) -> list[str]:
    row = "{:18} {:>8} {:>8} {:>6} {:>7}"
    return [
        row.format("fault", "planned", "applied", "bit", "healed"),
        *(
            row.format(name, kind.planned, kind.applied, kind.bit, kind.healed)
            for name, kind in kinds.items()
        ),
    ]


def as_json(total: AlarmSum, **more: Any) -> str:
    """One line."""
    return json.dumps({"bench": "false_alarms", **more, **msgspec.to_builtins(total)})
