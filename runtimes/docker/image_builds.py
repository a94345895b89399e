"""How an image is made: from a Dockerfile and a context, or imported from a file system archive.

Builds reach no network of their own unless an image registry answers: what they need is fetched on
the host, by ordinary clients, with hashes where there are any.
"""

import hashlib
import importlib.util
import io
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker.errors
import requests.exceptions
from docker import DockerClient

from splitbrain.contracts.errors import HarnessError
from splitbrain.history.scratch_folders import scratch_folder
from splitbrain.runtimes.docker.engine import engine_action

#: Source of the base where a registry answers.
_PUBLIC_BASE = "debian:bookworm-slim"

#: A registry that has not delivered the small public image by then is none; making the base on
#: this machine takes about as long.
REGISTRY_PATIENCE_S = 20.0

#: Carried by every image of ours.
IMAGE_LABEL = "splitbrain.image"

#: Python in the images: Debian bookworm's. Wheels are chosen for it, not for the host's.
IMAGE_PYTHON = "3.11"
#: Lines of a failed build that are shown: a package that fails to install says why some way up.
_LINES_SHOWN = 40
#: Engines color what a build writes to its standard error.
_COLOR = re.compile(r"\x1b\[[\d;]*m")
#: Minor version of its C library, and of the oldest that packages are made for.
_GLIBC, _OLDEST_GLIBC = 36, 5


def registry_answers(client: DockerClient) -> bool:
    """Whether the public base image is here or can be pulled soon; pulls it."""
    outcome: list[bool] = []

    def pull() -> None:
        with suppress(docker.errors.DockerException, requests.exceptions.RequestException):
            try:
                client.images.get(_PUBLIC_BASE)
            except docker.errors.ImageNotFound:
                client.images.pull(_PUBLIC_BASE)
            outcome.append(True)

    puller = threading.Thread(target=pull, name="pull-base", daemon=True)
    puller.start()
    puller.join(REGISTRY_PATIENCE_S)
    return bool(outcome)


def build_base(client: DockerClient, tag: str, folder: Path, packages: Sequence[Path]) -> None:
    """Build ``folder/Dockerfile`` on the public base, with the packages of further lists."""
    with scratch_folder("base") as temporary:
        context = temporary / folder.name
        shutil.copytree(folder, context)
        with (context / "packages.txt").open("a") as listed:
            listed.writelines(further.read_text() for further in packages)
        build(client, tag, None, context, {})


def import_base(
    client: DockerClient, tag: str, script: Path, seed: Path, packages: Sequence[Path]
) -> None:
    """Make the base's file system with ``script`` and import it as ``tag``.

    The script is given the paths of the seed, which it makes unless it is there, and of the archive
    and lists of Debian packages besides the base's own.
    """
    with scratch_folder("base") as folder:
        archive = folder / "base.tar"
        command = ["bash", str(script), str(seed), str(archive), *map(str, packages)]
        run(command, "make the base image", tag)
        repository, version = tag.split(":")
        with engine_action("import the base image", tag), archive.open("rb") as stream:
            api: Any = client.api
            api.import_image_from_data(
                stream,
                repository=repository,
                tag=version,
                changes=["ENV LC_ALL=C.UTF-8", f"LABEL {IMAGE_LABEL}=base"],
            )
            client.images.get(tag)


def fetch_wheels(requirements: Path, cache: Path) -> Path:
    """Return a folder with the packages of a lock file, unpacked, for the images' Python; cached.

    Raises:
        HarnessError: a package could not be fetched or does not have the locked hash.
    """
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    key = hashlib.sha256(requirements.read_bytes() + machine.encode()).hexdigest()[:16]
    folder = cache / "wheels" / key
    if folder.is_dir():
        return folder
    unfinished = folder.with_name(f"{key}-unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    command = [
        *_installer(machine), "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:",
        "--python-version", IMAGE_PYTHON,
        "--target", str(unfinished), "--requirement", str(requirements),
    ]  # fmt: skip
    run(command, "fetch the image's Python packages", requirements.name)
    unfinished.rename(folder)
    return folder


