"""The parts of the local runtime that need no cluster: addresses, rules, links, processes, mode."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from splitbrain.contracts.errors import CapabilityError, HarnessError, UsageError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import DeploymentSpec, Mount, NodeSpec
from splitbrain.runtimes.local import launch, mode, sweep
from splitbrain.runtimes.local.control import LENGTH, Answer, Call, HostLink, encoded
from splitbrain.runtimes.local.launch import take_address
from splitbrain.runtimes.local.mode import FORCE_VARIABLE, Mode, wanted_mode
from splitbrain.runtimes.local.network import DIALECTS, Dialect, Firewall
from splitbrain.runtimes.local.process_table import descendants, environment, process
from splitbrain.runtimes.local.runtime import LocalRuntime
from splitbrain.runtimes.owners import this_process
from splitbrain.runtimes.system_programs import SEARCH_PATH, CannotError, run_tool
from tests.awaiting import await_true

N1 = NodeName("n1")


# --- addresses ------------------------------------------------------------------------------------


def test_two_takers_never_get_one_address() -> None:
    hosts, holders = zip(*(take_address([9190, 9193]) for _ in range(50)), strict=True)
    assert len(set(hosts)) == 50
    for holder in holders:
        holder.close()


def test_an_address_with_a_listener_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter([0, 0, 8, 0, 0, 9])
    monkeypatch.setattr(launch.secrets, "randbelow", lambda _: next(numbers))
    with socket.create_server(("127.1.1.9", 0)) as server:
        host, holder = take_address([server.getsockname()[1]])
    assert host == "127.1.1.10"
    holder.close()


def test_an_address_that_is_held_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    host, holder = take_address([])
    octets = [int(octet) - 1 for octet in host.split(".")[1:]]
    numbers = iter([*octets, octets[0], octets[1], (octets[2] + 1) % 254])
    monkeypatch.setattr(launch.secrets, "randbelow", lambda _: next(numbers))
    other, another_holder = take_address([])
    with holder, another_holder:
        assert other != host


def test_no_free_address_is_one_sentence() -> None:
    # The wildcard address covers all of them.
    with (
        socket.create_server(("0.0.0.0", 0)) as server,
        pytest.raises(HarnessError, match=r"find an address.*port \d+ on every address"),
    ):
        take_address([server.getsockname()[1]])


# --- firewall -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_rules_drop_these_sources_and_replace_all_others(dialect: Dialect) -> None:
    rules = dialect.rules(["10.77.0.2", "10.77.0.1"])
    assert rules.index("10.77.0.1") < rules.index("10.77.0.2")
    assert rules.lower().count("drop") == 2
    assert dialect.rules([]).lower().count("drop") == 0
    ours = "table inet splitbrain\ndelete table inet splitbrain\n"
    assert dialect.rules([]).startswith((ours, "*filter\n:INPUT ACCEPT"))
    # Cuts come first: what is cut gets no answer.
    both = dialect.rules(["10.77.0.1"], ["10.77.0.2"]).lower()
    assert both.index("drop") < both.index("reject")


def test_no_two_braces_stand_on_one_line_of_nft() -> None:
    # nft 1.0.6 refuses it: "syntax error, unexpected '}'".
    nft = next(dialect for dialect in DIALECTS if dialect.name == "nft")
    assert all(line.count("}") <= 1 for line in nft.rules(["10.77.0.1"]).splitlines())
    assert "}" not in {line[-1] for line in nft.rules([]).splitlines() if len(line) > 1}


@pytest.mark.parametrize(
    "shown",
    [
        (
            "table inet splitbrain {\n chain input {\n  type filter hook input priority 0;\n"
            "  ip saddr 10.77.0.1 drop\n  ip saddr 10.77.0.3 drop\n }\n}\n"
        ),
        (
            "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -s 10.77.0.1/32 -j DROP\n"
            "-A INPUT -s 10.77.0.3/32 -j DROP\nCOMMIT\n"
        ),
    ],
    ids=["nft", "iptables"],
)
def test_dropped_addresses_are_read_back(shown: str) -> None:
    firewall = Firewall(Dialect("any", ("true",), ("printf", "%s", shown)), "/dev/null")
    assert firewall.shown("drop") == {"10.77.0.1", "10.77.0.3"}


def test_a_tool_that_is_missing_or_fails_is_named() -> None:
    with pytest.raises(CannotError, match="no-such-tool is not installed"):
        run_tool(["no-such-tool"])
    with pytest.raises(CannotError, match="sh: it is broken"):
        run_tool(["sh", "-c", "echo it is broken >&2; exit 3"])
    assert run_tool(["cat"], "said") == "said"


def test_administrators_programs_are_found_for_ordinary_users_too() -> None:
    assert {"/usr/sbin", "/sbin"} <= set(SEARCH_PATH.split(os.pathsep))


# --- mode -----------------------------------------------------------------------------------------


@pytest.fixture
def denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that refuses namespaces."""
    monkeypatch.delenv(FORCE_VARIABLE, raising=False)
    refused = Mode("processes", reason="the kernel refuses namespaces (Operation not permitted)")
    monkeypatch.setattr(mode, "possible_mode", lambda: refused)


