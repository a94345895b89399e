"""One seed draws every option of a simulated world (swarm testing).

Drawing the mix anew per seed finds far more than one good mix: a world without pauses but with
crashes at every truncation goes where an even mix never goes.
"""

import random

import msgspec


class Swarm(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one world. Times in microseconds unless the name says otherwise."""

    voter_count: int = 3
    observer_count: int = 0
    client_count: int = 3
    key_count: int = 2
    read_share: float = 0.5
    #: Share of operations that go to a random node instead of the believed leader.
    wandering_share: float = 0.2
    think_us_max: int = 20_000
    client_timeout_us: int = 300_000
    delay_us_min: int = 200
    delay_us_max: int = 2_000
    #: Chance per message to take much longer.
    slow_message_chance: float = 0.0
    #: Chance per message that its connection is reset instead (an answer is then lost after
    #: execution).
    reset_chance: float = 0.0
    disk_us_min: int = 100
    disk_us_max: int = 3_000
    fetch_batches_max: int = 100
    #: Fetch timeout; the other timeouts of the quorum follow from it.
    fetch_timeout_ms: int = 300
    #: How long faults go on, and how much later everything must work again.
    fault_phase_us: int = 1_000_000
    healing_us_max: int = 8_000_000
    #: Mean pause between timer-driven faults; 0 for none.
    fault_interval_us: int = 400_000
    crash_weight: float = 0.0
    power_weight: float = 0.0
    isolate_weight: float = 0.0
    one_way_weight: float = 0.0
    halves_weight: float = 0.0
    pause_weight: float = 0.0
    #: Chances that an effect of this kind triggers a fault at its node.
    on_persist: float = 0.0
    on_lead: float = 0.0
    on_commit: float = 0.0
    on_truncate: float = 0.0
    on_vote: float = 0.0
    down_us_max: int = 600_000
    #: How much of the unsynced work survives a crash: 0 none, 1 a random prefix.
    torn_share: float = 0.5


def draw_swarm(seed: int, *, is_long: bool = False) -> Swarm:
    """The options of this seed's world; a long one has more time and slower elections in it."""
    stream = random.Random(f"{seed}/swarm")

    def chance(probability: float) -> bool:
        return stream.random() < probability

    def one_of(*values: float) -> float:
        return values[int(stream.random() * len(values))]

    def weight() -> float:
        return 1.0 if chance(0.5) else 0.0

    def trigger(*values: float) -> float:
        return one_of(*values) if chance(0.35) else 0.0

    return Swarm(
        voter_count=5 if chance(0.3) else 3,
        observer_count=1 if chance(0.15) else 0,
        client_count=int(one_of(2, 3, 4)),
        key_count=int(one_of(1, 2, 3)),
        read_share=one_of(0.2, 0.5, 0.8),
        wandering_share=one_of(0.0, 0.2, 0.6),
        think_us_max=int(one_of(10_000, 40_000, 100_000)),
        delay_us_min=200,
        delay_us_max=int(one_of(500, 2_000, 10_000)),
        slow_message_chance=one_of(0.0, 0.0, 0.01, 0.05),
        reset_chance=one_of(0.0, 0.0, 0.005, 0.03),
        disk_us_min=100,
        disk_us_max=int(one_of(500, 5_000, 15_000)),
        fault_phase_us=1_000_000 if is_long else 600_000,
        fetch_timeout_ms=int(one_of(60, 90, 150, 300 if is_long else 60)),
        fetch_batches_max=int(one_of(1, 1, 3, 100)),
        fault_interval_us=int(one_of(0, 60_000, 150_000, 300_000)),
        crash_weight=weight(),
        power_weight=weight() * 0.3,
        isolate_weight=weight(),
        one_way_weight=weight() * 0.7,
        halves_weight=weight() * 0.7,
        pause_weight=weight(),
        on_persist=trigger(0.02, 0.1, 0.3),
        on_lead=trigger(0.2, 0.6),
        on_commit=trigger(0.01, 0.03),
        on_truncate=trigger(0.2, 0.6),
        on_vote=trigger(0.05, 0.2, 0.5),
        down_us_max=int(one_of(50_000, 150_000, 500_000)),
        torn_share=one_of(0.0, 0.5, 1.0),
    )
