"""Lake on Spark's own file systems: HDFS, S3, Azure, Google, any that it can open.

Files are made on this machine and copied there by the JVM of a Spark session, with its settings and
credentials: the same session can then read every written file, without further set-up.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from splitbrain.history.scratch_folders import scratch_folder
from splitbrain.spark_analysis.lake.store import StoredFile


class HadoopStore:
    """Lake behind a URI, reached by a session, with its JVM and Hadoop settings.

    Raises:
        OSError: Spark knows no such file system, or cannot reach it.
    """

    def __init__(self, session: SparkSession, uri: str) -> None:
        self._session = session
        self._uri = uri.rstrip("/")
        context: Any = session.sparkContext
        self._jvm: Any = context._jvm  # noqa: SLF001 - pyspark gives no other way to Hadoop's files
        self._path = self._jvm.org.apache.hadoop.fs.Path
        with _as_os_error(f"reach {self._uri}"):
            settings = context._jsc.hadoopConfiguration()  # noqa: SLF001
            self._files = self._path(f"{self._uri}/").getFileSystem(settings)

    @property
    def uri(self) -> str:
        """Root without a slash behind it."""
        return self._uri

    def files(self, folder: str) -> Iterator[StoredFile]:
        """List all files below a folder."""
        with _as_os_error(f"list {self._uri}/{folder}"):
            root = self._at(folder)
            if not self._files.exists(root):
                return
            prefix = f"{self._files.makeQualified(self._at('')).toUri().getPath().rstrip('/')}/"
            listed = self._files.listFiles(root, True)
            while listed.hasNext():
                status = listed.next()
                path: str = status.getPath().toUri().getPath()
                yield StoredFile(
                    path.removeprefix(prefix),
                    int(status.getLen()),
                    status.getModificationTime() / 1000,
                )

    def read_all(self, folder: str) -> dict[str, bytes]:
        """Read each file in a folder, by the session's workers."""
        with _as_os_error(f"read {self._uri}/{folder}"):
            if not self._files.exists(self._at(folder)):
                return {}
            files = self._session.read.format("binaryFile").load(f"{self._uri}/{folder}")
            table = files.select("path", "content").toArrow().to_pydict()
        return {
            f"{folder}/{path.rpartition('/')[2]}": content
            for path, content in zip(table["path"], table["content"], strict=True)
        }

    def write(self, name: str, content: bytes) -> None:
        """Write a small file in one go."""
        with _as_os_error(f"write {self._uri}/{name}"):
            stream = self._files.create(self._at(name), False)
            try:
                stream.write(bytearray(content))
            finally:
                stream.close()

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """Yield a local file, copied into the lake at the end."""
        with scratch_folder("lake") as folder:
            path = folder / name.rpartition("/")[2]
            yield path
            with _as_os_error(f"write {self._uri}/{name}"):
                local = self._path(f"file://{path}")
                self._files.copyFromLocalFile(False, False, local, self._at(name))

    @contextlib.contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """Yield a local copy."""
        with scratch_folder("lake") as folder:
            path = folder / name.rpartition("/")[2]
            with _as_os_error(f"read {self._uri}/{name}"):
                local = self._path(f"file://{path}")
                # Raw: no checksum file beside the copy.
                self._files.copyToLocalFile(False, self._at(name), local, True)
            yield path

    def remove(self, name: str) -> None:
        """Remove a file."""
        with _as_os_error(f"remove {self._uri}/{name}"):
            self._files.delete(self._at(name), False)

    def _at(self, name: str) -> Any:
        return self._path(f"{self._uri}/{name}")


@contextlib.contextmanager
def _as_os_error(action: str) -> Iterator[None]:
    """Turn Hadoop's exceptions into ``OSError`` of one line."""
    try:
        yield
    except Py4JError as error:
        java = getattr(error, "java_exception", None)
        text = str(error if java is None else java.toString()).strip() or type(error).__name__
        raise OSError(f"could not {action}: {text.splitlines()[0]}") from error
