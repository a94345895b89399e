"""Every fault kind bites, heals, and is caught when its injection or its heal does nothing.

Over the whole registry: a new kind cannot forget its proofs.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.arms import Shape
from splitbrain.contracts.fault import FaultEvent, Link
from splitbrain.harness.judge.fault_results import fault_results
from splitbrain.history.fault_windows import fault_windows
from splitbrain.nemesis.fault_options import BEYOND_PROMISE
from splitbrain.nemesis.kinds import fault_kind, machine_kind_names
from tests.unit.harness.run.armed_world import ArmedWorld
from tests.unit.harness.run.driven import Driven, fault

WHOLE = ["invoked", "verified", "healing", "removed", "resumed"]

#: Act of the runtime that injects, and the one that heals; the first that a course does not do.
ACTS = {
    **dict.fromkeys(
        ("partition", "majorities-ring", "bridge", "minority-third", "one-way-in", "one-way-out",
         "partial", "cut-then-kill", "flap"),
        ("cut", "restore"),
    ),
    **dict.fromkeys(("kill", "crash-loop"), ("kill", "start")),
    **dict.fromkeys(("terminate", "restart", "rolling-restart"), ("terminate", "start")),
    "pause": ("pause", "resume"),
    "cpu": ("throttle", "unthrottle"),
    "memory": ("limit_memory", "unlimit_memory"),
    **dict.fromkeys(
        ("loss", "delay", "reorder", "duplicate", "rate", "black-hole", "slow-link"),
        ("shape", "unshape"),
    ),
    "reset": ("reset", "unreset"),
    "power": ("power_off", "start"),
    "full-disk": ("fill", "drain"),
    "disk-stall": ("stall", "unstall"),
    "disk-error": ("fail", "repair"),
    **dict.fromkeys(("flip", "truncate"), ("change", "start")),
    "restore": ("change", "start"),
    "wipe": ("kill", "start"),
    "remove-member": ("remove", "add"),
    **dict.fromkeys(("clock-jump", "clock-drift", "clock-strobe"), ("warp", "unwarp")),
}  # fmt: skip

PAGES = Path(__file__).parents[4] / "docs" / "faults"


def driven(kind: str, *deaf: str) -> Driven:
    options = {BEYOND_PROMISE: True}
    return Driven([fault(kind, fault_kind(kind).first_target, options=options)], deaf)


@pytest.mark.parametrize("kind", machine_kind_names())
def test_a_fault_bites_heals_and_lets_traffic_resume(kind: str) -> None:
    run = driven(kind)
    assert run.failure is None
    assert run.phases() == WHOLE, [event.evidence for event in run.events]
    assert run.down.all() == ()
    assert set(run.world.states.values()) == {"running"}
    assert not any(run.world.bad.values())


@pytest.mark.parametrize("kind", machine_kind_names())
def test_an_injection_that_does_nothing_is_seen_and_said(kind: str) -> None:
    if kind == "restore":
        run = Driven([fault(kind, "leader", options={BEYOND_PROMISE: True})], ("kill",))
    else:
        run = driven(kind, ACTS[kind][0])
    assert run.failure is None
    assert "not-bitten" in run.phases()
    assert "not seen" in run.evidence("not-bitten")
    (result,) = fault_results((), run.events)
    assert result.applied
    assert not result.verified


@pytest.mark.parametrize("kind", machine_kind_names())
def test_a_heal_that_does_nothing_is_seen_and_said(kind: str) -> None:
    run = driven(kind, ACTS[kind][1])
    assert "not-healed" in run.phases()
    assert "removed" not in run.phases()
    assert run.failure is not None
    assert f"could not heal the fault 0 ({kind}:" in str(run.failure)


@pytest.mark.parametrize("kind", machine_kind_names())
def test_every_kind_has_a_page_that_names_it(kind: str) -> None:
    page = PAGES / f"{fault_kind(kind).page}.md"
    assert page.exists(), f"write {page.name}"
    text = page.read_text().lower()
    assert kind in text or kind.replace("-", " ") in text


@pytest.mark.parametrize("page", sorted({fault_kind(kind).page for kind in machine_kind_names()}))
def test_every_page_says_layer_means_proof_and_limits(page: str) -> None:
    text = (PAGES / f"{page}.md").read_text()
    found = re.findall(
        r"^(?:\*\*|## )(Layer|How|Proof|What proves it|What it cannot show)", text, re.MULTILINE
    )
    assert [heading.replace("What proves it", "Proof") for heading in found] == [
        *("Layer", "How", "Proof", "What it cannot show")
    ]


def test_a_later_step_that_is_not_seen_is_said_and_the_fault_did_not_bite() -> None:
    run = driven("cut-then-kill", "kill")
    assert run.phases()[:3] == ["invoked", "verified", "not-bitten"]
    (result,) = fault_results((), run.events)
    assert not result.verified
    (window,) = fault_windows(run.events, 10**12)
    assert not window.verified


#: A stroke that does nothing, after a first one that did: of each kind that strikes more than once.
STROKES = [
    *(("flap", act, number) for act in ("cut", "restore") for number in (1, 2)),
    ("flap", "restore", 0),
    *(("crash-loop", act, number) for act in ("kill", "start") for number in (1, 2)),
    ("crash-loop", "start", 0),
    *(("clock-strobe", act, number) for act in ("warp", "unwarp") for number in (1, 2)),
    ("clock-strobe", "unwarp", 0),
    ("rolling-restart", "terminate", 1),
    ("rolling-restart", "terminate", 4),
    ("rolling-restart", "start", 2),
    ("restart", "start", 0),
]


@pytest.mark.parametrize(("kind", "act", "number"), STROKES)
def test_a_stroke_that_silently_does_nothing_is_seen_and_said(
    kind: str, act: str, number: int
) -> None:
    target = fault_kind(kind).first_target
    run = Driven([fault(kind, target, duration_ms=9000)], missed={act: {number}})
    assert run.phases()[:3] == ["invoked", "verified", "not-bitten"]
    assert "not seen" in run.evidence("not-bitten")
    (result,) = fault_results((), run.events)
    assert not result.verified


@pytest.mark.parametrize(
    ("kind", "act", "options"),
    [
        ("flap", "cut", {"count": 20}),
        ("clock-strobe", "warp", {"period_ms": 200}),
        ("crash-loop", "kill", {"count": 20}),
    ],
)
def test_strokes_that_cease_are_seen_also_where_they_are_too_fast_to_look_at_each(
    kind: str, act: str, options: dict[str, int]
) -> None:
    plan = [fault(kind, "leader", options=options)]
    assert "not-bitten" not in Driven(plan).phases()
    assert "not-bitten" in Driven(plan, missed={act: range(1, 1000)}).phases()


def test_of_many_strokes_the_evidence_tells_some_and_how_many_more() -> None:
    run = Driven([fault("crash-loop", "leader", options={"count": 20})])
    healing = run.evidence("healing")
    # A start and a kill each, after the first kill.
    assert f"{2 * 19 - 10} more steps seen" in healing


def test_a_power_cut_that_kept_the_unsynced_file_did_not_bite() -> None:
    assert "lost an unsynced file" in driven("power", "power_off").evidence("not-bitten")


def test_a_changed_file_that_reads_as_before_did_not_bite() -> None:
    assert "would read the changed file" in driven("flip", "change").evidence("not-bitten")


@pytest.mark.parametrize("kind", ["flip", "truncate", "restore"])
def test_a_node_that_was_not_started_on_its_changed_file_has_not_read_it(kind: str) -> None:
    run = driven(kind, "start")
    assert run.phases()[:3] == ["invoked", "verified", "not-bitten"]
    assert "n1 has read its files again" in run.evidence("not-bitten")


@pytest.mark.parametrize("kind", ["flip", "truncate", "restore"])
def test_file_byte_and_record_of_a_change_are_named(kind: str) -> None:
    said = driven(kind).evidence("verified")
    assert "a.log" in said
    assert "byte 0" in said
    assert "n1: that is the record behind 0 bytes of a.log" in said


def test_a_node_that_never_meets_its_memory_limit_was_not_bitten_by_it() -> None:
    run = driven("memory", "start")
    assert run.phases()[:3] == ["invoked", "verified", "not-bitten"]
    assert "n1 short of memory" in run.evidence("not-bitten")


def test_a_memory_limit_is_what_the_user_says_else_less_than_is_in_use() -> None:
    assert "n1 may have 15 MiB and used 20.0" in driven("memory").evidence("verified")
    asked = Driven([fault("memory", "n1", options={"limit_mib": 12})])
    assert "n1 may have 12 MiB" in asked.evidence("verified")


def test_what_a_runtime_says_of_its_act_is_on_record() -> None:
    assert "n1: 3 bytes" in driven("power").evidence("verified")
    assert "by a fake" in driven("loss").evidence("verified")


def test_faults_are_recorded_with_the_nodes_that_they_hit() -> None:
    run = driven("rolling-restart")
    invoked: FaultEvent = run.events[0]
    assert invoked.nodes == ("n1", "n2", "n3", "n4", "n5")
    # The leader goes last.
    healing = run.evidence("healing")
    assert healing.index("n5 exited") < healing.index("n1 exited")


class _Otherwise(ArmedWorld):
    """Its links are all late alike, whatever jitter was asked for."""

    def shape(self, links: Iterable[Link], shape: Shape) -> str:
        return super().shape(links, msgspec.structs.replace(shape, jitter_us=0))


def test_a_link_with_another_shape_than_was_asked_for_is_no_bite() -> None:
    steady = fault("delay", "n2", options={"jitter_ms": 0})
    assert Driven([steady], kind=_Otherwise).phases()[1] == "verified"
    run = Driven([fault("delay", "n2")], kind=_Otherwise)
    assert run.phases()[1] == "not-bitten"
    assert "n1 to n2 shaped as asked" in run.evidence("not-bitten")


def test_a_shape_that_cannot_be_measured_beside_a_cut_is_told_as_the_kernel_has_it() -> None:
    cut = fault("partition", "n2", 1000, 600_000)
    run = Driven([cut, fault("delay", "n2", 100_000, 60_000, index=1)])
    for phase, words in (("verified", "shaped as asked"), ("removed", "as they were")):
        assert run.evidence(phase, 1).startswith(f"8 links {words} after ")
