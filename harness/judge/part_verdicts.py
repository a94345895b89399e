"""The command ``splitbrain analyze RUN --parts``: judges a history too large for one process.

The verdict is on linearizability and on transactions alone; the history is never in this process,
and ``results.json`` stays as it is.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
from rich.console import Console
from rich.text import Text

from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.names import linearizability_model, transactions_level
from splitbrain.checker.transactions.levels import COMMIT_ORDERS
from splitbrain.checker.verdict import ALLOWED, Verdict, merge
from splitbrain.contracts.analysis.parts import (
    PartCount,
    PartsAnswer,
    PartsRequest,
    TransactionsVerdict,
)
from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.words import counted
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.console.standard_streams import answer as tell
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.console.waiting import Waiting
from splitbrain.harness.folder.manifest import damage
from splitbrain.harness.folder.results import exit_code
from splitbrain.harness.folder.store import find_run
from splitbrain.harness.judge.judging_lock import exclusive
from splitbrain.harness.pool.spark_service import ask_spark
from splitbrain.history.plan import Plan, decode_plan
from splitbrain.history.run_folder import RunFolder

JUDGING_PARTS: Final = "judging part by part with Spark"
_MODULE: Final = f"{PACKAGE}.spark_analysis.parts_process"


def judge_parts(runs: Sequence[Path], console: Console) -> int:
    """Judge the parts of run folders; return the worst exit code.

    Raises:
        UsageError: one is no run folder, or has nothing to judge in parts; nothing was done.
        HarnessError: Spark failed.
    """
    folders = [find_run(run) for run in runs]
    plans = [_plan(folder) for folder in folders]
    requests = [_request(folder, plan) for folder, plan in zip(folders, plans, strict=True)]
    for folder in folders:
        if changed := damage(folder):
            raise UsageError(
                f"{folder.root} is not as the run left it: {changed[0]}",
                "Judge what is left of it with splitbrain check",
            )
    worst = Verdict.VALID
    answers: dict[str, PartsAnswer] = {}
    waiting = Waiting(console)
    for folder, plan, request in zip(folders, plans, requests, strict=True):
        with exclusive(folder.root, waiting.during, Stop()), waiting.during(JUDGING_PARTS):
            answer = _ask(folder, request)
            answers[str(folder.root)] = answer
        allowed = _allowed(plan)
        for line in answer_lines(answer, allowed):
            console.print(Text(printable(line)), soft_wrap=True)
        worst = merge([worst, verdict_of(answer, allowed)])
    code = exit_code(worst, vacuous=False, harness_failed=False)
    tell(console, {"exit_code": code, "runs": answers})
    return code


def verdict_of(answer: PartsAnswer, allowed: Mapping[str, str] | None = None) -> Verdict:
    """Return the worst verdict; a damaged history proves nothing.

    ``allowed``: models whose violations the system documents, each with where it does.
    """
    judged = [*answer.counts, *answer.transactions]
    doubts = [Verdict.UNKNOWN] if answer.damage or not judged else []
    alarms = [each for each in judged if not _is_allowed(each, allowed or {})]
    return merge([*(Verdict(each.verdict) for each in alarms), *doubts])


def answer_lines(answer: PartsAnswer, allowed: Mapping[str, str] | None = None) -> list[str]:
    """Return the lines on one run, the verdict last; ``allowed`` as of ``verdict_of``."""
    allowed = allowed or {}
    lines = [
        f"linearizability:{count.model}: {counted(count.parts, 'part')} "
        f"({counted(count.operations, 'operation')}) {count.verdict}"
        + (f", {ALLOWED}: {allowed[count.model]}" if _is_allowed(count, allowed) else "")
        for count in answer.counts
    ]
    lines += [f"  {example.verdict}: {example.reason}" for example in answer.examples]
    for each in answer.transactions:
        what = f"{counted(each.transactions, 'transaction')} on {counted(each.keys, 'key')}"
        end = f", {ALLOWED}: {allowed[_name(each)]}" if _is_allowed(each, allowed) else ""
        lines += [f"{_name(each)}: {what} {each.verdict}{end}", f"  {each.reason}"]
        lines += [f"  {name}: {count:,}" for name, count in each.anomalies.items()]
    lines += [f"  not read: {sentence}" for sentence in answer.damage]
    if not answer.counts and not answer.transactions:
        lines.append("There is no operation to judge.")
    of = "transactions" if answer.transactions else "linearizability"
    if answer.transactions and answer.counts:
        of = "linearizability and transactions"
    return [*lines, f"{verdict_of(answer, allowed).value.upper()}, of {of} alone"]


def _name(judged: PartCount | TransactionsVerdict) -> str:
    if isinstance(judged, PartCount):
        return judged.model
    return f"transactions:{judged.kind}:{judged.level}"


def _is_allowed(judged: PartCount | TransactionsVerdict, allowed: Mapping[str, str]) -> bool:
    return judged.verdict == Verdict.INVALID.value and _name(judged) in allowed


def _allowed(plan: Plan) -> dict[str, str]:
    """Return why violations are allowed, by models and by names of transactions."""
    found: dict[str, str] = {}
    for anomaly in plan.allowed:
        if model := linearizability_model(anomaly.checker):
            found[model] = anomaly.why
        elif of_transactions := transactions_level(anomaly.checker):
            found[":".join(("transactions", *of_transactions))] = anomaly.why
    return found


def _plan(folder: RunFolder) -> Plan:
    try:
        return decode_plan(folder.plan.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"the plan of {folder.root} cannot be read, so its checkers are unknown",
            "Name a run folder with its plan.json",
        ) from error


def _request(folder: RunFolder, plan: Plan) -> PartsRequest:
    models = [model for name in plan.checkers if (model := linearizability_model(name))]
    transactions = [found for name in plan.checkers if (found := transactions_level(name))]
    if not models and not transactions:
        raise UsageError(
            f"nothing of {folder.root} is judged in parts: its checkers are "
            f"{', '.join(plan.checkers)}",
            "Judge it with splitbrain check",
        )
    own = [model for model in models if model not in MODELS]
    if own:
        raise UsageError(
            f"Spark's workers do not have the model {own[0]!r}", "Judge it with splitbrain check"
        )
    by_key: list[tuple[Literal["list-append", "rw-register"], str]] = []
    for kind, level in transactions:
        if kind == "rows" or level in COMMIT_ORDERS:
            raise UsageError(
                f"transactions of {kind} are not judged key by key at the level {level}",
                "Judge it with splitbrain check",
            )
        by_key.append((kind, level))
    return PartsRequest(str(folder.root.absolute()), tuple(models), tuple(by_key))


def _ask(folder: RunFolder, request: PartsRequest) -> PartsAnswer:
    answered = ask_spark(_MODULE, request, name="parts", timeout_s=None)
    if answered.code == 0:
        return msgspec.json.decode(answered.answer, type=PartsAnswer)
    raise HarnessError(
        "judge the parts with Spark",
        str(folder.root),
        answered.error_line.rstrip(".") or f"Spark ended with exit code {answered.code}",
        "The run itself is not affected; splitbrain doctor --spark looks at Spark.",
    )
