"""The command ``splitbrain gate``: holds a gate, or proves that a policy can fail."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.gate.alarms import alarms_of_gate
from splitbrain.harness.campaign.gate.gating import GateRequest, Held, hold_gate, output_paths
from splitbrain.harness.campaign.gate.junit import to_junit
from splitbrain.harness.campaign.gate.markdown import to_markdown
from splitbrain.harness.campaign.gate.policy import read_policy
from splitbrain.harness.campaign.gate.record import FailureRecord, GateRecord, encode_record
from splitbrain.harness.campaign.gate.self_test import Proof, prove
from splitbrain.harness.campaign.gate.sentences import (
    HEADLINES,
    failure_state,
    failure_title,
    threshold_sentence,
)
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.harness.folder.results import EXIT_INVALID, EXIT_VALID
from splitbrain.harness.report.alarms import file_in_repository
from splitbrain.harness.report.github import tell_github
from splitbrain.harness.report.sarif import to_sarif


class GateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``splitbrain gate``."""

    policy: Path
    tier: str | None = None
    baseline: str | None = None
    #: Folder for gate.json, gate.xml, gate.md and gate.sarif; made where it is missing.
    output: Path | None = None
    as_json: bool = False


def run_gate(sources: Sequence[str], options: GateOptions, console: Console) -> int:
    """Hold the gate, print and write its answer; return the exit code.

    Raises:
        UsageError: the policy, the runs or the baseline are wrong; nothing was written.
        HarnessError: one of them cannot be read, or the answer cannot be written.
    """
    policy = read_policy(options.policy)
    tier = policy.tier(options.tier)
    if not sources:
        raise UsageError("no runs are named", "Name run folders, a folder of them, or a ledger")
    now = dt.datetime.now(dt.UTC)
    request = GateRequest(policy, tier, tuple(sources), options.baseline, now, options.output)
    held = hold_gate(request)
    if options.as_json:
        text = encode_record(held.record).decode().rstrip("\n")
        console.print(Text(text), soft_wrap=True, highlight=False)
    else:
        _show(held.record, console)
    if options.output is not None:
        _write(held, options.output, options.policy)
    tell_github(alarms_of_gate(held.record), lambda: to_markdown(held.record), options.policy)
    return held.record.exit_code


def run_self_test(options: GateOptions, console: Console) -> int:
    """Prove that every threshold can fail: 0, else 1; raise UsageError for a wrong policy."""
    policy = read_policy(options.policy)
    tiers = [policy.tier(options.tier)] if options.tier else list(policy.tiers.values())
    proofs = prove(policy, tiers)
    dead = [proof for proof in proofs if not proof.can_fail]
    if options.as_json:
        text = msgspec.json.encode([_proof_data(proof) for proof in proofs]).decode()
        console.print(Text(text), soft_wrap=True)
        return EXIT_INVALID if dead else EXIT_VALID
    width = max(len(proof.threshold.text) for proof in proofs)
    for proof in proofs:
        word = "can fail" if proof.can_fail else "DEAD"
        line = f"{proof.tier}  {word:<8}  {proof.threshold.text:<{width}}  {proof.clause}"
        console.print(Text(printable(line)), soft_wrap=True)
    scope = f"{counted(len(proofs), 'threshold')} in {counted(len(tiers), 'tier')}"
    answer = f"{scope}: {len(dead)} can never fail." if dead else f"{scope}: each can fail alone."
    console.print(Text(answer), soft_wrap=True)
    return EXIT_INVALID if dead else EXIT_VALID


def _proof_data(proof: Proof) -> dict[str, object]:
    return {
        "tier": proof.tier,
        "threshold": proof.threshold.text,
        "can_fail": proof.can_fail,
        "told": proof.clause,
    }


def _write(held: Held, folder: Path, policy: Path) -> None:
    json, junit, markdown, sarif = output_paths(folder)
    next_step = "Make room on that disk, or choose another folder with --output."
    with tell_refusal("write the gate's answer", folder, next_step):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(json, encode_record(held.record))
        write_atomically(junit, to_junit(held.record, held.runs, held.failures, held.flaky))
        write_atomically(markdown, to_markdown(held.record).encode())
        record, file = held.record, file_in_repository(policy)
        alarms = alarms_of_gate(record)
        write_atomically(sarif, to_sarif(alarms, f"gate/{record.tier}", file, record.exit_code))


_FAILURES_MAX = 10
_RUNS_MAX = 5
_STYLES = {
    "green": "bold black on green",
    "red": "bold white on red",
    "unknown": "bold black on yellow",
    "failed": "bold black on yellow",
}


def _show(record: GateRecord, console: Console) -> None:
    """Print the summary: short, the verdict last, where the eye is when a command ends."""
    lines = [f"Gate {record.tier} of {record.policy}", ""]
    width = max((len(threshold.threshold) for threshold in record.thresholds), default=0)
    lines.append("Thresholds")
    for threshold in record.thresholds:
        implied = " (implied)" if threshold.implied else ""
        lines.append(f"  {threshold.threshold:<{width}}  {threshold_sentence(threshold)}{implied}")
    if record.sweeps:
        lines += ["", "Sweeps", *(f"  {each.sweep}: {each.sentence}" for each in record.sweeps)]
    if record.failures:
        lines += ["", "Failures"]
        for failure in record.failures[:_FAILURES_MAX]:
            lines += _failure(failure)
        if len(record.failures) > _FAILURES_MAX:
            lines.append(f"  and {len(record.failures) - _FAILURES_MAX:,} more")
    proven = ("valid", "invalid")
    wrong = [run for run in record.runs if run.outcome not in proven and not run.canary]
    if wrong:
        lines += ["", "Runs that prove nothing"]
        for run in wrong[:_RUNS_MAX]:
            lines.append(f"  {run.outcome:<8}  {run.run}: {run.sentence.partition(chr(10))[0]}")
        if len(wrong) > _RUNS_MAX:
            lines.append(f"  and {len(wrong) - _RUNS_MAX:,} more")
    notes = [f"{fingerprint} was not met again." for fingerprint in record.resolved]
    notes += [
        f"The quarantine of {quarantine.fingerprint} met nothing: remove it if the failure is gone."
        for quarantine in record.idle_quarantines
    ]
    notes += [*record.notes, *record.problems]
    if notes:
        lines += ["", "Notes", *(f"  {sentence}" for sentence in notes)]
    for line in (*lines, ""):
        console.print(Text(printable(line)), soft_wrap=True)
    verdict = Text(f" {HEADLINES[record.verdict]} ", style=_STYLES[record.verdict])
    console.print(verdict + Text(f" {printable(record.sentence)}"), soft_wrap=True)


def _failure(failure: FailureRecord) -> list[str]:
    first, state = failure.cases[0], f"{counted(failure.runs, 'run')}, {failure_state(failure)}"
    title = f"  {failure.fingerprint}  {failure_title(failure)} ({state})"
    return [title, f"    {first.run}: {first.sentence}", f"    {first.reproduce}"]
