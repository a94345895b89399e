"""One real run, one SIGKILL of its harness, one ``clean``: the machine before and after it.

The program is ``bench.harness_kills``; the container tests use the same with scripted moments.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Literal

import docker.errors
import msgspec
from docker import DockerClient

from bench import host_snapshot, kill_moments
from bench.foreign_things import ForeignThings
from splitbrain.contracts.distribution import PACKAGE
from splitbrain.runtimes.docker.names import LOCK_LABEL, ROLE_LABEL
from splitbrain.runtimes.docker.pods import TOOLS

Manner = Literal["alone", "with its group", "with its watchdog"]
MANNERS: tuple[Manner, ...] = ("alone", "with its group", "with its watchdog")

#: The engine takes networks, mounts and proxies down a moment after it says so.
#: More than a session of Spark's takes at most that ends because its owner was killed.
_SETTLING_S = 30.0
_WATCHDOG_PATIENCE_S = 60.0
_LOOK_INTERVAL_S = 0.05
_TEST = (sys.executable, "-m", f"{PACKAGE}.harness.cli", "test")
#: In the command line of a watchdog; the other processes of ours are what tidies up after the
#: harness, and children of it that are about to notice.
_WATCHDOG = f" {PACKAGE}.runtimes.watchdog "
_OURS = (_WATCHDOG, f" {PACKAGE}.spark_analysis", f" {PACKAGE}.harness.")


class Kill(msgspec.Struct, frozen=True):
    """A run, and how and when its harness is killed."""

    moment: kill_moments.Moment
    manner: Manner
    seed: int
    time_limit_s: float
    nemesis: str
    runtime: str = "docker"


class Round(msgspec.Struct, frozen=True):
    """Outcome of one kill."""

    number: int
    kill: Kill
    #: How the harness ended before the moment came; None: it lived, and was killed.
    ended: str | None
    #: From the kill to no node running and no rule in force; None: no watchdog, or nothing ran.
    watchdog_s: float | None
    clean_s: float
    left_behind: list[str]
    disturbed: list[str]
    #: Exit code of ``splitbrain check`` on the dead folder; None: there is none.
    check: int | None
    #: Anything that crashed or contradicted, in words.
    problems: list[str]

    @property
    def killed(self) -> bool:
        """Whether the harness lived until the moment came."""
        return self.ended is None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.left_behind or self.disturbed or self.problems)


def _options(kill: Kill, seed: int, time_limit_s: str, runs: Path) -> list[str]:
    """Options of ``splitbrain test`` for a run like the one that is killed."""
    arguments = ["--seed", str(seed), "--time-limit", time_limit_s, "--runs-folder", str(runs)]
    return [*arguments, "--runtime", kill.runtime, "--nemesis", kill.nemesis]


class Campaign:
    """Kills that are compared with one machine.

    Args:
        work: an empty folder, for the runs.
        client: of the engine.
        strict: whether whatever appears or changes on the machine counts.
        parallel_living: whether a second run goes on beside each kill.
    """

    def __init__(
        self,
        work: Path,
        client: DockerClient,
        *,
        strict: bool = False,
        parallel_living: bool = False,
    ) -> None:
        self._strict = strict
        self._parallel_living = parallel_living
        self._work = work
        self._client = client
        self._scratch = work / "scratch"
        self._scratch.mkdir()
        self.foreign = ForeignThings(client, f"harness-kills-{os.getpid()}")
        self._environment = {**os.environ, "TMPDIR": str(self._scratch)}

    def round(self, number: int, kill: Kill) -> Round:
        """One run, one kill, one clean."""
        moment, manner = kill.moment, kill.manner
        runs = self._work / f"round-{number}"
        before = self._snapshot()
        problems: list[str] = []
        with ExitStack() as beside:
            if self._parallel_living:
                beside.callback(self._end_living, self._start_living(number, kill), problems)
            harness = self._start(runs, kill)
            killed = kill_moments.await_moment(moment, runs, lambda s: _has_ended(harness, s))
            folder = kill_moments.run_folder(runs)
            tokens = host_snapshot.fingerprint(self._client, runs)
            died = time.monotonic()
            self._kill(harness, manner)
            watched = killed and manner != "with its watchdog" and folder is not None
            watchdog_s = self._await_stopped(kill.runtime, runs, died) if watched else None
            tokens |= host_snapshot.fingerprint(self._client, runs)
            began = time.monotonic()
            cleaned = self._splitbrain("clean")
            clean_s = time.monotonic() - began
            problems += _complaints("clean", cleaned, {0})
            check = self._check(folder, problems)
            if tokens & host_snapshot.fingerprint(self._client, runs):
                problems.append(f"clean left something: {cleaned.stdout}{cleaned.stderr}")
        left, disturbed = self._compare(before, tokens)
        return Round(
            number=number,
            kill=kill,
            ended=None if killed else _end_of(harness, runs / "output.log"),
            watchdog_s=watchdog_s,
            clean_s=clean_s,
            left_behind=left,
            disturbed=disturbed,
            check=check,
            problems=problems,
        )

    def _snapshot(self) -> host_snapshot.Snapshot:
        return host_snapshot.take(self._client, str(self._scratch), self._scratch)

    def _compare(
        self, before: host_snapshot.Snapshot, tokens: set[str]
    ) -> tuple[list[str], list[str]]:
        """Return leftovers and disturbances once the engine has settled."""

        def look() -> tuple[list[str], list[str]]:
            after = self._snapshot()
            mine, foreign = (None, None) if self._strict else (tokens, self.foreign.tokens)
            return (
                host_snapshot.appeared(before, after, mine),
                host_snapshot.disturbed(before, after, foreign),
            )

        deadline = time.monotonic() + _SETTLING_S
        leftovers = look()
        while any(leftovers) and time.monotonic() < deadline:
            leftovers = look()
        return leftovers

    # --- the harness --------------------------------------------------------------------------

    def _start(self, runs: Path, kill: Kill) -> subprocess.Popen[bytes]:
        runs.mkdir()
        with (runs / "output.log").open("wb") as output:
            return subprocess.Popen(
                [*_TEST, *_options(kill, kill.seed, f"{kill.time_limit_s:.1f}", runs)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment,
                start_new_session=True,
            )

    def _kill(self, harness: subprocess.Popen[bytes], manner: Manner) -> None:
        watchdogs = [
            int(process)
            for process, command in host_snapshot.processes(str(self._scratch)).items()
            if _WATCHDOG in command
        ]
        if manner == "with its watchdog":
            for process in watchdogs:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        # It may have ended by itself.
        with suppress(ProcessLookupError):
            if manner == "alone":
                os.kill(harness.pid, signal.SIGKILL)
            else:
                os.killpg(harness.pid, signal.SIGKILL)
        harness.wait()

    def _await_stopped(self, runtime: str, runs: Path, died: float) -> float | None:
        """Seconds from the death until no node runs and no rule is in force."""
        if not self._is_at_work(runtime, runs):
            return None
        while self._is_at_work(runtime, runs):
            if time.monotonic() - died > _WATCHDOG_PATIENCE_S:
                return float("inf")
            time.sleep(_LOOK_INTERVAL_S)
        return time.monotonic() - died

    def _is_at_work(self, runtime: str, runs: Path) -> bool:
        if runtime != "docker":
            left = host_snapshot.processes(str(runs))
            # Processes that tidy up after the harness, and children of it that are about to notice.
            return any(not any(other in command for other in _OURS) for command in left.values())
        api: Any = self._client.api
        containers = [
            container
            for container in api.containers(filters={"label": LOCK_LABEL})
            if container["Labels"][LOCK_LABEL].startswith(f"{runs}/")
        ]
        if any(container["Labels"][ROLE_LABEL] == "node" for container in containers):
            return True
        pods = [container for container in containers if container["Labels"][ROLE_LABEL] == "pod"]
        return any(self._has_rules(pod["Id"]) for pod in pods)

    def _has_rules(self, container: str) -> bool:
        """Whether any link of this pod is cut, reset or shaped."""
        try:
            pod: Any = self._client.containers.get(container)
            firewall = [f"{TOOLS}/firewall.sh"]
            if any(
                pod.exec_run([*firewall, which]).output.strip() for which in ("list", "list-resets")
            ):
                return True
            shown = pod.exec_run(["python3", f"{TOOLS}/links.py", "show"])
            shapes: dict[str, Any] = json.loads(shown.output) if shown.exit_code == 0 else {}
            return any(shapes.values())
        except docker.errors.APIError:
            # Another run, starting, has swept it meanwhile.
            return False

    # --- beside and after it ------------------------------------------------------------------

    def _start_living(self, number: int, kill: Kill) -> subprocess.Popen[str]:
        runs = self._work / f"living-{number}"
        return subprocess.Popen(
            [*_TEST, *_options(kill, number, "25", runs), "--no-analyze"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _end_living(self, living: subprocess.Popen[str], problems: list[str]) -> None:
        output, _ = living.communicate()
        if living.returncode != 0:
            problems.append(f"the living run ended with {living.returncode}: {output[-2000:]}")

    def _splitbrain(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "splitbrain.harness.cli", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=self._environment,
        )

    def _check(self, folder: Path | None, problems: list[str]) -> int | None:
        if folder is None or not (folder / "plan.json").exists():
            return None
        done = self._splitbrain("check", str(folder), "--no-analyze")
        problems += _complaints("check", done, {0, 1, 2})
        return done.returncode


def _complaints(what: str, done: subprocess.CompletedProcess[str], allowed: set[int]) -> list[str]:
    output = done.stdout + done.stderr
    if done.returncode in allowed and "Traceback" not in output:
        return []
    return [f"{what} ended with {done.returncode}: {output[-2000:]}"]


def _has_ended(harness: subprocess.Popen[bytes], timeout_s: float) -> bool:
    try:
        harness.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end_of(harness: subprocess.Popen[bytes], output: Path) -> str:
    lines = output.read_text(errors="replace").strip().splitlines()
    return f"exit code {harness.returncode}: {lines[-1] if lines else 'it said nothing'}"