def test_where_namespaces_are_refused_partitions_are_refused_by_name(denied: None) -> None:
    runtime = LocalRuntime()
    able = {"kill", "pause", "terminate", "power", "file-change", "truncate", "wipe"}
    assert runtime.capabilities() - {"cpu", "memory"} == able
    assert runtime.versions()["limits"] == "plain processes, no partitions were possible"
    assert "Operation not permitted" in runtime.versions()["local"]
    with pytest.raises(CapabilityError, match=r"partition.*plain processes.*not permitted"):
        runtime.cut([Link(N1, NodeName("n2"))])


def test_unavailable_namespaces_are_refused(denied: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CapabilityError, match="kernel refuses namespaces"):
        LocalRuntime("namespaces")
    monkeypatch.setenv(FORCE_VARIABLE, "namespaces")
    with pytest.raises(CapabilityError, match="kernel refuses namespaces"):
        LocalRuntime()


def test_the_environment_decides_and_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORCE_VARIABLE, "processes")
    assert wanted_mode().way == "processes"
    monkeypatch.setenv(FORCE_VARIABLE, "proceses")
    with pytest.raises(UsageError, match=r"'proceses'.*namespaces or processes"):
        wanted_mode()


def test_a_trial_that_breaks_is_a_reason_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(stdout=b"", stderr=b"Traceback\nImportError: no such thing\n")

    monkeypatch.setattr(mode.subprocess, "run", broken)
    found = mode.possible_mode.__wrapped__()
    assert found == Mode("processes", reason="ImportError: no such thing")


# --- deployment -----------------------------------------------------------------------------------


def node_spec(runtime: LocalRuntime, folder: Path, **changes: object) -> NodeSpec:
    place = runtime.place(N1, folder, {"client": 9190})
    spec = NodeSpec(N1, "any", ("true",), {}, place.ports, place.data_path)
    return msgspec.structs.replace(spec, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"data_path": "/data"},
        {"name": NodeName("n2")},
        {"mounts": (Mount(Path("/tmp"), "/config"),)},
    ],
    ids=["data", "name", "mount"],
)
def test_paths_of_another_runtime_are_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    runtime = LocalRuntime("processes")
    spec = DeploymentSpec(RunId("x"), tmp_path, (node_spec(runtime, tmp_path / "n1", **changes),))
    with pytest.raises(HarnessError, match="not those that this runtime gave"):
        runtime.deploy(spec)


def test_power_is_refused_for_a_node_that_tells_no_durable_lengths(tmp_path: Path) -> None:
    runtime = LocalRuntime("processes")
    runtime._specs[N1] = node_spec(runtime, tmp_path / "n1")
    with pytest.raises(CapabilityError, match=r"cut the power.*n1.*what it has flushed"):
        runtime.disks.power_off([N1], 1)
    runtime.teardown()


# --- the link to the host -------------------------------------------------------------------------


@pytest.fixture
def link() -> Iterator[tuple[HostLink, socket.socket]]:
    """A link to a host that the test plays; the process behind it ends when its input does."""
    ours, theirs = socket.socketpair()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as stand_in:
        made = HostLink(stand_in, ours)
        yield made, theirs
        theirs.close()
        assert stand_in.stdin is not None
        stand_in.stdin.close()
        made.close()


