"""Finds the way to a lake: a folder of this machine without Spark, anything else with it."""

import contextlib
from collections.abc import Iterator

from splitbrain.contracts.errors import UsageError
from splitbrain.spark_analysis.lake.store import LocalStore, Store, local_root

#: What Hadoop says of a scheme that nothing serves.
_UNKNOWN_SCHEME = "No FileSystem for scheme"


@contextlib.contextmanager
def open_store(uri: str) -> Iterator[Store]:
    """The files of a lake; a Spark session is started for a lake that is not on this machine.

    Args:
        uri: a folder, or any URI that Spark can open.

    Raises:
        UsageError: it names no place, a file, or a kind of place that Spark does not know.
        HarnessError: Spark did not start.
        OSError: it cannot be reached.
    """
    root = local_root(uri)
    if root is not None:
        if root.exists() and not root.is_dir():
            raise UsageError(f"the lake {uri} is a file", "Name a folder, or one to be made")
        yield LocalStore(root)
        return
    # pyspark and a JVM, for lakes elsewhere alone.
    from splitbrain.spark_analysis.lake.hadoop_store import HadoopStore
    from splitbrain.spark_analysis.session import spark_session

    with spark_session(application="splitbrain lake") as session:
        try:
            store = HadoopStore(session, uri)
        except OSError as error:
            if _UNKNOWN_SCHEME not in str(error):
                raise
            scheme = uri.partition(":")[0]
            raise UsageError(
                f"Spark knows no file system {scheme!r}, which the lake {uri} asks for",
                "Name a folder, or put the jar that serves it on Spark's class path "
                "(spark.jars in the spark-defaults.conf of SPARK_CONF_DIR)",
            ) from error
        yield store
