"""Run folders that cannot be judged or replayed."""

import json
from collections.abc import Callable
from pathlib import Path

from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.registry import runtime_names
from tests.bad_input.cause import Arrange, Chapter, Scene, causes, file
from tests.synthetic_runs import SyntheticRun, seal

RUNTIMES = ", ".join(runtime_names())


def run(damage: Callable[[RunFolder], object], place: str = "test") -> Arrange:
    """A run of another day lies in the working folder, damaged."""

    def arrange(scene: Scene) -> None:
        root = scene.folder / "runs" / place / "one"
        root.mkdir(parents=True)
        SyntheticRun(root, operations_per_second=20).write()
        damage(RunFolder(root))

    return arrange


def plan(**fields: object) -> Arrange:
    """Some fields of its plan are others."""

    def damage(folder: RunFolder) -> None:
        content = json.loads(folder.plan.read_bytes())
        folder.plan.write_text(json.dumps({**content, **fields}))
        seal(folder)

    return run(damage)


def _as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _lead_out(folder: RunFolder) -> None:
    (folder.root / "analysis.log").symlink_to("/etc/hostname")


def _lead_out_by_name(folder: RunFolder) -> None:
    content = json.loads(folder.plan.read_bytes())
    folder.plan.write_text(json.dumps({**content, "nodes": ["n1", "../../other"]}))


def _dangling(scene: Scene) -> None:
    (scene.folder / "runs").mkdir()
    (scene.folder / "runs" / "latest").symlink_to("test/gone")


