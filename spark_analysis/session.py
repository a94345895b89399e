"""Start of Spark, the only one: an embedded local session, or the driver of a cluster's.

Starting takes 4 to 5 s on an idle machine, so callers start it after the final reads and share one
session. A local one must never listen on another interface than loopback; the driver of a cluster
listens on the one address that leads to the master. Leaves files in its own temporary folder alone,
and changes the environment of this process for the start alone.
"""

import contextlib
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import HarnessError
from splitbrain.history.scratch_folders import scratch_folder
from splitbrain.spark_analysis.class_archive import archive_options
from splitbrain.spark_analysis.jdk import find_jdk

#: Environment variable with the default master for jobs.
MASTER_VARIABLE: Final = "SPLITBRAIN_SPARK_MASTER"
_LOOPBACK: Final = "127.0.0.1"
_LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")
#: End of the JVM's output that is searched for the reason of a failed start.
_OUTPUT_TAIL_BYTES: Final = 4096
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_DEFAULT_MASTER: Final = "local[2]"
#: Rows in all tables that Spark reads, up to which they are few (``settings_for``).
FEW_ROWS_MAX: Final = 200_000
_FOR_FEW_ROWS: Final = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    # Everything fits one partition; there is nothing to adapt.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # To send rows to workers is a job of its own.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
}
#: Time for a JVM to end by itself; it has nothing left to do.
_JVM_END_TIMEOUT_S: Final = 30.0


@contextlib.contextmanager
def spark_session(
    *,
    application: str = "splitbrain",
    master: str | None = None,
    memory_mib: int = 1024,
    short: bool = True,
    settings: Mapping[str, str] | None = None,
    java_options: Sequence[str] = (),
) -> Iterator[SparkSession]:
    """Yield a Spark session; at the end stop it, end its JVM and remove its files.

    If this process has a session already, that one is handed out and left running. The jobs are the
    same on a cluster, whose workers need the packages of ``docker/spark/requirements.in`` and get
    the project's own code from here. ``SPARK_CONF_DIR`` counts as with any Spark.

    Args:
        application: name shown in Spark's own logs.
        master: Spark's master address; None: that of ``SPLITBRAIN_SPARK_MASTER``, else local.
        memory_mib: heap of the JVM, on a cluster of the driver's.
        short: for runs of seconds: compile quickly rather than well, collect garbage in one
            thread. False for large inputs.
        settings: further Spark settings by their own names.
        java_options: further options of the JVM.

    Raises:
        HarnessError: no usable Java, or Spark did not start.
    """
    if (running := SparkSession.getActiveSession()) is not None:
        yield running
        return
    master = master or os.environ.get(MASTER_VARIABLE) or _DEFAULT_MASTER
    with scratch_folder("spark") as scratch:
        own_address = _LOOPBACK if is_local(master) else address_towards(master)
        everything = _settings(scratch, memory_mib, own_address, short=short)
        everything |= dict(settings or {})
        # The JVM runs before the session is whole: a failed or interrupted start ends it too.
        try:
            log = scratch / "jvm.log"
            session = _start(application, master, own_address, everything, java_options, log)
            try:
                if not is_local(master):
                    session.sparkContext.addPyFile(str(our_code(scratch)))
                yield session
            finally:
                session.stop()
        finally:
            _end_jvm()


def are_few(rows: int) -> bool:
    """Whether to plan queries on so many rows takes longer than to carry them out."""
    return rows <= FEW_ROWS_MAX


@contextlib.contextmanager
def settings_for(session: SparkSession, rows: int) -> Iterator[None]:
    """Have the queries of this block on so many rows interpreted, in one piece, where they are few.

    To compile the queries of an analysis takes longer than to run them on a short run's rows, and
    so does each stage.
    """
    if not are_few(rows):
        yield
        return
    usual = {name: str(session.conf.get(name)) for name in _FOR_FEW_ROWS}
    try:
        for name, value in _FOR_FEW_ROWS.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in usual.items():
            session.conf.set(name, value)


@contextlib.contextmanager
def one_sentence(action: str, target: str, next_step: str) -> Iterator[None]:
    """Turn an error of Spark or a disk inside the block into a ``HarnessError`` of one sentence."""
    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise HarnessError(action, target, first_line.rstrip("."), next_step) from error


