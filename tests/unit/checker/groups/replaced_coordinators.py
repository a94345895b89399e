"""Small histories of groups whose coordinator is replaced and does not know it for a while.

It goes on telling what it has: offsets, and to its members that they are such. It acknowledges
nothing that would change anything, since it reaches no majority; and now and then an answer of
either coordinator is lost.
"""

from copy import deepcopy
from random import Random
from typing import Any

from splitbrain.history.records import PairedOperation
from tests.unit.checker.groups.small_groups import Member, World, in_order


class OfOld:
    """All that a coordinator had when it was replaced."""

    def __init__(self, world: World) -> None:
        self.committed = dict(world.committed)
        self.numbers = dict(world.numbers)
        self.owned = deepcopy(world.owned)


class ReplacedWorld(World):
    """Members ask the one or the other, as their connections go."""

    old: OfOld | None = None

    def step(self) -> None:
        if self.random.random() < 0.15:
            self.old = None if self.old else OfOld(self)
        if self.old and self.random.random() < 0.4:
            start = self.tick()
            self.record("fetch-offsets", start, self.tick(), dict(self.old.committed), 7)
        super().step()

    def decide(self, member: Member, f: str) -> tuple[str, Any]:
        if self.old and self.random.random() < 0.5:
            return self.decide_of_old(self.old, member, f)
        if f == "consume" and self.random.random() < 0.2:
            # It is done, and its member hears nothing of it.
            number = member.number
            self.consume(member)
            member.number, member.positions = number, {}
            return "fail", None
        return super().decide(member, f)

    def decide_of_old(self, old: OfOld, member: Member, f: str) -> tuple[str, Any]:
        if f != "consume":
            member.positions = {}
            return "info", None
        is_known = old.numbers.get(member.name, -1) == member.number
        if not is_known or not member.number:
            # It is to join anew, and no join comes to an end there.
            member.positions, member.number = {}, 0
            return "fail", None
        return "ok", self.told(member, old.owned[member.name], old.committed)


def replaced_history(random: Random, *, has_generations: bool) -> list[PairedOperation]:
    """A history of a group that keeps its promise, but for stale answers."""
    world = ReplacedWorld(random, has_generations=has_generations)
    world.run(random.randint(20, 50))
    return in_order(world.operations)
