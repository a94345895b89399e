"""The images that runs need: found by the digest of what they are made from, else built.

An image's tag is the digest of its inputs, so a changed source makes a new image and an unchanged
one is found in a moment. ``:current`` is a second tag on the newest; adapters name that one.
``python -m runtimes.docker.images`` makes all of them sure.

It needs the project's source tree beside it and never pushes anything anywhere.
"""

import fcntl
import hashlib
import platform
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import docker.errors
from docker import DockerClient

from contracts.errors import HarnessError
from runtimes.docker import image_builds
from runtimes.docker.engine import connect, engine_action

ROOT = Path(__file__).resolve().parents[2]

BASE = "splitbrain-base"
POD = "splitbrain-pod"
KRAFT = "splitbrain-kraft"

#: Tag of the newest build of an image, for those who do not care which.
CURRENT = "current"
POD_IMAGE = f"{POD}:{CURRENT}"
KRAFT_IMAGE = f"{KRAFT}:{CURRENT}"

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
    """The file itself, or the files below a folder, sorted, without caches."""
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
        if not (self._docker / "base.sh").is_file():
            raise HarnessError(
                "build the images",
                str(self._docker),
                "the project's Dockerfiles are not there",
                "Run from a clone of the project",
            )

    def tags(self) -> Mapping[str, str]:
        """Image name to full tag, derived from the sources as they are now."""
        base = f"{BASE}:" + digest(
            [platform.machine(), self._docker / "base.sh", self._docker / "base"]
        )
        pod = f"{POD}:" + digest([base, self._docker / "pod"])
        kraft = f"{KRAFT}:" + digest([base, self._docker / "kraft", self._root / "nodes"])
        return {BASE: base, POD: pod, KRAFT: kraft}

    def ensure(self) -> Mapping[str, str]:
        """Make sure of all images and of their ``:current`` tags; image name to full tag.

        Raises:
            HarnessError: one of them could be neither found nor built.
        """
        tags = self.tags()
        if all(self._found(name, tags[name]) for name in (POD, KRAFT)):
            return tags
        cache = self._root / ".cache"
        cache.mkdir(exist_ok=True)
        with (cache / "images.lock").open("w") as lock:
            # Whoever comes second waits, and finds what the first one made.
            fcntl.flock(lock, fcntl.LOCK_EX)
            return self._build_missing()

    def _build_missing(self) -> Mapping[str, str]:
        tags = self.tags()
        if not self._found(BASE, tags[BASE]):
            self._build_base(tags[BASE])
            tags = self.tags()  # that took a while, and the sources may have changed
        if not self._found(POD, tags[POD]):
            with _told(tags[POD]):
                image_builds.build(self._client, tags[POD], tags[BASE], self._docker / "pod", {})
            self._found(POD, tags[POD])
        if not self._found(KRAFT, tags[KRAFT]):
            with _told(tags[KRAFT]):
                self._build_kraft(tags)
            self._found(KRAFT, tags[KRAFT])
        for name in (BASE, POD, KRAFT):
            image_builds.prune(self._client, name, keep=_BUILDS_KEPT)
        return tags

    def _found(self, name: str, tag: str) -> bool:
        """Whether the engine has it; if so it is now the current one."""
        with engine_action("look for an image", tag):
            try:
                image = self._client.images.get(tag)
            except docker.errors.ImageNotFound:
                return False
            if f"{name}:{CURRENT}" not in image.tags:
                image.tag(name, CURRENT)
        return True

    def _build_base(self, tag: str) -> None:
        with _told(tag):
            if not self._built_from_public_base(tag):
                image_builds.import_base(self._client, tag, self._docker / "base.sh")
        self._found(BASE, tag)

    def _built_from_public_base(self, tag: str) -> bool:
        """Whether a registry gave the public base and a build could add packages to it."""
        if not image_builds.registry_answers(self._client):
            return False
        try:
            image_builds.build(self._client, tag, None, self._docker / "base", {})
        except HarnessError as error:
            print(f"{error}; making the base image on this machine instead", flush=True)
            return False
        return True

    def _build_kraft(self, tags: Mapping[str, str]) -> None:
        cache = self._root / ".cache"
        wheels = image_builds.fetch_wheels(self._docker / "kraft" / "requirements.lock", cache)
        image_builds.build(
            self._client,
            tags[KRAFT],
            tags[BASE],
            self._docker / "kraft",
            {"wheels": wheels, "nodes": self._root / "nodes"},
        )


class _told:  # noqa: N801 - reads as a statement
    """Says what is being made, and how long it took."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._began = 0.0

    def __enter__(self) -> None:
        print(f"making image {self._tag}", flush=True)
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        print(f"image {self._tag}: {time.monotonic() - self._began:.1f} s", flush=True)


def main() -> int:
    """Make sure of all images; prints their tags."""
    try:
        client = connect()
        try:
            tags = Images(client).ensure()
        finally:
            client.close()
    except HarnessError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print("images: " + ", ".join(tags.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
