"""An option of ``test`` or ``sim`` is one field of ``Experiment`` or ``SimOptions``."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from cyclopts import App

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment, Option
from splitbrain.harness.campaign.replaying.recorded import replay_options
from splitbrain.harness.campaign.suite.cells import planned_runs
from splitbrain.harness.campaign.suite.definition import Suite
from splitbrain.harness.campaign.suite.reading import experiment_of
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.cli.main import app
from splitbrain.harness.cli.record_options import with_records
from splitbrain.history.options import OptionField, options_of, refuse_unfit
from splitbrain.history.plan import decode_plan, encode_plan, reproduce_command
from tests.plans import changed, plan_with
from tests.unit.harness.run_fake import FakeRun

FIELDS = options_of(Experiment)
#: A value other than the default, as a file has it.
OTHERS: dict[str, Any] = {
    **dict.fromkeys(("system", "state_machine", "workload", "nemesis", "runtime"), "other"),
    "recovery_limit_s": 90.0,
    "nodes": 5,
    "time_limit_s": 7.5,
    "seed": 12,
    "concurrency": 3,
    "rate": 2.25,
    "operation_timeout_s": 0.5,
    "stop_on_violation": True,
    "bugs": ("one", "two"),
    "settings": {"a": "1"},
    "workload_options": {"b": "2"},
}


def test_every_field_of_an_experiment_is_an_option() -> None:
    assert [field.name for field in FIELDS] == list(Experiment.__struct_fields__)
    assert {field.name for field in FIELDS} == OTHERS.keys()


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_an_option_is_on_the_command_line_in_the_plan_and_in_what_reproduces_it(
    field: OptionField,
) -> None:
    shown = app["test"].assemble_argument_collection()
    (argument,) = [one for one in shown if field.flag in one.names]
    assert argument.parameter.help == field.option.help
    value = OTHERS[field.name]
    nodes = tuple(f"n{number}" for number in range(1, 6)) if field.name == "nodes" else value
    plan = changed(plan_with(), **{field.name: nodes})
    assert decode_plan(encode_plan(plan)) == plan
    written = msgspec.json.decode(encode_plan(plan))[field.name]
    assert msgspec.convert(written, type(nodes)) == nodes
    words = " ".join(field.words(value))
    assert words in reproduce_command(plan, Experiment(system="kraft"))
    assert words not in reproduce_command(plan_with(), Experiment(system="kraft"))


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_an_option_is_an_axis_of_a_suite(field: OptionField) -> None:
    value = OTHERS[field.name]
    if field.name == "seed":
        matrix = {"name": "m", "seeds": value}
    else:
        matrix = {"name": "m", field.key: [list(value) if isinstance(value, tuple) else value]}
    suite = msgspec.convert({"name": "s", "matrix": [matrix]}, Suite)
    (run,) = planned_runs(suite, 1)
    assert getattr(experiment_of(run), field.name) == value
    assert " ".join(field.words(value)) in " ".join(run.arguments)


def test_an_option_is_what_a_replay_repeats(tmp_path: Path) -> None:
    first = FakeRun(tmp_path, time_limit_s=0.2, concurrency=3, seed=5)
    folder = first.run().folder
    assert replay_options(folder.root, pinned=False).experiment == (
        decode_plan(folder.plan.read_bytes()).experiment
    )


class Wider(Experiment, frozen=True, kw_only=True):
    """An experiment with an option more."""

    shards: Annotated[int, Option("Number of shards.", 1, 4)] = 2


def test_a_new_option_is_one_field(capsys: pytest.CaptureFixture[str]) -> None:
    other = App(name="other")
    given: list[Wider] = []

    @other.default
    @with_records(system="kraft")
    def command(experiment: Wider) -> int:
        given.append(experiment)
        return 0

    def run(*words: str) -> None:
        other(list(words), exit_on_error=False, print_error=False, result_action="return_value")

    run("--shards", "3", "--bug", "x", "--bug", "y", "--setting", "a=1")
    run()
    assert given == [
        Wider(system="kraft", shards=3, bugs=("x", "y"), settings={"a": "1"}),
        Wider(system="kraft"),
    ]
    run("--help")
    assert "Number of shards. [default: 2]" in capsys.readouterr().out
    with pytest.raises(UsageError, match="--shards cannot be 5") as caught:
        run("--shards", "5")
    assert caught.value.next_step == "Choose a number between 1 and 4"
    with pytest.raises(UsageError, match=r"--shards cannot be '2\.5'"):
        run("--shards", "2.5")


class Louder(SimOptions, frozen=True, kw_only=True):
    """Options of ``sim``, and one more."""

    volume: Annotated[int, Option("How loud.", 0, 11, only=("seeds",))] = 3


def test_a_new_option_of_sim_is_one_field(capsys: pytest.CaptureFixture[str]) -> None:
    other = App(name="other")

    @other.default
    @with_records()
    def command(options: Louder) -> int:
        refuse_unfit(options, "scenario", "--scenario", "Leave one of them out")
        return options.volume

    def run(*words: str) -> Any:
        return other(
            list(words), exit_on_error=False, print_error=False, result_action="return_value"
        )

    assert run() == 3
    run("--help")
    assert "How loud. [default: 3]" in capsys.readouterr().out
    with pytest.raises(UsageError, match="--volume cannot be 12"):
        run("--volume", "12")
    with pytest.raises(UsageError, match="--volume"):
        run("--volume", "5")
