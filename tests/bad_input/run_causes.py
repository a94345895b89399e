"""Run folders that cannot be judged or replayed."""

import json
from collections.abc import Callable
from pathlib import Path

from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.registry import runtime_names
from tests.bad_input.cause import Arrange, Cause, Chapter, Scene, file
from tests.synthetic_runs import SyntheticRun, seal

REPLAY = "replay runs/test/one"


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
    (
        Cause(
            "run-missing",
            "a run that is not there",
            "replay runs/latest",
            "runs/latest is no run folder: it has no plan.json. Name a folder below runs/, or "
            "runs/latest",
        ),
        Cause(
            "run-gone",
            "a link to a run that was removed",
            "check runs/latest",
            "there is no runs/latest. Name a run folder or a history file",
            arrange=_dangling,
        ),
        Cause(
            "run-is-file",
            "a file for a run folder",
            "analyze file",
            "file is no run folder: it has no plan.json. Name a folder below runs/, or runs/latest",
            arrange=file("file", ""),
        ),
        Cause(
            "run-no-plan",
            "a run folder without its plan",
            REPLAY,
            "runs/test/one has no plan.json, so that nothing says what it was meant to be. "
            "Judge its bare history: splitbrain check runs/test/one/history.jsonl --model MODEL",
            arrange=run(lambda folder: folder.plan.unlink()),
        ),
        Cause(
            "run-newer",
            "a plan of a newer version",
            REPLAY,
            "{folder}/runs/test/one/plan.json cannot be read: the plan has schema 99, this "
            "version reads 1. Replay a run made by this version",
            arrange=plan(schema=99),
        ),
        Cause(
            "run-broken-plan",
            "a plan that ends too early",
            REPLAY,
            "{folder}/runs/test/one/plan.json cannot be read: it ends in the middle of a "
            "value. Replay a run made by this version",
            arrange=run(lambda folder: folder.plan.write_text('{"run_id"')),
        ),
        Cause(
            "run-wrong-plan",
            "a plan with a word for a number",
            REPLAY,
            "{folder}/runs/test/one/plan.json cannot be read: seed must be a whole number, not "
            "text. Replay a run made by this version",
            arrange=plan(seed="seven"),
        ),
        Cause(
            "run-link",
            "a run folder with a link in it",
            "check runs/test/one",
            "{folder}/runs/test/one holds a link, analysis.log, and a run makes nothing but "
            "folders and plain files. Find out who made it: without that the folder can be "
            "judged",
            arrange=run(_lead_out),
        ),
        Cause(
            "run-node-leads-out",
            "a plan with a node called ../../other",
            REPLAY,
            "{folder}/runs/test/one/plan.json cannot be read: one of its nodes has a name that "
            "leads out of the run folder. Replay a run made by this version",
            arrange=run(_lead_out_by_name),
        ),
        Cause(
            "run-unknown-system",
            "a system that no longer exists",
            REPLAY,
            "there is no system called 'krafts'. Did you mean 'kraft'?",
            arrange=plan(system="krafts"),
        ),
        Cause(
            "run-unknown-workload",
            "a workload that no longer exists",
            REPLAY,
            "there is no workload called 'registers'. Did you mean 'register'?",
            arrange=plan(workload="registers"),
        ),
        Cause(
            "run-unknown-bug",
            "a bug that no longer exists",
            REPLAY,
            "the system 'kraft' has no planted bug 'votes-not-persisted'. Did you mean "
            "'vote-not-persisted'?",
            arrange=plan(bugs=["votes-not-persisted"]),
        ),
        Cause(
            "run-no-schedule",
            "a run without its schedule",
            REPLAY,
            "{folder}/runs/test/one/schedule.jsonl holds 0 of 3 planned faults. Replay a run "
            "whose schedule is whole",
            arrange=run(lambda folder: folder.schedule.unlink()),
        ),
        Cause(
            "run-schedule-folder",
            "a folder for a schedule",
            REPLAY,
            "{folder}/runs/test/one/schedule.jsonl cannot be read: Is a directory. Replay a "
            "run whose schedule is whole",
            arrange=run(lambda folder: _as_folder(folder.schedule)),
        ),
        Cause(
            "run-broken-schedule",
            "a schedule with a broken line",
            REPLAY,
            "{folder}/runs/test/one/schedule.jsonl cannot be read: it has no field 'index'. "
            "Replay a run whose schedule is whole",
            arrange=run(
                lambda folder: folder.schedule.write_text("{}\n" + folder.schedule.read_text())
            ),
        ),
        Cause(
            "run-other-runtime",
            "a replay in no known runtime",
            f"{REPLAY} --runtime moon",
            f"there is no runtime 'moon'. Choose one of: {', '.join(runtime_names())}",
            arrange=run(lambda folder: None),
        ),
        Cause(
            "run-with-model",
            "another model for a run",
            "check runs/test/one --model register",
            "--model is for bare histories, and runs/test/one is a folder. Leave it out: a run "
            "folder is judged as its plan says",
            arrange=run(lambda folder: None),
        ),
        Cause(
            "run-with-format",
            "a format for a run",
            "check runs/test/one --format edn",
            "--format is for bare histories, and runs/test/one is a folder. Leave it out: a "
            "run folder is judged as its plan says",
            arrange=run(lambda folder: None),
        ),
        Cause(
            "runs-folder-is-file",
            "a file for the folder of runs",
            "test --runs-folder taken",
            "the folder of runs 'taken' is no folder. Choose another place with --runs-folder",
            arrange=file("taken", ""),
        ),
        Cause(
            "runs-folder-below-file",
            "a folder of runs below a file",
            "test --runs-folder taken/runs",
            "the folder of runs 'taken/runs' lies below a file, {folder}/taken. Choose another "
            "place with --runs-folder",
            arrange=file("taken", ""),
        ),
        Cause(
            "default-runs-folder-is-file",
            "a file called runs",
            "test",
            "the folder of runs 'runs' is no folder. Choose another place with --runs-folder",
            arrange=file("runs", ""),
        ),
    ),
)
