"""What an image of a node is made of, for runtimes that have images."""

import msgspec


class HostProgram(msgspec.Struct, frozen=True):
    """A program that nodes start where no image brings it."""

    #: As it is found on PATH.
    name: str
    #: Debian package that has it.
    package: str


class ImageSource(msgspec.Struct, frozen=True):
    """Recipe of one image; paths are relative to the project."""

    #: Name without a tag; ``NodeSpec.image`` refers to it, and the runtime adds the tag that is
    #: the digest of the sources as they are.
    name: str
    #: Folder below ``docker/`` that holds the Dockerfile and what it copies.
    folder: str
    #: Folders and files of the project that are added to the build's context, by their paths.
    sources: tuple[str, ...] = ()
    #: The folder's ``requirements.lock`` is fetched, unpacked and added as ``wheels``.
    has_wheels: bool = False
    #: The folder's ``packages.txt`` names Debian packages that the base gets besides its own.
    has_packages: bool = False
    #: The jars that the folder's ``pom.xml`` names are fetched, held to its ``jars.lock``, added as
    #: ``jars``.
    has_jars: bool = False
    #: What runtimes without images must find on this machine instead.
    programs: tuple[HostProgram, ...] = ()
