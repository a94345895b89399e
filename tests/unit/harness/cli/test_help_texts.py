"""Help texts: they name exactly what the registries hold, and their examples can be typed."""

import shlex
import subprocess
import sys

import pytest

from splitbrain.checker.names import history_models
from splitbrain.contracts.experiment import Experiment
from splitbrain.harness.cli.command_app import EXAMPLE_LINES
from splitbrain.harness.cli.main import app, run
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


COMMANDS = [name for name in app if not name.startswith("-")]


def test_every_command_has_examples() -> None:
    assert set(EXAMPLE_LINES) == set(COMMANDS)
    assert all(EXAMPLE_LINES.values())


@pytest.mark.parametrize("line", [line for lines in EXAMPLE_LINES.values() for line in lines])
def test_an_example_is_a_command_line(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    typed = shlex.split(line)
    app.parse_args(typed, exit_on_error=False, print_error=False)
    assert run(["help", typed[0]]) == 0
    assert f"splitbrain {line}" in words(capsys.readouterr().out)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_its_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", command]) == 0
    told = capsys.readouterr().out
    assert run([command, "--help"]) == 0
    assert told == capsys.readouterr().out
    assert told.startswith(f"Usage: splitbrain {command}")
    assert "[default: False]" not in told
    assert "[default: None]" not in told


def test_help_alone_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help"]) == 0
    told = capsys.readouterr().out
    assert all(f" {command} " in told for command in COMMANDS)


@pytest.mark.parametrize("command", ["test", "try", "sim", "shrink", "replay", "check"])
def test_options_stand_below_headings(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    run([command, "--help"])
    told = capsys.readouterr().out
    assert "Results \u2500" in told
    # A word that is given by its place stands alone above the headings.
    alone = told.partition(" Options \u2500")[2].partition("\u256f")[0]
    assert "--no-" not in alone


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_a_version_is_told_before_the_command_line_is_loaded(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import sys; from splitbrain.harness.cli.entry import start; start(); "
        "sys.exit(bool({'cyclopts', 'rich', 'msgspec', 'subprocess'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, flag], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert run([flag]) == 0
    assert done.stdout == capsys.readouterr().out
