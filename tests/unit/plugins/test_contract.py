"""Adapters of users: what they do otherwise than their contract is told with file and line."""

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from splitbrain.contracts.errors import AdapterError, HarnessError, UsageError
from splitbrain.contracts.operations import Client
from splitbrain.contracts.system import LeaderView, System, Tempo
from splitbrain.harness.cli.command_end import exit_code_of
from splitbrain.harness.run.attempts import failure
from splitbrain.plugins.blame import authors_place
from splitbrain.plugins.contract import fits
from splitbrain.systems import registry
from splitbrain.systems.redis.adapter import RedisSystem

ADAPTER = """
from splitbrain.contracts.system import LeaderView, Tempo
from splitbrain.systems.servers import ServerSystem


class Own(ServerSystem):
    name = "own"
    def command(self, server, others):
        return ("true",)
"""


@pytest.fixture(autouse=True)
def _no_systems_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.VARIABLE, "")


@pytest.fixture
def adapter(tmp_path: Path) -> Callable[[str], System]:
    """Make the system of a file with these lines in its class; they begin in line 10."""

    def made(lines: str) -> System:
        file = tmp_path / "own.py"
        file.write_text(ADAPTER + "".join(f"    {line}\n" for line in lines.splitlines()))
        os.environ[registry.VARIABLE] = f"{file}:Own"
        return registry.system(registry.admitted(f"{file}:Own"))

    return made


Adapter = Callable[[str], System]
RUNTIME: Any = None


@pytest.mark.parametrize(
    ("lines", "asked", "said"),
    [
        (
            "def leader(self, runtime, timeout_s):\n return 'n1'",
            "leader",
            "str 'n1', not LeaderView",
        ),
        ("def tempo(self):\n return {'ready_s': 5}", "tempo", "the dict {'ready_s': 5}, not Tempo"),
        ("def tempo(self):\n pass", "tempo", "it returned None, not Tempo"),
        ("def workloads(self, machine):\n return 'register'", "workloads", "a sequence of str"),
        ("def open_client(self, runtime, route):\n return 5", "open_client", "not Client"),
        ("def metrics(self, r, n, t):\n return {'a': 'b'}", "metrics", "str to float or None"),
        ("def command(self, server, others):\n return 'x -y'", "command", "the str 'x -y', not a"),
        ("def leader(self, r, t):\n raise SystemExit(2)", "leader", "it raised SystemExit: 2"),
    ],
)
def test_a_wrong_answer_is_the_adapters_error(
    adapter: Adapter, lines: str, asked: str, said: str
) -> None:
    own = adapter(lines)
    arguments = [RUNTIME] * (len(lines.partition(")")[0].split(",")) - 1)
    with pytest.raises(AdapterError) as told:
        getattr(own, asked)(*arguments)
    assert said in str(told.value)
    assert f"(Own.{asked}, own.py, line 1" in str(told.value)
    assert told.value.exit_code == 64


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("node_counts = 1", r"node_counts of the system .* is the int 1, not a sequence of int"),
        ("settings = {'mode': ['a', 'b']}", r"settings of .* not a mapping of str to str or"),
        ("settings = {'n': 3}", "settings of .* is the dict {'n': 3}, not"),
        ("log_patterns = ('FATAL',)", "not a sequence of LogPattern"),
        ("reads_speak_for = 'all'", "not 'member' or 'converged' or 'cluster'"),
        ("def open_client(self): ...", r"own.py, line 10\) does not take self, runtime, route"),
        ("def leader(self, *, runtime, timeout_s): ...", r"Own.leader .* does not take self"),
    ],
)
def test_a_wrong_declaration_is_refused_before_anything_runs(
    adapter: Adapter, lines: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        adapter(lines)


def test_one_that_keeps_to_it_is_as_it_was(adapter: Adapter) -> None:
    own = adapter(
        "settings = {'mode': ('a', 'b'), 'free': ''}\n"
        "node_counts = [1, 3]\n"
        "def tempo(self): return Tempo(ready_s=5)\n"
        "def leader(self, *arguments): return LeaderView('n1', None)\n"
        "def workloads(self, state_machine=None): return ['register', 'set']\n"
        "def metrics(self, runtime, node, timeout_s): return {'a': 1, 'b': 0.5}\n"
        "async def ask(self, reader, writer, operation): return 5\n"
        "def helper(self): return 'anything'"
    )
    assert own.tempo() == Tempo(ready_s=5)
    assert own.leader(RUNTIME, 1) == LeaderView("n1", None)  # type: ignore[arg-type]
    assert own.workloads(None) == ["register", "set"]
    assert own.metrics(RUNTIME, "n1", 1) == {"a": 1, "b": 0.5}  # type: ignore[arg-type]
    assert own.helper() == "anything"  # type: ignore[attr-defined]
    assert own.names_leaders
    assert asyncio.run(own.ask(None, None, None)) == 5  # type: ignore[attr-defined]


def test_an_ask_without_async_is_told(adapter: Adapter) -> None:
    own = adapter("def ask(self, reader, writer, operation): return 5")
    with pytest.raises(AdapterError, match="awaited and is no coroutine; write async def"):
        own.ask(None, None, None)  # type: ignore[attr-defined]


def test_an_interruption_in_the_first_thread_is_the_users(adapter: Adapter) -> None:
    own = adapter("def tempo(self):\n raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        own.tempo()
    met: list[BaseException] = []

    def ask() -> None:
        try:
            own.tempo()
        except AdapterError as error:
            met.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert "it raised KeyboardInterrupt" in str(met[0])


def test_what_users_code_raises_is_no_defect_of_ours(
    adapter: Adapter, capsys: pytest.CaptureFixture[str]
) -> None:
    own = adapter("def tempo(self):\n return self.nothing")
    with pytest.raises(AttributeError) as raised:
        own.tempo()
    assert authors_place(raised.value) == "own.py, line 11"
    said = str(failure(ExceptionGroup("several", [raised.value])))
    assert "(own.py, line 11): it raised AttributeError: 'Own' object has no" in said
    assert exit_code_of(own.tempo, [], []) == 64
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    assert "own.py, line 11" in errors


def test_our_own_defects_stay_ours(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> None:
        RedisSystem().setting("no such setting")

    with pytest.raises(KeyError) as raised:
        broken()
    assert authors_place(raised.value) is None
    assert "defect of splitbrain" in str(failure(raised.value))
    assert exit_code_of(broken, [], []) == 3
    assert "Traceback" in capsys.readouterr().err
    told = HarnessError("do", "it", "no", "Try.")
    assert failure(told) is told


@pytest.mark.parametrize(
    ("value", "hint", "does_fit"),
    [
        (1, float, True),
        (True, int, False),
        (1.5, int, False),
        ("a", Sequence[str], False),
        (range(3), Sequence[int], True),
        ({"a": ("b",)}, Mapping[str, str | tuple[str, ...]], True),
        ({"a": ["b"]}, Mapping[str, str | tuple[str, ...]], False),
        ((1, 2), tuple[int, ...], True),
        ((1, "2"), tuple[int, str], True),
        ((1,), tuple[int, str], False),
        ([1], tuple[int, ...], False),
        ("x", Literal["x", "y"], True),
        (["x"], Literal["x"], False),
        (None, str | None, True),
        (object(), Any, True),
        (object(), Client, False),
    ],
)
def test_types_of_values(value: object, hint: Any, does_fit: bool) -> None:
    assert fits(value, hint) is does_fit