def _settings(
    scratch: Path, memory_mib: int, own_address: str | None, *, short: bool
) -> dict[str, str]:
    """Return Spark's settings; the two sets differ in speed only, never in results."""
    java_options = [f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}", "-Duser.timezone=UTC"]
    # Spark's own temporary files, native libraries included.
    java_options.append(f"-Djava.io.tmpdir={scratch}")
    if short:
        java_options += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        # Spark's classes take 150 MB; a JVM that does not know stops to look for unused ones.
        java_options += ["-XX:MetaspaceSize=256m", "-Xmn256m"]
    else:
        # Pauses harm nobody here, and the work is a tenth less than with the default.
        java_options.append("-XX:+UseParallelGC")
    addresses = (
        {}
        if own_address is None
        else {"spark.driver.bindAddress": own_address, "spark.driver.host": own_address}
    )
    return addresses | {
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.driver.memory": f"{memory_mib}m",
        _JAVA_OPTIONS: " ".join(java_options),
        "spark.local.dir": str(scratch),
        "spark.sql.adaptive.enabled": "true",
        # Looks up the caller's line at each column expression; a third of the time to build a plan.
        "spark.sql.dataFrameQueryContext.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Greatest number of collected groups in memory before they are sorted, not 128.
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
        # Offsets that are named one by one.
        "spark.sql.parquet.pushdown.inFilterThreshold": "1000",
        "spark.sql.session.timeZone": "UTC",
        # One wave per core for a short run; adaptive execution merges what is small.
        "spark.sql.shuffle.partitions": "4" if short else "16",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _start(
    application: str,
    master: str,
    own_address: str | None,
    settings: Mapping[str, str],
    java_options: Sequence[str],
    jvm_log: Path,
) -> SparkSession:
    jdk = find_jdk(os.environ)
    options = [settings[_JAVA_OPTIONS], *archive_options(jdk, os.environ), *java_options]
    settings = {**settings, _JAVA_OPTIONS: " ".join(options)}
    environment = {
        "JAVA_HOME": str(jdk.home),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Another Spark on this machine would not fit this pyspark.
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
    }
    if own_address is not None:
        # The second silences the shell scripts' remark about the loopback address.
        environment |= {"SPARK_LOCAL_IP": own_address, "SPARK_LOCAL_HOSTNAME": own_address}
    if is_local(master):
        environment["PYSPARK_PYTHON"] = sys.executable
    else:
        # A path of this machine need not be one of the workers'.
        environment["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", "python3")
    builder = SparkSession.builder.master(master).appName(application)
    for key, value in settings.items():
        builder = builder.config(key, value)
    # pyspark would print each failed query with its whole plan, besides raising it.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL + 1)
    others = _children()
    try:
        with _environment(environment), _standard_error_to(jvm_log), _ending_strays(others):
            return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        advice = (
            "Set JAVA_HOME to another JDK of version 17 or later, or free memory, and run "
            "splitbrain analyze again."
            if is_local(master)
            else f"Look whether a master of Spark {pyspark.__version__} answers there, or unset "
            f"{MASTER_VARIABLE}."
        )
        raise HarnessError(
            "start Spark",
            f"{master}, Java {jdk.version} at {jdk.home}, found by {jdk.source}",
            _error_line(jvm_log) or str(error).splitlines()[0].rstrip("."),
            advice,
        ) from error


@contextlib.contextmanager
def _ending_strays(others: AbstractSet[int]) -> Iterator[None]:
    """Kill the children of a failed or interrupted start, except those in ``others``.

    pyspark forgets a JVM that has not yet reported its port. Such a JVM never ends by itself: its
    report fails, and it goes on listening.
    """
    try:
        yield
    except BaseException:
        for child in _children() - others:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        raise


def _children() -> AbstractSet[int]:
    """Return ids of this process's children; empty where there is no ``/proc``."""
    found: set[int] = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        # A child may end meanwhile.
        with contextlib.suppress(OSError):
            # The program's name stands in parentheses and may hold anything.
            if int(status.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(status.parent.name))
    return found


def _end_jvm() -> None:
    """End the JVM, which would otherwise hold its heap and files until this process ends.

    pyspark has no public way; it starts a new JVM for the next session once these are None.
    """
    gateway = SparkContext._gateway  # noqa: SLF001
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    if gateway is None:
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if isinstance(process, subprocess.Popen):
        # The JVM watches its standard input and leaves when that is closed.
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(_JVM_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _standard_error_to(path: Path) -> Iterator[None]:
    """Redirect the standard error of children started meanwhile to a file.

    The JVM prints remarks about its modules that no setting silences; pyspark gives no other way to
    redirect them.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(target, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
        os.close(target)


def _error_line(jvm_log: Path) -> str | None:
    """Return the line of a failed JVM's output that most likely tells why."""
    try:
        tail = jvm_log.read_bytes()[-_OUTPUT_TAIL_BYTES:].decode("utf-8", "replace")
    except OSError:
        return None
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line or "xception" in line]
    chosen = errors or [line for line in lines if not line.startswith("WARNING")]
    return chosen[0].rstrip(".") if chosen else None


#: Rooms that jobs import on the workers.
_SHIPPED: Final = ("contracts", "plugins", "history", "checker", "spark_analysis")
_ROOT: Final = Path(__file__).resolve().parents[1]
_STANDALONE: Final = re.compile(r"spark://([^:,/]+):(\d+)(?:,[^/]*)?")


def is_local(master: str) -> bool:
    """Return whether executors are threads of the driver's own JVM."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def address_towards(master: str) -> str | None:
    """Return this machine's address on the way to a standalone master; None: Spark decides.

    Raises:
        HarnessError: no master of this name can be reached from here.
    """
    match = _STANDALONE.fullmatch(master)
    if match is None:
        return None
    host, port = match.group(1), int(match.group(2))
    try:
        # Connecting a datagram socket chooses a route and sends nothing.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, port))
            return str(probe.getsockname()[0])
    except (OSError, OverflowError) as error:
        raise HarnessError(
            "find the way to Spark's master",
            master,
            getattr(error, "strerror", None) or str(error),
            "Name a master that this machine can reach, as spark://HOST:PORT, or none",
        ) from error


def our_code(folder: Path) -> Path:
    """Make an archive in ``folder`` of the rooms that jobs import; Python can import from it."""
    archive = folder / f"{PACKAGE}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writer:
        writer.writestr(f"{PACKAGE}/__init__.py", "")
        for room in _SHIPPED:
            for path in sorted((_ROOT / room).rglob("*.py")):
                writer.write(path, f"{PACKAGE}/{path.relative_to(_ROOT).as_posix()}")
    return archive
