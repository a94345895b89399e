"""Archive of the classes that an analysis loads, which a JVM maps instead of reading each of them.

Java calls it class data sharing. Spark's start takes half the time with it, and the first queries
take less (``python -m bench.class_archive``). Everything works without; a JVM that the archive does
not fit, since Java or Spark was replaced meanwhile, starts as if it were not there.

``python -m splitbrain.spark_analysis.class_archive RUN_FOLDER`` makes it in the user's cache folder
by an analysis of that run, unless it is there. Exit code 3 with one sentence where it cannot.
"""

import hashlib
import os
import shutil
import string
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import pyspark

from splitbrain.contracts.errors import HarnessError
from splitbrain.history.scratch_folders import scratch_folder
from splitbrain.spark_analysis.jdk import MISSING_MODULE_OPTION, Jdk, cache_folder, find_jdk

#: It takes 15 s on an idle machine.
_DUMP_TIMEOUT_S: Final = 600.0
_FOLDER: Final = "spark-classes"
#: Link in the folder of an archive, to the Spark that it is for.
_MARK: Final = "spark"
_DIGITS: Final = 16


def archive_options(jdk: Jdk, environment: Mapping[str, str]) -> list[str]:
    """Return the options with which a JVM uses the archive; none where there is none."""
    path = archive_path(jdk, environment)
    # Spark takes options apart at blanks and quotation marks.
    if not path.is_file() or set(str(path)) & set(string.whitespace + "\"'\\"):
        return []
    # An archive that does not fit would be told on standard output, where answers are read.
    return [f"-XX:SharedArchiveFile={path}", "-Xlog:disable", "-Xlog:all=warning:stderr"]


def archive_path(jdk: Jdk, environment: Mapping[str, str]) -> Path:
    """Return the place of the archive for this Java and this Spark, as both are now."""
    spark = Path(pyspark.__file__).parent
    told = jdk.home / "release"
    state = (
        told.read_bytes() if told.is_file() else b"",
        pyspark.__version__.encode(),
        # Java takes no archive of jars that were written anew.
        str((spark / "jars").stat().st_mtime_ns).encode(),
    )
    folder = cache_folder(environment) / _FOLDER / _digest(bytes(jdk.home), bytes(spark))
    return folder / f"{_digest(*state)}.jsa"


def make_archive(run_folder: Path, environment: Mapping[str, str]) -> Path:
    """Make the archive from the classes that the analysis of a run loads, and return its path.

    Raises:
        HarnessError: the run cannot be analysed, Java makes no archive, or the disk refuses.
    """
    # They import the session, which asks here for an archive.
    from splitbrain.spark_analysis.analyze import analyze
    from splitbrain.spark_analysis.session import spark_session

    jdk = find_jdk(environment)
    path = archive_path(jdk, environment)
    with scratch_folder("classes") as scratch:
        classes = scratch / "classes.lst"
        with spark_session(java_options=(f"-XX:DumpLoadedClassList={classes}",)) as session:
            analyze(run_folder, session)
            java = cast("Any", session)._jvm.java.lang  # noqa: SLF001
            class_path = str(java.System.getProperty("java.class.path"))
        try:
            _remove_others(path)
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=".classes-") as folder:
                made = Path(folder) / path.name
                _dump(jdk, classes, class_path, made)
                made.replace(path)
        except OSError as error:
            raise _failed(path, error.strerror or str(error)) from error
    return path


def _remove_others(path: Path) -> None:
    """Make the archive's folder; remove what fits no longer, and those of a Spark that is gone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for older in path.parent.glob("*.jsa"):
        older.unlink()
    mark = path.parent / _MARK
    with suppress(FileExistsError):
        mark.symlink_to(Path(pyspark.__file__).parent)
    for place in path.parent.parent.iterdir():
        if not (place / _MARK).exists():
            shutil.rmtree(place, ignore_errors=True)


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:_DIGITS]


def _dump(jdk: Jdk, classes: Path, class_path: str, archive: Path) -> None:
    command = [
        *(str(jdk.home / "bin" / "java"), "-Xshare:dump", MISSING_MODULE_OPTION),
        *("-XX:+UseSerialGC", "-Xlog:disable", "-Xlog:all=error:stderr"),
        *(f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={archive}"),
        *("-cp", class_path),
    ]
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DUMP_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _failed(archive, f"Java was not done within {_DUMP_TIMEOUT_S:g} s") from error
    if ended.returncode != 0 or not archive.is_file():
        lines = (ended.stderr + ended.stdout).strip().splitlines()
        raise _failed(archive, lines[-1] if lines else f"Java ended with {ended.returncode}")


def _failed(path: Path, problem: str) -> HarnessError:
    return HarnessError(
        "make an archive of Spark's classes",
        str(path),
        problem,
        "Nothing needs it; Spark starts without, in twice the time.",
    )


def main(arguments: list[str]) -> int:
    """Make the archive unless it is there; return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m splitbrain.spark_analysis.class_archive RUN_FOLDER\n")
        return 64
    try:
        path = archive_path(find_jdk(os.environ), os.environ)
        if not path.is_file():
            path = make_archive(Path(arguments[0]), os.environ)
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
