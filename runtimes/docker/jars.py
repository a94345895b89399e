"""The jars of an image: fetched by Maven as a pinned ``pom.xml`` says, held to the hashes locked.

``python -m splitbrain.runtimes.docker.jars FOLDER`` writes ``jars.lock`` anew for the ``pom.xml``
of a folder somewhere below ``docker/``. Where jars come from is Maven's own configuration, never
the project's.
"""

import hashlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from splitbrain.contracts.errors import HarnessError
from splitbrain.history.scratch_folders import scratch_folder
from splitbrain.runtimes.docker.image_builds import run

#: Fetched jars and their digests: a line ``SHA256  NAME`` per jar, sorted by name.
POM: Final = "pom.xml"
LOCK: Final = "jars.lock"
#: Makes sure of Maven; beside the folders of images, which may have a folder for each version.
_SCRIPT: Final = "maven.sh"
_ACTION: Final = "fetch the image's jars"


def fetch_jars(folder: Path, cache: Path) -> Path:
    """Return a folder with the jars of an image's ``pom.xml``, each with the locked hash; cached.

    Raises:
        HarnessError: Maven is missing or failed, or a jar is not the locked one.
    """
    pom, lock = folder / POM, folder / LOCK
    key = hashlib.sha256(pom.read_bytes() + lock.read_bytes()).hexdigest()[:16]
    fetched = cache / "jars" / key
    if not fetched.is_dir():
        unfinished = fetched.with_name(f"{key}-unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        _fetch(folder, unfinished)
        _check(unfinished, lock)
        unfinished.rename(fetched)
    _check(fetched, lock)
    return fetched


def read_lock(text: str) -> dict[str, str]:
    """Name of each jar to its SHA-256 in hexadecimal; ValueError: a line is not two words."""
    pairs = (line.split() for line in text.splitlines())
    return {name: digest for digest, name in pairs}


def write_lock(folder: Path) -> str:
    """Return the lock of this folder of jars."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(_digests(folder).items()))


def _digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.jar")
    }


def _check(folder: Path, lock: Path) -> None:
    locked, found = read_lock(lock.read_text()), _digests(folder)
    wrong = [f"{name} is missing" for name in sorted(locked.keys() - found)]
    wrong += [f"{name} is not in the lock file" for name in sorted(found.keys() - locked)]
    wrong += [
        f"{name} has another hash than the locked one"
        for name in sorted(locked.keys() & found)
        if locked[name] != found[name]
    ]
    if wrong:
        raise HarnessError(
            _ACTION,
            str(folder),
            "; ".join(wrong[:5]) + (f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""),
            "Remove that folder and try again; if it stays so, what the repository serves is not"
            " what was locked, and must not be used",
        )


def _fetch(folder: Path, target: Path) -> None:
    script = next(path for above in folder.parents if (path := above / _SCRIPT).is_file())
    run(["bash", str(script)], _ACTION, folder.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["mvn", "--quiet", "--batch-mode", "--file", str(folder / POM)]
    command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    run([*command, f"-DoutputDirectory={target.resolve()}"], _ACTION, folder.name)


def main(arguments: Sequence[str]) -> int:
    """Lock what Maven fetches now; returns the exit code."""
    (folder,) = map(Path, arguments)
    try:
        with scratch_folder("jars") as temporary:
            _fetch(folder, temporary / "jars")
            lock = write_lock(temporary / "jars")
    except HarnessError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    (folder / LOCK).write_text(lock)
    print(f"{folder / LOCK}: {len(lock.splitlines())} jars")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
