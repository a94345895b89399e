"""Subnets of runs do not collide with each other, nor with what this machine routes."""

from ipaddress import IPv4Network

from splitbrain.contracts.names import RunId
from splitbrain.runtimes.docker.network import POOL, candidates, pod_address, routed

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
