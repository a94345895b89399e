"""Lakes and folders that cannot be meant."""

from tests.bad_input.cause import Chapter, Scene, causes, file
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
    causes(
        r"""
ingest-nothing | no folder | ingest
  no folder is named. Name a run folder, or a folder with runs or sweeps below it
ingest-missing | a folder that is not there | ingest runs | process
  runs is not there. Name a run folder, or a folder with runs or sweeps below it
ingest-file | a file for a folder of runs | ingest file
  file is a file. Name a run folder, or a folder with runs or sweeps below it
ingest-empty | a folder without a run | ingest .
  there is no run in .: no folder with a plan.json or a history.jsonl. Name a run folder, or a
  folder with runs or sweeps below it
lake-is-file | a file for a lake | ingest runs --lake lake
  the lake lake is a file. Name a folder, or one to be made
analyze-lake-is-file | a file for a lake, after an analysis | analyze runs/test/one --lake lake
  the lake lake is a file. Name a folder, or one to be made
analyze-nothing | an analysis of nothing | analyze
  no run is named. Name a run folder, or --lake and --report for all runs
parts-with-lake | parts, and a lake | analyze runs/test/one --parts --lake lake
  --parts judges run folders, and nothing else. Name run folders, without a lake
report-without-lake | a report over all runs without a lake | analyze --report page
  --report looks at a lake, and none is named. Name one with --lake
since-no-time | a word for a time | analyze --lake runs/lake --report page --since yesterday
  --since cannot be 'yesterday'. Write a day or a time, such as 2026-11-21T22:00
lake-empty-name | a lake without a name | ingest runs --lake ''
  the lake has no name. Write --lake FOLDER or --lake URI
lake-pattern | a lake with a pattern for a name | ingest runs --lake 'lake*'
  the lake's name 'lake*' holds *, which Spark takes for a pattern. Choose a name without any of
  *?[]{}\
lake-host | a host in the name of a folder | ingest runs --lake file://host/lake
  the lake's name 'file://host/lake' holds a host. Write file:///FOLDER, or the folder alone
lake-missing | a lake that is not there | ingest --compact --lake lake
  there is no lake in lake. Name the one that is meant, or ingest runs first
lake-of-later-version | a lake of a later version | ingest --clean --lake lake | 3
  could not read the lake (a commit in it): its layout is 2, and this version reads layouts up to 1.
  Use the version of splitbrain that wrote it, or a later one
""",
        {
            "ingest-file": file("file", ""),
            **dict.fromkeys(("lake-is-file", "analyze-lake-is-file"), _run_and_file),
            **dict.fromkeys(
                ("parts-with-lake", "lake-empty-name", "lake-pattern", "lake-host"), _run
            ),
            "lake-of-later-version": _later_lake,
        },
    ),
)
