"""The looks of ``splitbrain doctor``: engine, images, kernel, runtimes, Java, disk and so on.

Each asks the same code that a run would use, where there is such code, so that the doctor never
says what a run contradicts. The kernel is asked by doing, in a namespace that is thrown away.
"""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.harness.cli import fault_probes
from splitbrain.harness.cli.doctor import MAIN_JOB, Finding, Look, Probe
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.pool.child_environment import child_environment
from splitbrain.history.spark_extra import COMMAND, has_spark

_GIB = 1 << 30
#: Below these a run of the main job is at risk.
_MEMORY_MIN_GIB = 1.0
_DISK_MIN_GIB = 1.0
_PYTHON_MIN = (3, 11)
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_COMMAND_LIMIT_S = 10.0
#: A container is made for it.
_DISKS_LIMIT_S = 60.0
#: Starting a session takes seconds, a minute on a busy machine.
_SPARK_LIMIT_S = 180.0
_SESSION = f"from {PACKAGE}.spark_analysis.session import spark_session\nwith spark_session(): pass"

#: Faculty, the program that shows it, what it does there, and what is lost without it.
_FACULTIES = (
    ("namespaces", ("true",), "containers and the local runtime's cuts need them"),
    ("iptables", ("iptables", "--wait", "-A", "INPUT", "-j", "DROP"), "partitions use it"),
)


def machine_probes(runs_folder: Path, *, spark: bool) -> list[Probe]:
    """Every look there is, in the order in which findings are shown."""
    from splitbrain.runtimes.registry import runtime_names

    probes = [
        Probe("python", look_at_python),
        Probe("engine", look_at_engine),
        Probe("images", look_at_images),
        Probe("disks", look_at_disks, _DISKS_LIMIT_S),
        *(Probe(f"runtime {name}", _look_at(name)) for name in runtime_names()),
        Probe("packages", look_at_packages),
        Probe("programs", look_at_programs),
        Probe("kernel", look_at_kernel),
        Probe("links", fault_probes.look_at_link_means, _DISKS_LIMIT_S),
        Probe("libfaketime", fault_probes.look_at_clock_library),
        Probe("control groups", fault_probes.look_at_control_groups),
        Probe("disk parts", fault_probes.look_at_disk_parts),
        Probe("java", look_at_java),
        Probe("report assets", look_at_assets),
        Probe("browser", look_at_browser),
        Probe("memory", look_at_memory),
        Probe("disk", lambda: look_at_disk(runs_folder)),
    ]
    if spark:
        probes.append(Probe("spark session", look_at_spark_session, _SPARK_LIMIT_S))
    return probes


def look_at_python() -> Sequence[Finding]:
    """Return the interpreter that runs this."""
    version = platform.python_version()
    problem = version if sys.version_info < _PYTHON_MIN else None
    next_step = "Install Python 3.11 or later and `make setup`"
    return [Finding.tried("python", problem, version, next_step)]


def look_at_engine() -> Sequence[Finding]:
    """Return the container engine, by its version."""
    from splitbrain.runtimes.docker.engine import connect, engine_action

    with closing(connect()) as client, engine_action("ask the engine for its version", "docker"):
        answer = client.version()
    where = f"{answer.get('Os', 'unknown')}/{answer.get('Arch', 'unknown')}"
    return [Finding("engine", "yes", f"{answer.get('Version', 'of no version')} on {where}")]


def look_at_images() -> Sequence[Finding]:
    """Tell which images that runs need are in the engine."""
    from splitbrain.runtimes.docker.engine import connect
    from splitbrain.runtimes.docker.images import Images
    from splitbrain.systems import registry as systems

    with closing(connect()) as client:
        images = Images(client)
        sources = [source for system in systems.usable_systems() for source in system.images()]
        tags = images.tags(sources)
        missing = sorted(name for name, tag in tags.items() if not images.is_there(tag))
    problem = f"not built from the present sources: {', '.join(missing)}" if missing else None
    next_step = "`make images` builds them, and so does the first run"
    return [Finding.tried("images", problem, ", ".join(sorted(tags)), next_step)]


def look_at_disks() -> Sequence[Finding]:
    """Whether the engine lets nodes have disks of their own, tried with a small one."""
    from splitbrain.runtimes.docker.disks import why_no_disks

    problem = why_no_disks()
    problem = printable(problem) if problem else None
    next_step = "Only power cuts and bad disks in containers need them"
    return [
        Finding.tried(
            "disks", problem, "nodes in containers can have disks of their own", next_step
        )
    ]


def _look_at(runtime_name: str) -> Look:
    def look() -> Sequence[Finding]:
        from splitbrain.runtimes.registry import SIMULATED, capabilities

        name = f"runtime {runtime_name}"
        try:
            there = capabilities(runtime_name)
        except HarnessError as error:
            return [Finding(name, "no", error.problem, error.next_step, main_job=False)]
        can = ", ".join(sorted(there)) or "nothing"
        if runtime_name == SIMULATED:
            # It always can, and is no evidence of real processes: the main job is not for it.
            return [Finding(name, "yes", f"{can}; needs no engine")]
        able = there >= MAIN_JOB
        lacks = "" if "partition" in there else "Name faults without partition in --nemesis"
        return [Finding(name, "yes", can, lacks, main_job=able)]

    return look


