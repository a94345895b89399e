"""The static texts of ``--help`` name exactly what the registries hold."""

import pytest

from splitbrain.checker.names import history_models
from splitbrain.contracts.experiment import Experiment
from splitbrain.harness.cli.main import run
from splitbrain.harness.cli.run_commands import check_command
from splitbrain.history.options import options_of
from splitbrain.nemesis.kinds import kind_names, machine_kind_names
from splitbrain.nemesis.scripted import SCRIPTED
from splitbrain.nemesis.targets import ALL, FOLLOWER, HALVES, LAGGARD, LAST_LEADER, LEADER
from splitbrain.workloads.workload import workload_names


def words(text: str | None) -> str:
    return " ".join((text or "").replace("│", " ").split())


def test_the_help_of_nemesis_names_every_kind_target_and_scripted_plan() -> None:
    fields = {field.name: field for field in options_of(Experiment)}
    told = words(fields["nemesis"].option.help)
    machine = machine_kind_names()
    exact = [kind for kind in kind_names() if kind not in machine]
    assert f"Kinds: {', '.join(machine)}. " in told
    assert f"With --runtime simulated also: {', '.join(exact)}. Targets: " in told
    assert f"Scripted plans: {', '.join(SCRIPTED)}." in told
    targets = told.partition("Targets: ")[2].partition(", or a node")[0].split(", ")
    assert set(targets) == {*(LEADER, FOLLOWER, LAST_LEADER, LAGGARD, HALVES, ALL), "random:K"}


def test_the_help_of_workload_names_every_workload() -> None:
    fields = {field.name: field for field in options_of(Experiment)}
    *most, last = workload_names()
    assert f"clients do: {', '.join(most)} or {last};" in words(fields["workload"].option.help)


def test_the_help_of_model_names_every_model() -> None:
    models = history_models()
    listed = f"{', '.join(models[:-1])} or {models[-1]}"
    assert f"judged against: {listed}; by default" in words(check_command.__doc__)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("test", "Kinds: black-hole, bridge,"),
        ("check", "judged against: register, cas-register, multi-register"),
    ],
)
def test_the_help_that_is_printed_has_those_texts(
    command: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run([command, "--help"])
    assert told in words(capsys.readouterr().out)
