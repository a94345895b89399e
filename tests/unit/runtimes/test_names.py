"""Names are for people, labels decide; subnets of runs collide with nothing."""

import re
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from splitbrain.contracts.names import NodeName, RunId
from splitbrain.runtimes.docker import names
from splitbrain.runtimes.docker.network import POOL, candidates, pod_address, routed

RUN = RunId("2026-11-21T02:27:02Z seed/7")
N1 = NodeName("n1")
MARK = names.mark_of_run(RUN, Path("/runs/a/lock"))


def test_every_name_is_one_that_engines_take() -> None:
    made = [MARK.network(), MARK.name(N1, "pod"), MARK.name(N1), MARK.name(N1, "data")]
    assert len(set(made)) == 4
    for name in made:
        assert re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+", name)


def test_labels_carry_the_run_unchanged_and_an_absolute_lock(tmp_path: Path) -> None:
    mark = names.mark_of_run(RUN, tmp_path / "x" / ".." / "lock")
    labels = mark.node_labels(N1, "pod", "/data")
    assert labels[names.RUN_LABEL] == RUN
    assert labels[names.LOCK_LABEL] == str(tmp_path / "lock")
    assert (labels[names.NODE_LABEL], labels[names.ROLE_LABEL]) == ("n1", "pod")


def test_runs_of_one_id_in_different_folders_are_different_runs() -> None:
    other = names.mark_of_run(RUN, Path("/runs/b/lock"))
    assert other.network() != MARK.network()
    assert other.name(N1, "data") != MARK.name(N1, "data")
    assert other.filters() != MARK.filters()


def test_a_mark_is_read_back_from_its_labels_and_what_lacks_them_is_refused() -> None:
    mark = names.mark_of_run(RUN, Path("/runs/a/lock"), "some/word")
    assert names.mark_of_labels(mark.labels()) == mark
    with pytest.raises(KeyError):
        names.mark_of_labels({"somebody": "else"})


ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0102A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
br0\t4000D30A\t00000000\t0001\t0\t0\t0\tC0FFFFFF\t0\t0\t0
"""


def test_a_run_takes_no_subnet_that_overlaps_a_taken_one() -> None:
    run = RunId("run-1")
    first = next(candidates(run, []))
    assert first.subnet_of(POOL)
    second = next(candidates(run, [first]))
    assert not second.overlaps(first)
    half = IPv4Network("10.211.0.0/17")
    assert not any(subnet.overlaps(half) for subnet in candidates(run, [half]))


def test_nothing_is_offered_when_all_is_taken() -> None:
    assert list(candidates(RunId("run-1"), [IPv4Network("10.0.0.0/8")])) == []


def test_different_runs_begin_at_different_subnets() -> None:
    firsts = {next(candidates(RunId(f"run-{number}"), [])) for number in range(50)}
    assert len(firsts) > 40


def test_every_subnet_is_offered_once() -> None:
    offered = list(candidates(RunId("run-1"), []))
    assert len(offered) == len(set(offered)) == 1024


def test_pods_have_addresses_above_the_gateway() -> None:
    subnet = IPv4Network("10.211.0.64/26")
    assert pod_address(subnet, 0) == "10.211.0.74"
    assert pod_address(subnet, 8) == "10.211.0.82"


def test_routes_of_this_machine_are_read_and_the_default_one_left_out() -> None:
    assert routed(ROUTES) == [IPv4Network("192.168.2.0/24"), IPv4Network("10.211.0.64/26")]
