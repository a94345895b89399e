"""Lakes and folders that cannot be meant."""

from tests.bad_input.cause import Cause, Chapter, Scene, file
from tests.bad_input.run_causes import run


def _run(scene: Scene) -> None:
    run(lambda _folder: None)(scene)


def _run_and_file(scene: Scene) -> None:
    _run(scene)
    scene.write("lake", "")


def _later_lake(scene: Scene) -> None:
    from splitbrain.spark_analysis.lake.commits import LAYOUT, Commit, encode_commit

    scene.write("lake/commits/one.json", encode_commit(Commit(LAYOUT + 1, "one", (), ())))


LAKES = Chapter(
    "Lakes of runs",
    (
        Cause(
            "ingest-nothing",
            "no folder",
            "ingest",
            "no folder is named. Name a run folder, or a folder with runs below it",
        ),
        Cause(
            "ingest-missing",
            "a folder that is not there",
            "ingest runs",
            "runs is not there. Name a run folder, or a folder with runs below it",
            as_process=True,
        ),
        Cause(
            "ingest-file",
            "a file for a folder of runs",
            "ingest file",
            "file is a file. Name a run folder, or a folder with runs below it",
            arrange=file("file", ""),
        ),
        Cause(
            "ingest-empty",
            "a folder without a run",
            "ingest .",
            "there is no run in .: no folder with a plan.json or a history.jsonl. Name a run "
            "folder, or a folder with runs below it",
        ),
        Cause(
            "lake-is-file",
            "a file for a lake",
            "ingest runs --lake lake",
            "the lake lake is a file. Name a folder, or one to be made",
            arrange=_run_and_file,
        ),
        Cause(
            "analyze-lake-is-file",
            "a file for a lake, after an analysis",
            "analyze runs/test/one --lake lake",
            "the lake lake is a file. Name a folder, or one to be made",
            arrange=_run_and_file,
        ),
        Cause(
            "analyze-nothing",
            "an analysis of nothing",
            "analyze",
            "no run is named. Name a run folder, or --lake and --report for all runs",
        ),
        Cause(
            "parts-with-lake",
            "parts, and a lake",
            "analyze runs/test/one --parts --lake lake",
            "--parts judges run folders, and nothing else. Name run folders, without a lake",
            arrange=_run,
        ),
        Cause(
            "report-without-lake",
            "a report over all runs without a lake",
            "analyze --report page",
            "--report looks at a lake, and none is named. Name one with --lake",
        ),
        Cause(
            "since-no-time",
            "a word for a time",
            "analyze --lake runs/lake --report page --since yesterday",
            "--since cannot be 'yesterday'. Write a day or a time, such as 2026-11-21T22:00",
        ),
        Cause(
            "lake-empty-name",
            "a lake without a name",
            "ingest runs --lake ''",
            "the lake has no name. Write --lake FOLDER or --lake URI",
            arrange=_run,
        ),
        Cause(
            "lake-pattern",
            "a lake with a pattern for a name",
            "ingest runs --lake 'lake*'",
            "the lake's name 'lake*' holds *, which Spark takes for a pattern. Choose a name "
            "without any of *?[]{}\\",
            arrange=_run,
        ),
        Cause(
            "lake-host",
            "a host in the name of a folder",
            "ingest runs --lake file://host/lake",
            "the lake's name 'file://host/lake' holds a host. Write file:///FOLDER, or the "
            "folder alone",
            arrange=_run,
        ),
        Cause(
            "lake-missing",
            "a lake that is not there",
            "ingest --compact --lake lake",
            "there is no lake in lake. Name the one that is meant, or ingest runs first",
        ),
        Cause(
            "lake-of-later-version",
            "a lake of a later version",
            "ingest --clean --lake lake",
            "could not read the lake (a commit in it): its layout is 2, and this version reads "
            "layouts up to 1. Use the version of splitbrain that wrote it, or a later one",
            code=3,
            arrange=_later_lake,
        ),
    ),
)