def _installer(machine: str) -> list[str]:
    """Return the command that installs packages for the images' system: uv's, else pip's."""
    if importlib.util.find_spec("uv") is not None:
        platforms = ["--link-mode", "copy", "--python-platform", f"{machine}-manylinux_2_{_GLIBC}"]
        return [sys.executable, "-P", "-m", "uv", "pip", "install", *platforms]
    # pip takes a platform for that one alone: a package for an older system has another name.
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(_GLIBC, _OLDEST_GLIBC - 1, -1)]
    tags += [f"{name}_{machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1")]
    named = [word for tag in tags for word in ("--platform", tag)]
    return [sys.executable, "-P", "-m", "pip", "install", "--disable-pip-version-check", *named]


def build(
    client: DockerClient,
    tag: str,
    base: str | None,
    folder: Path,
    extra: Mapping[str, Path],
    *,
    origin: Path | None = None,
) -> None:
    """Build ``folder/Dockerfile`` with the folder's files and ``extra`` (name to path) as context.

    ``base`` is the value of the build argument ``BASE``, None where the Dockerfile has none;
    ``origin`` is what the folder is a copy of.

    Raises:
        HarnessError: it failed; the last lines that it printed are printed before.
    """
    context = _context(folder, extra)
    lines: list[str] = []
    with engine_action("build an image", tag):
        stream: Any = client.api.build(
            fileobj=context,
            custom_context=True,
            tag=tag,
            buildargs={"BASE": base} if base else {},
            rm=True,
            forcerm=True,
            decode=True,
        )
        for message in stream:
            if "error" in message:
                shown = lines[-_LINES_SHOWN:]
                print("\n".join(f"  {line}" for line in shown), flush=True)
                raise HarnessError(
                    "build an image",
                    tag,
                    str(message["error"]).strip(),
                    f"Mend {origin or folder}/Dockerfile"
                    + ("; above are the last lines that the build printed" if shown else ""),
                )
            text = _COLOR.sub("", str(message.get("stream", "")))
            lines += filter(str.strip, text.splitlines())


def built(folder: Path, copy: Path, command: Sequence[str]) -> Path:
    """Return the copy of a folder in which a command of this machine has made what is missing.

    Raises:
        HarnessError: there is no such program, or it failed.
    """
    shutil.copytree(folder, copy)
    run(list(command), "build what an image is made of", f"{' '.join(command)} in {folder}", copy)
    return copy


def prune(client: DockerClient, name: str, keep: int) -> None:
    """Forget all but the newest ``keep`` builds of an image; one that a container uses stays.

    Nobody else may be building: what a build is about to name has no name yet.
    """
    with engine_action("remove superseded images", name):
        images = client.images.list(name=name)
        images.sort(key=lambda image: str(image.attrs["Created"]), reverse=True)
        for image in images[keep:]:
            for tag in image.tags:
                with suppress(docker.errors.APIError):
                    client.images.remove(tag)
        api: Any = client.api
        api.prune_images(filters={"dangling": True, "label": IMAGE_LABEL})


def _context(folder: Path, extra: Mapping[str, Path]) -> io.BytesIO:
    """Return a build context: reproducible owners and times, no caches."""

    def cleaned(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if "__pycache__" in entry.name:
            return None
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = 0
        return entry

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, arcname=path.name, filter=cleaned)
        for name, path in sorted(extra.items()):
            archive.add(path, arcname=name, filter=cleaned)
    buffer.seek(0)
    return buffer


def run(command: list[str], action: str, target: str, folder: Path | None = None) -> None:
    """Run a program of this machine; HarnessError with the last lines that it printed."""
    try:
        finished = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    except OSError as error:
        problem = f"{command[0]} cannot be started: {error.strerror}"
        raise HarnessError(action, target, problem, f"Install {command[0]}") from error
    if finished.returncode != 0:
        errors, output = (_COLOR.sub("", text) for text in (finished.stderr, finished.stdout))
        lines = (errors.strip() or output.strip()).splitlines()[-8:]
        raise HarnessError(
            action,
            target,
            " | ".join(lines) or f"exit code {finished.returncode}",
            "Mend what the message names and try again",
        )
