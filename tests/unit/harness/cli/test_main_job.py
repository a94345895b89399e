"""The main job takes the best runtime there is, and leaves out what it cannot do, and says so."""

from collections.abc import Callable

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.cli import main_job
from splitbrain.harness.cli.main_job import choose
from splitbrain.harness.judge.judge import _runtime_words
from splitbrain.harness.run.plan_record import plan_of
from tests.unit.harness.run_fake import FakeRun


class Machine:
    """Runtimes at hand; ``None`` for one that cannot be had."""

    def __init__(self, **capabilities: frozenset[str] | None) -> None:
        self.capabilities = capabilities
        self.torn_down: list[str] = []

    def runtime(self, name: str) -> "Runtime":
        if self.capabilities[name] is None:
            raise HarnessError("find an engine", name, f"no {name} here", "Install one.")
        return Runtime(self, name)


class Runtime:
    def __init__(self, machine: Machine, name: str) -> None:
        self.name = name
        self._machine = machine

    def capabilities(self) -> frozenset[str] | None:
        return self._machine.capabilities[self.name]

    def versions(self) -> dict[str, str]:
        return {"kernel": "6", "local": "plain processes"} if self.name == "local" else {}

    def teardown(self) -> None:
        self._machine.torn_down.append(self.name)


ALL = frozenset({"partition", "pause", "kill"})


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[Machine], Machine]:
    def put(machine: Machine) -> Machine:
        monkeypatch.setattr(main_job.runtimes, "runtime", machine.runtime)
        return machine

    return put


def test_an_engine_is_used_where_one_answers(on: Callable[[Machine], Machine]) -> None:
    machine = on(Machine(docker=ALL, local=ALL))
    choice = choose()
    assert (choice.runtime, choice.nemesis) == ("docker", "partition,pause,kill")
    assert choice.sentence == "main job: runtime docker"
    assert machine.torn_down == ["docker"]


def test_without_an_engine_the_machine_itself_is_used_and_the_first_line_says_so(
    on: Callable[[Machine], Machine],
) -> None:
    on(Machine(docker=None, local=ALL))
    choice = choose()
    assert (choice.runtime, choice.nemesis) == ("local", "partition,pause,kill")
    assert "docker cannot be had (no docker here); runtime local" in choice.sentence


def test_where_only_plain_processes_are_possible_partitions_are_left_out_and_named(
    on: Callable[[Machine], Machine],
) -> None:
    on(Machine(docker=None, local=frozenset({"kill", "pause", "power"})))
    choice = choose()
    assert choice.nemesis == "pause,kill"
    assert "local (plain processes); faults pause,kill alone" in choice.sentence
    assert choice.sentence.endswith("without partition")


def test_where_nothing_can_be_had_it_ends_with_the_environment_s_code(
    on: Callable[[Machine], Machine], capsys: pytest.CaptureFixture[str]
) -> None:
    on(Machine(docker=None, local=None))
    with pytest.raises(SystemExit) as ended:
        main_job.main([])
    assert ended.value.code == 3
    assert "no local here" in capsys.readouterr().err


def test_options_are_handed_on_to_the_test(
    on: Callable[[Machine], Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    on(Machine(docker=ALL, local=ALL))
    given: list[str] = []
    monkeypatch.setattr(main_job, "command_line", given.extend)
    main_job.main(["--seed", "7"])
    assert given == [
        *("test", "--nemesis", "partition,pause,kill", "--runtime", "docker", "--seed", "7")
    ]


def test_the_verdict_names_what_the_runtime_could_not_do(tmp_path: object) -> None:
    import msgspec

    from splitbrain.contracts.names import RunId
    from splitbrain.harness.run.options import prepare

    run = FakeRun(tmp_path)  # type: ignore[arg-type]
    plan = plan_of(prepare(run.options, run.system, lambda: run.runtime), "test", RunId("r"))
    assert _runtime_words(plan) == "fake"
    limited = msgspec.structs.replace(plan, runtime_versions={"limits": "no partitions"})
    assert _runtime_words(limited) == "fake (no partitions)"