def next_call(host: socket.socket) -> Call:
    (length,) = LENGTH.unpack(host.recv(LENGTH.size, socket.MSG_WAITALL))
    return msgspec.msgpack.decode(host.recv(length, socket.MSG_WAITALL), type=Call)


def test_answers_may_come_in_any_order(link: tuple[HostLink, socket.socket]) -> None:
    ours, host = link
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ours.call, "look", "n1", "status", "n1")
        one = next_call(host)
        second = pool.submit(ours.call, "look", "n2", "status", "n2")
        two = next_call(host)
        host.sendall(encoded(Answer(two.number, "exited")) + encoded(Answer(one.number, "paused")))
        assert (first.result(5), second.result(5)) == ("paused", "exited")


def test_a_problem_of_the_host_is_one_sentence(link: tuple[HostLink, socket.socket]) -> None:
    ours, host = link
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ours.call, "start n1", "n1", "start", "n1")
        host.sendall(encoded(Answer(next_call(host).number, problem="redis-server: No such file")))
        with pytest.raises(HarnessError, match=r"could not start n1.*redis-server: No such file"):
            waiting.result(5)


def test_calls_that_wait_when_the_host_dies_are_told(link: tuple[HostLink, socket.socket]) -> None:
    ours, host = link
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ours.call, "kill n1", "n1", "kill", "n1")
        next_call(host)
        host.close()
        with pytest.raises(HarnessError, match="has ended"):
            waiting.result(5)
    with pytest.raises(HarnessError, match="has ended"):
        ours.call("kill n1", "n1", "kill", "n1")


# --- processes ------------------------------------------------------------------------------------


#: Of this process alone: the same tests may run in another one, and sweeps see the whole machine.
LOCK = Path(f"/nowhere-{os.getpid()}/lock")
ME = os.getuid()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    # Its owner lives: other runs on this machine sweep too.
    marks = {
        sweep.RUN_VARIABLE: "run-7",
        sweep.LOCK_VARIABLE: str(LOCK),
        sweep.OWNER_VARIABLE: this_process().word(),
    }
    program = "import subprocess; subprocess.run(['sleep', '60'])"
    with subprocess.Popen([sys.executable, "-S", "-c", program], env=os.environ | marks) as made:
        while not descendants(made.pid):
            assert made.poll() is None
        yield made
        for number in descendants(made.pid):
            os.kill(number, signal.SIGKILL)
        made.kill()


def test_a_process_its_children_and_its_state_are_seen(sleeper: subprocess.Popen[bytes]) -> None:
    assert sleeper.pid in descendants(os.getpid())
    (child,) = descendants(sleeper.pid)
    # A process that has been forked and whose program has not begun holds no memory.
    await_true(lambda: (born := process(child)) is not None and born.memory_bytes > 0)
    seen = process(child)
    assert seen is not None
    assert seen.parent == sleeper.pid
    assert environment(sleeper.pid)[sweep.RUN_VARIABLE] == "run-7"
    assert process(2**22 + 1) is None


def test_a_sweep_ends_the_processes_of_one_run_alone(sleeper: subprocess.Popen[bytes]) -> None:
    assert sweep.end_run(RunId("run-8"), LOCK, ME) == 0
    assert sweep.end_run(RunId("run-7"), Path("/elsewhere/lock"), ME) == 0
    assert sweep.end_run(RunId("run-7"), LOCK, ME + 1) == 0
    assert sleeper.poll() is None
    assert sweep.end_run(RunId("run-7"), LOCK, ME) == 2
    assert sleeper.wait(5) == -signal.SIGKILL


def test_a_sweep_spares_a_run_whose_owner_lives(sleeper: subprocess.Popen[bytes]) -> None:
    assert sweep.sweep_machine(LOCK) == []
    assert sleeper.poll() is None


def test_a_sweep_of_dead_runs_reports_what_it_ended(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "is_living", lambda *_: False)
    monkeypatch.setattr(sweep, "claimed", lambda *_, **__: contextlib.nullcontext(True))
    (swept,) = sweep.sweep_machine(LOCK)
    assert (swept.run_id, dict(swept.removed)) == ("run-7", {"processes": 2})
    assert sleeper.wait(5) == -signal.SIGKILL