RUNS = Chapter(
    "Run folders",
    causes(
        f"""
run-missing | a run that is not there | replay runs/latest
  runs/latest is no run folder: it has no plan.json. Name a folder below runs/, or runs/latest
run-gone | a link to a run that was removed | check runs/latest
  there is no runs/latest. Name a run folder or a history file
run-is-file | a file for a run folder | analyze file
  file is no run folder: it has no plan.json. Name a folder below runs/, or runs/latest
run-no-plan | a run folder without its plan | replay runs/test/one
  runs/test/one has no plan.json, so that nothing says what it was meant to be. Judge its bare
  history: splitbrain check runs/test/one/history.jsonl --model MODEL
run-newer | a plan of a newer version | replay runs/test/one
  {{folder}}/runs/test/one/plan.json cannot be read: the plan has schema 99, this version reads 1.
  Replay a run made by this version
run-broken-plan | a plan that ends too early | replay runs/test/one
  {{folder}}/runs/test/one/plan.json cannot be read: it ends in the middle of a value. Replay a run
  made by this version
run-wrong-plan | a plan with a word for a number | replay runs/test/one
  {{folder}}/runs/test/one/plan.json cannot be read: seed must be a whole number, not text. Replay a
  run made by this version
run-link | a run folder with a link in it | check runs/test/one
  {{folder}}/runs/test/one holds a link, analysis.log, and a run makes nothing but folders and plain
  files. Find out who made it: without that the folder can be judged
run-node-leads-out | a plan with a node called ../../other | replay runs/test/one
  {{folder}}/runs/test/one/plan.json cannot be read: one of its nodes has a name that leads out of
  the run folder. Replay a run made by this version
run-unknown-system | a system that no longer exists | replay runs/test/one
  there is no system called 'krafts'. Did you mean 'kraft'?
run-unknown-workload | a workload that no longer exists | replay runs/test/one
  there is no workload called 'registers'. Did you mean 'register'?
run-unknown-bug | a bug that no longer exists | replay runs/test/one
  the system 'kraft' has no planted bug 'votes-not-persisted'. Did you mean 'vote-not-persisted'?
run-no-schedule | a run without its schedule | replay runs/test/one
  {{folder}}/runs/test/one/schedule.jsonl holds 0 of 3 planned faults. Replay a run whose schedule
  is whole
run-schedule-folder | a folder for a schedule | replay runs/test/one
  {{folder}}/runs/test/one/schedule.jsonl cannot be read: Is a directory. Replay a run whose
  schedule is whole
run-broken-schedule | a schedule with a broken line | replay runs/test/one
  {{folder}}/runs/test/one/schedule.jsonl cannot be read: it has no field 'index'. Replay a run
  whose schedule is whole
run-of-a-test | a replay of what a test of one's own has made | replay runs/test/one
  {{folder}}/runs/test/one was made by the steps of the test test_it.py::test_it, which stand in no
  plan. Run the test again: pytest test_it.py::test_it --splitbrain-seed 7  # splitbrain 0.1.0
run-of-a-test-small | a smaller one | shrink runs/test/one
  {{folder}}/runs/test/one was made by the steps of the test test_it.py::test_it, which stand in no
  plan. Run the test again: pytest test_it.py::test_it --splitbrain-seed 7  # splitbrain 0.1.0
run-other-runtime | a replay in no known runtime | replay runs/test/one --runtime moon
  there is no runtime 'moon'. Choose one of: {RUNTIMES}
export-no-format | an export in no known format | export runs/test/one --format perfeto
  there is no format 'perfeto'. Did you mean 'perfetto'?
export-missing | an export of a run that is not there | export runs/latest
  runs/latest is no run folder: it has no plan.json. Name a folder below runs/, or runs/latest
export-history | an export of a bare history | export file
  file is no run folder: it has no plan.json. Name a folder below runs/, or runs/latest
export-broken-plan | an export of a plan that ends too early | export runs/test/one
  {{folder}}/runs/test/one/plan.json cannot be read: it ends in the middle of a value. Export a run
  made by this version
export-file-sent | a file format for a collector | export runs/test/one --to http://127.0.0.1:1
  --to does not fit perfetto, which is a file. Choose --format otlp
export-twice | a file and a collector | export runs/test/one --format otlp --to http://a --output f
  --output and --to cannot be used together. Leave one of them out
export-no-address | a collector without its scheme | export runs/test/one --format otlp --to a:4318
  --to is not an address that begins with http:// or https://. Write it as http://127.0.0.1:4318
export-into-nothing | an export into no folder | export runs/test/one --output gone/t.json | 3
  could not write the export (gone/t.json): No such file or directory. Choose another file with
  --output
export-onto-folder | an export onto a folder | export runs/test/one --output runs | 3
  could not write the export (runs): Is a directory. Choose another file with --output
run-with-model | another model for a run | check runs/test/one --model register
  --model is for bare histories, and runs/test/one is a folder. Leave it out: a run folder is judged
  as its plan says
run-with-format | a format for a run | check runs/test/one --format edn
  --format is for bare histories, and runs/test/one is a folder. Leave it out: a run folder is
  judged as its plan says
runs-folder-is-file | a file for the folder of runs | test --runs-folder taken
  the folder of runs 'taken' is no folder. Choose another place with --runs-folder
runs-folder-below-file | a folder of runs below a file | test --runs-folder taken/runs
  the folder of runs 'taken/runs' lies below a file, {{folder}}/taken. Choose another place with
  --runs-folder
default-runs-folder-is-file | a file called runs | test
  the folder of runs 'runs' is no folder. Choose another place with --runs-folder
""",
        {
            "run-gone": _dangling,
            "run-is-file": file("file", ""),
            "run-no-plan": run(lambda folder: folder.plan.unlink()),
            "run-newer": plan(schema=99),
            "run-broken-plan": run(lambda folder: folder.plan.write_text('{"run_id"')),
            "run-wrong-plan": plan(seed="seven"),
            "run-link": run(_lead_out),
            "run-node-leads-out": run(_lead_out_by_name),
            "run-unknown-system": plan(system="krafts"),
            "run-unknown-workload": plan(workload="registers"),
            "run-unknown-bug": plan(bugs=["votes-not-persisted"]),
            "run-of-a-test": plan(driven_by="test_it.py::test_it"),
            "run-of-a-test-small": plan(driven_by="test_it.py::test_it"),
            "run-no-schedule": run(lambda folder: folder.schedule.unlink()),
            "run-schedule-folder": run(lambda folder: _as_folder(folder.schedule)),
            "run-broken-schedule": run(
                lambda folder: folder.schedule.write_text("{}\n" + folder.schedule.read_text())
            ),
            **dict.fromkeys(
                (
                    *("run-other-runtime", "run-with-model", "run-with-format"),
                    *("export-no-format", "export-file-sent", "export-twice", "export-no-address"),
                    *("export-into-nothing", "export-onto-folder"),
                ),
                run(lambda folder: None),
            ),
            "export-history": file("file", ""),
            "export-broken-plan": run(lambda folder: folder.plan.write_text('{"run_id"')),
            **dict.fromkeys(("runs-folder-is-file", "runs-folder-below-file"), file("taken", "")),
            "default-runs-folder-is-file": file("runs", ""),
        },
    ),
)
