"""Deploying and tearing down, two clusters at once, and what a dead harness leaves: nothing."""

import contextlib
import os
import signal
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import RunId
from splitbrain.runtimes.docker import sweep as docker_sweep
from splitbrain.runtimes.docker.engine import connect
from splitbrain.runtimes.local.process_table import ENDED, all_processes, environment
from splitbrain.runtimes.local.runtime import LocalRuntime
from splitbrain.runtimes.local.sweep import RUN_VARIABLE
from splitbrain.runtimes.registry import sweep_all
from tests.awaiting import await_true
from tests.runtimes.conftest import NAMESPACES, PROCESSES
from tests.runtimes.killed_harness import killed_at_the_end
from tests.runtimes.node_programs import (
    N1,
    N2,
    NAMES,
    PORT,
    RUNTIMES,
    AnyRuntime,
    ask,
    await_serving,
    link,
    living,
    specification,
)

#: A harness that deploys, breaks what it can, says so, and waits to be killed.
HARNESS = """
    import sys
    from pathlib import Path
    from splitbrain.contracts.arms import Shape
    from tests.runtimes.node_programs import (
        N1, N3, RUNTIMES, ask, await_serving, link, living, specification
    )

    runtime = RUNTIMES[sys.argv[1]]()
    with living(Path(sys.argv[2])) as folder:
        spec = specification(runtime, folder)
        runtime.deploy(spec)
        await_serving(runtime)
        ask(runtime, N1, "child")
        if "partition" in runtime.capabilities():
            runtime.cut([link("n1", "n2")])
        if "delay" in runtime.capabilities():
            runtime.links.shape([link("n2", "n1")], Shape(loss=0.1, delay_us=50_000, rate_kbit=500))
        runtime.pause(N3)
        print(spec.run_id, flush=True)
        sys.stdin.read()
"""


def processes_of(run_id: str) -> list[int]:
    """Living processes of a local run, wherever they are."""
    return [
        each.number
        for each in all_processes()
        if each.state not in ENDED and environment(each.number).get(RUN_VARIABLE) == run_id
    ]


def links_and_mounts() -> tuple[set[str], list[str]]:
    links = {path.name for path in Path("/sys/class/net").iterdir()}
    return links, Path("/proc/self/mounts").read_text().splitlines()


def harness(kind: str, folder: Path) -> contextlib.AbstractContextManager[RunId]:
    return killed_at_the_end(textwrap.dedent(HARNESS), kind, str(folder))


def test_teardown_leaves_nothing_also_twice(runtime: AnyRuntime, run_folder: Path) -> None:
    spec = specification(runtime, run_folder)
    runtime.deploy(spec)
    assert list(runtime.nodes()) == list(NAMES)
    runtime.teardown()
    runtime.teardown()
    assert not anything_left(runtime, spec.run_id)


def anything_left(runtime: AnyRuntime, run_id: RunId) -> bool:
    if runtime.name == "local":
        return bool(processes_of(run_id))
    client = connect()
    try:
        return run_id in {mark.run_id for mark in docker_sweep.runs(client)}
    finally:
        client.close()


@pytest.mark.parametrize("runtime", [NAMESPACES, PROCESSES], indirect=True)
def test_teardown_leaves_no_process_link_or_mount(runtime: AnyRuntime, run_folder: Path) -> None:
    # Things that other runs make and remove meanwhile are not ours to count.
    spec = specification(runtime, run_folder)
    runtime.deploy(spec)
    assert len(processes_of(spec.run_id)) >= 3
    links, mounts = links_and_mounts()
    assert not any("splitbrain" in name or name.startswith("node") for name in links)
    assert not any(str(run_folder) in mount for mount in mounts)
    runtime.teardown()
    assert processes_of(spec.run_id) == []


@pytest.mark.parametrize(
    "kind",
    [
        *(
            pytest.param(kind, marks=marks)
            for kind, marks in (
                ("docker", pytest.mark.containers),
                ("namespaces", pytest.mark.slow),
                ("processes", pytest.mark.slow),
            )
        )
    ],
)
def test_two_clusters_side_by_side_do_not_meet(kind: str, tmp_path: Path) -> None:
    runtimes = [RUNTIMES[kind](), RUNTIMES[kind]()]
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(living(tmp_path / name)) for name in ("a", "b")]
        for runtime in runtimes:
            stack.callback(runtime.teardown)
        specs = [specification(*pair) for pair in zip(runtimes, folders, strict=True)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda pair: pair[0].deploy(pair[1]), zip(runtimes, specs, strict=True)))
        first, second = runtimes
        await_serving(first)
        await_serving(second)
        ends = [{runtime.endpoint(name, PORT) for name in NAMES} for runtime in runtimes]
        assert ends[0].isdisjoint(ends[1])
        if "partition" in first.capabilities():
            first.cut([link("n1", "n2")])
            assert not first.reachable(link("n1", "n2"), PORT, 0.5)
        first.kill(N2)
        assert second.reachable(link("n1", "n2"), PORT, 2.0)
        assert ask(second, N2, "starts").count("started") == 1


def test_a_missing_program_is_one_sentence_and_leaves_nothing(
    runtime: AnyRuntime, run_folder: Path
) -> None:
    spec = specification(runtime, run_folder, command=("no-such-program",))
    with pytest.raises(HarnessError, match="no-such-program"):
        runtime.deploy(spec)
    assert not anything_left(runtime, spec.run_id)


@pytest.mark.parametrize("kind", [NAMESPACES, PROCESSES])
def test_a_killed_harness_leaves_no_process(kind: str, tmp_path: Path) -> None:
    with harness(kind, tmp_path / "run") as run_id:
        assert len(processes_of(run_id)) >= 4
    await_true(lambda: processes_of(run_id) == [], patience_s=10)


@pytest.mark.parametrize("kind", [NAMESPACES, PROCESSES])
def test_a_killed_host_takes_its_nodes_along_and_is_told(kind: str, run_folder: Path) -> None:
    runtime = LocalRuntime("namespaces" if kind == "namespaces" else "processes")
    spec = specification(runtime, run_folder)
    runtime.deploy(spec)
    try:
        await_serving(runtime)
        ask(runtime, N1, "child")
        os.kill(runtime.host_process, signal.SIGKILL)
        await_true(lambda: processes_of(spec.run_id) == [], patience_s=10)
        with pytest.raises(HarnessError, match="holds the cluster has ended"):
            runtime.status(N1)
    finally:
        runtime.teardown()


@pytest.mark.parametrize("kind", [PROCESSES])
def test_a_sweep_ends_escaped_processes_and_spares_living_runs(kind: str, tmp_path: Path) -> None:
    with harness(kind, tmp_path / "dead") as run_id:
        # Not even the keepers get to end their nodes: everything above them dies at one moment.
        members = processes_of(run_id)
        children = {each.number: each.parent for each in all_processes()}
        keepers = {children[number] for number in members} & set(members)
        for number in keepers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGSTOP)
    for number in keepers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    runtime = RUNTIMES[kind]()
    with living(tmp_path / "living") as folder:
        spec = specification(runtime, folder)
        # The start of a run sweeps, as ``splitbrain clean`` does.
        runtime.deploy(spec)
        try:
            sweep_all(tmp_path / "dead" / "lock")
            await_true(lambda: processes_of(run_id) == [], patience_s=10)
            assert len(processes_of(spec.run_id)) >= 4
        finally:
            runtime.teardown()
