"""The images that runs need: found by the digest of what they are made from, else built.

An image's tag is the digest of its inputs, so a changed source makes a new image, an unchanged one
is found in a moment, and two checkouts on one engine never take each other's.
"""

import fcntl
import hashlib
import os
import platform
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import docker.errors
from docker import DockerClient

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.runtime import ImageSource
from splitbrain.history.scratch_folders import scratch_folder
from splitbrain.runtimes.docker import image_builds
from splitbrain.runtimes.docker.engine import engine_action
from splitbrain.runtimes.docker.jars import fetch_jars

#: The folder that rooms are in, ``docker/`` among them: of a clone, or of the installed package.
ROOT = Path(__file__).resolve().parents[2]

BASE = "splitbrain-base"
#: The pause container of a pod, with the nemesis' tools.
POD = ImageSource(
    "splitbrain-pod",
    "pod",
    sources=("runtimes/folder_files.py", "runtimes/system_programs.py", "runtimes/wall_clocks.py"),
    has_packages=True,
)
#: Lists the Debian packages that an image gets besides the base's own.
PACKAGES = "packages.txt"

_DIGEST_LENGTH = 16

#: Builds of one image that stay in the engine: enough to go back and forth between branches.
_BUILDS_KEPT = 5


def digest(parts: Iterable[str | Path]) -> str:
    """Digest of some words and of files' names and bytes, in the order given; hexadecimal.

    Folders stand for the files below them that are no caches.
    """
    hasher = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            hasher.update(f"word {part}\n".encode())
            continue
        for path in source_files(part):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            hasher.update(f"file {path.relative_to(part.parent)} {content}\n".encode())
    return hasher.hexdigest()[:_DIGEST_LENGTH]


def source_files(path: Path) -> list[Path]:
    """Return the file itself, or the files below a folder, sorted, without caches."""
    if path.is_file():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".pyc"
    )


class Images:
    """Finds or builds the project's images in one engine."""

    def __init__(self, client: DockerClient, root: Path = ROOT) -> None:
        self._client = client
        self._docker = root / "docker"
        self._root = root
        self._cache = _cache_of(root)
        if not (self._docker / "base.sh").is_file():
            raise HarnessError(
                "build the images",
                str(self._docker),
                "the project's Dockerfiles are not there",
                "Install splitbrain anew, or run from a clone of the project",
            )

    def tags(self, sources: Sequence[ImageSource]) -> Mapping[str, str]:
        """Image name to full tag, of these and the pod's, from the sources as they are now."""
        return {source.name: self._tag(source) for source in (POD, *sources)}

    def ensure(self, sources: Sequence[ImageSource]) -> Mapping[str, str]:
        """Make sure of these images and of the pod's; image name to full tag."""
        tags = self.tags(sources)
        if all(self.is_there(tag) for tag in tags.values()):
            return tags
        self._cache.mkdir(parents=True, exist_ok=True)
        with (self._cache / "images.lock").open("w") as lock, scratch_folder("seed") as folder:
            # Whoever comes second waits, and finds what the first one made.
            fcntl.flock(lock, fcntl.LOCK_EX)
            seed = folder / "debian.tar"
            tags = {source.name: self._made(source, seed) for source in (POD, *sources)}
            for name in (BASE, *(name for name, tag in tags.items() if name != tag)):
                image_builds.prune(self._client, name, keep=_BUILDS_KEPT)
            return tags

    def _tag(self, source: ImageSource) -> str:
        if not source.folder:
            return source.name
        sources = [self._root / name for name in source.sources]
        inputs = [self._base_tag(source), self._docker / source.folder, *sources, *source.build]
        return f"{source.name}:{digest(inputs)}"

    def _base_tag(self, source: ImageSource) -> str:
        inputs = [platform.machine(), self._docker / "base.sh", self._docker / "base"]
        return f"{BASE}:{digest([*inputs, *self._packages(source)])}"

    def _packages(self, source: ImageSource) -> list[Path]:
        return [self._docker / source.folder / PACKAGES] if source.has_packages else []

    def is_there(self, tag: str) -> bool:
        """Whether the engine has an image of this tag."""
        with engine_action("look for an image", tag):
            try:
                self._client.images.get(tag)
            except docker.errors.ImageNotFound:
                return False
        return True

    def _made(self, source: ImageSource, seed: Path) -> str:
        """``seed``: where the file system is, or is put, that all bases begin with."""
        tag = self._tag(source)
        if self.is_there(tag):
            return tag
        if not source.folder:
            raise HarnessError(
                "find an image",
                tag,
                "it is not in the engine",
                "Pull or build it under this name: a run fetches nothing",
            )
        folder = origin = self._docker / source.folder
        if not (folder / "Dockerfile").is_file():
            raise HarnessError(
                "build an image",
                source.name,
                f"{folder} holds no Dockerfile",
                "Name its folder by an absolute path: "
                'str(Path(__file__).resolve().parent / "image") is one beside the adapter',
            )
        base = self._base_tag(source)
        if not self.is_there(base):
            with _announced(base):
                self._make_base(base, seed, self._packages(source))
        with _announced(tag):
            extra = {name: self._root / name for name in source.sources}
            if source.has_wheels:
                lock = folder / "requirements.lock"
                extra["wheels"] = image_builds.fetch_wheels(lock, self._cache)
            if source.jars is not None:
                extra["jars"] = fetch_jars(folder / source.jars, self._cache)
            with ExitStack() as scratch:
                if source.build:
                    copy = scratch.enter_context(scratch_folder("build")) / folder.name
                    folder = image_builds.built(folder, copy, source.build)
                image_builds.build(self._client, tag, base, folder, extra, origin=origin)
        return tag

    def _make_base(self, tag: str, seed: Path, packages: Sequence[Path]) -> None:
        folder = self._docker / "base"
        if image_builds.registry_answers(self._client):
            try:
                image_builds.build_base(self._client, tag, folder, packages)
            except HarnessError as error:
                print(f"{error}; making the base image on this machine instead", flush=True)
            else:
                return
        image_builds.import_base(self._client, tag, self._docker / "base.sh", seed, packages)


def _cache_of(root: Path) -> Path:
    """Return the folder of what builds fetched: the clone's own, else the user's."""
    if (root / "pyproject.toml").is_file():
        return root / ".cache"
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "splitbrain"


@contextmanager
def _announced(tag: str) -> Generator[None]:
    print(f"making image {tag}", flush=True)
    began = time.monotonic()
    try:
        yield
    finally:
        print(f"image {tag}: {time.monotonic() - began:.1f} s", flush=True)