def look_at_packages() -> Sequence[Finding]:
    """Tell what installed packages offer besides systems, and what of it cannot be used."""
    from splitbrain.checker.models.registry import OFFERS as MODELS
    from splitbrain.checker.names import OFFERS as CHECKERS
    from splitbrain.nemesis.kinds import OFFERS as FAULTS
    from splitbrain.workloads.workload import OFFERS as WORKLOADS

    findings: list[Finding] = []
    for offers in (WORKLOADS, CHECKERS, MODELS, FAULTS):
        for name in sorted(offers.names()):
            title = f"{offers.noun} {name}"
            try:
                offers.offered(name)
            except UsageError as error:
                findings.append(Finding(title, "no", error.problem, error.next_step))
            else:
                findings.append(Finding(title, "yes", "offered by a package"))
    return findings


def look_at_programs() -> Sequence[Finding]:
    """Tell what nodes start from where no image brings it, one finding for each such system."""
    from splitbrain.runtimes.local.mode import how_to_get, missing_programs
    from splitbrain.systems import registry as systems

    findings: list[Finding] = []
    for name, found in systems.each_system():
        if isinstance(found, UsageError):
            findings.append(Finding(f"system {name}", "no", found.problem, found.next_step))
            continue
        images = found.images()
        wanted = [program.name for image in images for program in image.programs]
        if not wanted:
            continue
        missing = missing_programs(images)
        names = ", ".join(program.name for program in missing)
        problem = f"not on PATH: {names}" if missing else None
        next_step = f"{how_to_get(missing)}; only the local runtime needs it" if missing else ""
        finding = Finding.tried(f"programs of {name}", problem, ", ".join(wanted), next_step)
        findings.append(finding)
    return findings


def look_at_kernel() -> Sequence[Finding]:
    """Tell what this machine's kernel can do, each tried in a namespace of its own."""
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    unshare = ["unshare", *own, "--net"]
    return [
        Finding.tried(f"kernel: {name}", _refusal([*unshare, *command]), use, f"Only {use}")
        for name, command, use in _FACULTIES
    ]


def _refusal(command: list[str]) -> str | None:
    """Why the command cannot be carried out, None if it can."""
    for program in (command[0], next(word for word in command[1:] if not word.startswith("-"))):
        if shutil.which(program) is None:
            return f"there is no program {program} to try it with"
    try:
        return _problem(command, _COMMAND_LIMIT_S, "refused")
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)


def _problem(command: Sequence[str], limit_s: float, ended: str) -> str | None:
    """Carry out a command; return the last line of its errors, or its exit code, where it fails."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=limit_s,
        env=child_environment(),
    )
    if done.returncode == 0:
        return None
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return printable(lines[-1]) if lines else f"{ended} with code {done.returncode}"


def look_at_java() -> Sequence[Finding]:
    """Return the Java that Spark would run on, and Spark's own version."""
    if not has_spark():
        problem = "the extra [spark] is not installed; verdicts need none"
        return [Finding("java", "no", problem, COMMAND)]
    from splitbrain.spark_analysis.jdk import find_jdk

    found = find_jdk(os.environ)
    spark = f"Spark {importlib.metadata.version('pyspark')}"
    return [Finding("java", "yes", f"{found.version}, from {found.source}, for {spark}")]


def look_at_spark_session() -> Sequence[Finding]:
    """Start a session and end it, in a child process."""
    if not has_spark():
        return [Finding("spark session", "no", "the extra [spark] is not installed", COMMAND)]
    next_step = "Runs are judged without it: --no-analyze"
    try:
        problem = _problem([sys.executable, "-P", "-c", _SESSION], _SPARK_LIMIT_S, "it ended")
    except subprocess.TimeoutExpired:
        problem = f"it did not start within {_SPARK_LIMIT_S:g} s"
        next_step = "Use --no-analyze, or a quieter machine"
    return [Finding.tried("spark session", problem, "started and ended", next_step)]


def look_at_assets() -> Sequence[Finding]:
    """Tell whether the report page's parts are there."""
    from splitbrain.harness.report.page_assets import ASSETS, VENDOR

    missing = [
        path.name
        for path in (ASSETS / "report.html.j2", VENDOR / "uPlot.iife.min.js")
        if not path.is_file()
    ]
    problem = f"missing: {', '.join(missing)}" if missing else None
    next_step = "`make setup` fetches them; reports have plain pictures until then"
    return [Finding.tried("report assets", problem, "charts of reports", next_step)]


def look_at_browser() -> Sequence[Finding]:
    """Return a browser for the tests that open reports; runs need none."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    problem = None if found else "no Chromium or Chrome on PATH"
    next_step = "Only tests need it; `bash docker/chromium.sh` installs one"
    return [Finding.tried("browser", problem, str(found), next_step)]


def look_at_memory() -> Sequence[Finding]:
    """Memory that is free to be used now."""
    for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return [_enough("memory", int(rest.split()[0]) * 1024, _MEMORY_MIN_GIB, "End programs")]
    return [Finding("memory", "unknown", "the kernel does not say what is available")]


def look_at_disk(runs_folder: Path) -> Sequence[Finding]:
    """Space for run folders."""
    there = runs_folder.absolute()
    while not there.is_dir() and there != there.parent:
        there = there.parent
    free = shutil.disk_usage(there).free
    return [_enough("disk", free, _DISK_MIN_GIB, "Make room, or choose another --runs-folder")]


def _enough(name: str, free_bytes: int, minimum_gib: float, next_step: str) -> Finding:
    shown = f"{free_bytes / _GIB:.1f} GiB free"
    is_enough = free_bytes >= minimum_gib * _GIB
    problem = None if is_enough else f"{shown}, {minimum_gib:g} are needed"
    return Finding.tried(name, problem, shown, next_step)
