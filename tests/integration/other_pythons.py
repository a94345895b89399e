"""Other versions of CPython on this machine, each with the few packages that simulation needs.

Their virtual environments are made from the lock file, hashes checked, and kept below ``.cache``
until the lock file changes. Must never touch the project's own environment.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

PROJECT = Path(__file__).parents[2]
#: Interpreters on which simulated worlds must be equal.
VERSIONS = ("3.11", "3.12", "3.13")
#: Packages that ``bench.trace_hashes`` imports from.
OURS = ("bench", "splitbrain")
#: All else that it imports and Python does not have.
PACKAGES = ("crc32c", "msgspec")
_UV = PROJECT / ".tools" / "uv" / "bin" / "uv"
_CACHE = PROJECT / ".cache" / "other-pythons"
_PATIENCE_S = 300


class OtherPython(msgspec.Struct, frozen=True):
    """One interpreter with the packages."""

    version: str
    program: Path
    #: The project's sources: a copy, so that all run the same ones while somebody edits.
    sources: Path

    def run(self, *arguments: str, hash_seed: str = "0") -> str:
        """Return the output of ``python ARGUMENTS`` in the sources' folder.

        Raises:
            AssertionError: it failed; with what it said.
        """
        environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            # -P is left out on purpose: the project is imported from the current folder.
            [str(self.program), "-B", *arguments],
            cwd=self.sources,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, f"on Python {self.version}: {done.stderr}"
        return done.stdout


def find_interpreter(version: str) -> Path | None:
    """Where a version of CPython is on this machine."""
    for extra in ({}, *_pyenv_choices(version)):
        done = subprocess.run(
            [str(_UV), "python", "find", "--no-project", "--no-python-downloads", version],
            env={**os.environ, **extra},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return Path(done.stdout.strip())
    return None


def copy_sources(folder: Path) -> None:
    """Copy the Python modules; a room becomes a folder where it was a link to one."""
    for package in OURS:
        shutil.copytree(
            PROJECT / package,
            folder / package,
            ignore=lambda within, names: [
                name
                for name in names
                if not name.endswith(".py") and not Path(within, name).is_dir()
            ],
        )


def other_python(version: str, sources: Path) -> OtherPython | None:
    """The interpreter with the packages, made where it is not there yet; None: no interpreter.

    Raises:
        subprocess.CalledProcessError: the packages cannot be had.
    """
    interpreter = find_interpreter(version)
    if interpreter is None:
        return None
    requirements = locked(PACKAGES)
    identity = f"{interpreter.resolve()}\n{requirements}"
    folder = _CACHE / f"{version}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    if not folder.exists():
        _make(folder, interpreter, requirements)
    return OtherPython(version, folder / "bin" / "python", sources)


def locked(packages: tuple[str, ...]) -> str:
    """Return the lock file's entries of these packages, as lines for pip.

    Raises:
        AssertionError: it does not know one.
    """
    wanted: list[str] = []
    is_wanted = False
    for line in (PROJECT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith((" ", "#")):
            is_wanted = line.partition("==")[0] in packages
        if is_wanted and not line.lstrip().startswith("#"):
            wanted.append(line)
    assert sum("==" in line for line in wanted) == len(packages), wanted
    return "\n".join(wanted) + "\n"


def _make(folder: Path, interpreter: Path, requirements: str) -> None:
    """Make it beside its place and move it there: others may be making it, too."""
    _CACHE.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=_CACHE, prefix="making-"))
    try:
        listing = making / "requirements.txt"
        listing.write_text(requirements, encoding="utf-8")
        venv = making / "venv"
        for command in (
            ["venv", "--quiet", "--no-project", "--relocatable",
             "--python", str(interpreter), str(venv)],
            ["pip", "install", "--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:",
             "--python", str(venv / "bin" / "python"), "--requirement", str(listing)],
        ):  # fmt: skip
            subprocess.run([str(_UV), *command], check=True, stdout=sys.stderr)
        if not folder.exists():
            venv.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _pyenv_choices(version: str) -> list[dict[str, str]]:
    """Pyenv's shims hide all versions but the chosen one: choose each that fits."""
    if shutil.which("pyenv") is None:
        return []
    done = subprocess.run(
        ["pyenv", "versions", "--bare"], capture_output=True, text=True, check=False
    )
    fitting = [name for name in done.stdout.split() if name.startswith(f"{version}.")]
    return [{"PYENV_VERSION": name} for name in reversed(fitting)]
