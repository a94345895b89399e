"""Webhook of a night that is not green: told once, with all that matters, and never the judge."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.harness.campaign.nightly.record import NightlyRecord, Nights
from splitbrain.harness.campaign.nightly.steps import Steps
from splitbrain.harness.campaign.nightly.webhook import (
    problem_of_webhook,
    tell_webhook,
    webhook_message,
)
from tests.unit.harness.campaign.nightly.fake_nightly import Nightly
from tests.unit.harness.campaign.suite.fake_nights import does, matrix
from tests.unit.harness.export.http_server import HASTY, Answer, Server, answering

CANARY = matrix("canary", seeds=[1], setting=does("invalid"), expect="invalid")
VARIABLE = "SPLITBRAIN_WEBHOOK"
SECRET = "/services/T0p-s3cret"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in ("GITHUB_SERVER_URL", "CI_JOB_URL", "BUILD_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Generator[Server]:
    with answering().running() as made:
        monkeypatch.setenv(VARIABLE, made.address + SECRET)
        yield made


@pytest.fixture
def red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nightly:
    """A night with a violation, held by the real gate."""
    monkeypatch.setattr(Steps, "_analyze", lambda *_: (0, None))
    made = Nightly(tmp_path)
    bad = matrix("bad", seeds=[2, 3], setting=made.sets("invalid"))
    made.suites.write(CANARY, bad)
    made.write(webhook_env=VARIABLE)
    return made


def record_of(nightly: Nightly) -> NightlyRecord:
    record = Nights(nightly.folder / "nightly" / "unit").read()
    assert record is not None
    return record


def test_a_red_night_is_told_with_its_failures(red: Nightly, server: Server) -> None:
    assert red.run(fake=False, patience=HASTY) == 1
    (posted,) = server.posted
    assert posted.path == SECRET
    message: dict[str, Any] = posted.data
    assert (message["exit_code"], message["suite"]) == (1, "unit")
    assert message["text"].startswith(f"RED: night {message['night']} of unit: the gate is red.")
    (failure, *_) = message["failures"]
    assert failure["runs"] == 2
    assert failure["reproduce"] in message["text"]
    assert failure["fingerprint"].startswith("f")
    assert record_of(red).webhook == f"The webhook of {VARIABLE} was told."
    # The address stands nowhere.
    left = [path for path in red.folder.rglob("*") if path.is_file()]
    assert not any(b"s3cret" in path.read_bytes() for path in left)
    assert "s3cret" not in red.output


def test_a_green_night_is_silent(red: Nightly, server: Server) -> None:
    red.suites.write(CANARY)
    assert red.run(patience=HASTY) == 0
    assert server.posted == []
    assert record_of(red).webhook is None


def test_a_void_night_is_told(red: Nightly, server: Server) -> None:
    missed = matrix("canary", seeds=[1], setting=does("valid"), expect="invalid")
    red.suites.write(missed)
    assert red.run(patience=HASTY) == 3
    (posted,) = server.posted
    assert posted.data["text"].startswith("FAILED: night")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (HarnessError("write", "x", "disk full", "Make room."), 3, "disk full"),
        (UsageError("the suite has no seeds", "Give some"), 64, "the suite has no seeds"),
        (ValueError("of ours"), 3, "it died of ValueError: of ours."),
    ],
)
def test_a_night_that_an_error_ends_is_told(
    red: Nightly,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    code: int,
    said: str,
) -> None:
    def dies(*_: object) -> int:
        raise error

    monkeypatch.setattr("splitbrain.harness.campaign.nightly.command.run_suite", dies)
    with pytest.raises(type(error)):
        red.run(patience=HASTY)
    (posted,) = server.posted
    assert posted.data["exit_code"] == code
    assert posted.data["text"].startswith("FAILED: a night of unit: ")
    assert said in posted.data["sentence"]


def test_a_night_that_another_process_works_on_is_told(red: Nightly, server: Server) -> None:
    with (
        Nights(red.folder / "nightly" / "unit").locked(),
        pytest.raises(HarnessError, match="another process does"),
    ):
        red.run(patience=HASTY)
    (posted,) = server.posted
    assert "another process does" in posted.data["text"]


def test_a_webhook_that_fails_is_said_and_changes_nothing(
    red: Nightly, monkeypatch: pytest.MonkeyPatch
) -> None:
    red.suites.write(CANARY)
    red.ends_with("gate", 1)
    with answering(Answer(500)).running() as server:
        monkeypatch.setenv(VARIABLE, server.address + SECRET)
        assert red.run(patience=HASTY) == 1
    told = f"The webhook of {VARIABLE} was not told: it answered 500."
    assert told in red.output.splitlines()
    assert "s3cret" not in red.output
    record = record_of(red)
    assert (record.exit_code, record.webhook, record.ended is not None) == (1, told, True)


@pytest.mark.parametrize("code", [1, 2, 3])
def test_every_night_that_is_not_green_is_told(
    server: Server, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, server.address + SECRET + "\n")
    told = tell_webhook(VARIABLE, webhook_message("unit", "n", code, "s", None), code, HASTY)
    assert told == f"The webhook of {VARIABLE} was told."
    assert len(server.posted) == 1


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, f"{VARIABLE} is not set: nobody will be told"),
        ("", f"{VARIABLE} is not set: nobody will be told"),
        ("hooks.example/s3cret", f"The value of {VARIABLE} is not an address"),
        ("file:///s3cret", f"The value of {VARIABLE} is not an address"),
    ],
)
def test_an_address_that_is_not_there_is_said(
    monkeypatch: pytest.MonkeyPatch, value: str | None, told: str
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    for said in (problem_of_webhook(VARIABLE), tell_webhook(VARIABLE, {}, 1, HASTY)):
        assert str(said).startswith(told)
        assert "s3cret" not in str(said)
    assert tell_webhook(VARIABLE, {}, 0, HASTY) is None
    assert tell_webhook(None, {}, 1, HASTY) is None


def test_a_system_cannot_call_everybody_by_its_words() -> None:
    message = webhook_message("unit", "n", 1, "the gate is red: <!channel> & more", None)
    assert "<" not in message["text"]
    assert "&lt;!channel&gt; &amp; more" in message["text"]
    assert json.loads(json.dumps(message))["sentence"] == "the gate is red: <!channel> & more"


def test_the_job_of_the_ci_server_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", "me/it")
    monkeypatch.setenv("GITHUB_RUN_ID", "7")
    message = webhook_message("unit", "n", 3, "ingest failed.", None)
    assert message["text"].endswith("\nhttps://github.com/me/it/actions/runs/7")


def test_a_night_speaks_to_github_once(
    red: Nightly, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its runs and its gate are children, and say nothing there."""
    summary = red.folder / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.delenv(VARIABLE, raising=False)
    assert red.run(fake=False) == 1
    # Before anything is run.
    assert red.output.startswith(f"{VARIABLE} is not set: nobody will be told")
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("::")]
    assert len(lines) == len({*lines})
    assert lines[0].startswith("::error title=")
    text = summary.read_text()
    assert text.startswith("# Night ")
    assert text.count("\n# ") == 1
