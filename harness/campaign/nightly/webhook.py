"""Message about a night that is not green, to the address in an environment variable.

The address is the secret: it stands in no file, in no record and in no sentence. Whatever becomes
of the message, the night's answer stays what it is.
"""

import os
from typing import Any, Final

import msgspec

from splitbrain.harness.campaign.gate.alarms import alarms_of_gate
from splitbrain.harness.campaign.gate.record import GateRecord
from splitbrain.harness.export.posting import (
    Patience,
    PostFailedError,
    post_json,
    problem_of_address,
)
from splitbrain.harness.folder.results import EXIT_VALID

_FAILURES_MAX: Final = 10
_SENTENCE_MAX: Final = 400
_HEADLINES: Final = {1: "RED", 2: "UNKNOWN", 3: "FAILED", 64: "FAILED"}
#: As Slack wants it; else a text of the system under test could call everybody.
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def problem_of_webhook(variable: str | None) -> str | None:
    """Return a sentence on why nobody would be told; None: all is well, or nobody is to be."""
    if variable is None:
        return None
    if not (address := _address(variable)):
        return f"{variable} is not set: nobody will be told if the night is not green."
    if problem := problem_of_address(address):
        return f"The value of {variable} {problem}: nobody can be told."
    return None


def tell_webhook(
    variable: str | None,
    message: dict[str, Any],
    exit_code: int,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> str | None:
    """Send the message of a night that is not green; return a sentence on what became of it."""
    if variable is None or exit_code == EXIT_VALID:
        return None
    if problem := problem_of_webhook(variable):
        return problem
    try:
        post_json(_address(variable), msgspec.json.encode(message), patience=patience)
    except PostFailedError as error:
        return f"The webhook of {variable} was not told: {error}."
    return f"The webhook of {variable} was told."


def _address(variable: str) -> str:
    """Return the address; a secret that was pasted often ends with a line feed."""
    return os.environ.get(variable, "").strip()


def name_of_night(suite: str, night: str | None) -> str:
    """Return how a message calls a night; None: it ended before it had a name."""
    return f"a night of {suite}" if night is None else f"night {night} of {suite}"


def webhook_message(
    suite: str, night: str | None, exit_code: int, sentence: str, gate: GateRecord | None
) -> dict[str, Any]:
    """Return the message: ``text`` as Slack and Mattermost read it, and the same as data."""
    alarms = alarms_of_gate(gate) if gate is not None else []
    failures = [
        {
            "title": alarm.title,
            "sentence": alarm.sentence,
            "reproduce": alarm.reproduce,
            "fingerprint": alarm.fingerprint,
            "runs": alarm.count,
        }
        for alarm in alarms
    ]
    headline = (
        f"{_HEADLINES.get(exit_code, 'NOT GREEN')}: {name_of_night(suite, night)}: {sentence}"
    )
    lines = [headline]
    for alarm in alarms[:_FAILURES_MAX]:
        lines.append(f"- {alarm.title}: {alarm.sentence[:_SENTENCE_MAX]}")
        lines += [f"  `{alarm.reproduce}`"] if alarm.reproduce else []
    if more := len(alarms) - _FAILURES_MAX:
        lines += [f"and {more} more"] if more > 0 else []
    job = _job()
    return {
        "text": "\n".join([*lines, *([job] if job else [])]).translate(_ESCAPES),
        "suite": suite,
        "night": night,
        "exit_code": exit_code,
        "sentence": sentence,
        "job": job,
        "failures": failures,
    }


def _job() -> str | None:
    """Return the page of the CI server's job, where there is one."""
    server, repository = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    if server and repository and (run := os.environ.get("GITHUB_RUN_ID")):
        return f"{server}/{repository}/actions/runs/{run}"
    return os.environ.get("CI_JOB_URL") or os.environ.get("BUILD_URL")
