"""Proof of validity from an order in which open operations could be used any number of times.

Where many operations are open, a search spends most of its time on counting which of them were
used, and mostly there are more of them than any order needs. So the order found without counting
is tried: each use of a call is given to the next of the operations that asked for it, by
invocation. If there are enough, and none is used before it began, the order is a proof, and one
more walk through it checks that. If not, nothing is proved.
"""

from collections import defaultdict
from collections.abc import Sequence

from splitbrain.checker.linearizability.methods.guided import is_proof
from splitbrain.checker.linearizability.part.outcome import Decision, order_of
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.models.model import Model


def is_realized(problem: Problem, decisions: Sequence[Decision], model: Model) -> bool:
    """Return whether the decisions stand for an order that uses no operation twice.

    Args:
        problem: with open operations that may take effect any number of times.
        decisions: of a search of it that found an order.
        model: judges the order.
    """
    operations = problem.operations
    open_by_call: defaultdict[int, list[int]] = defaultdict(list)
    for place in range(len(operations) - 1, -1, -1):
        if operations[place].type == "info":
            open_by_call[problem.call_by_place[place]].append(place)
    order: list[int] = []
    for place in order_of(problem, decisions):
        if operations[place].type != "info":
            order.append(place)
            continue
        left = open_by_call[problem.call_by_place[place]]
        if not left:
            return False
        order.append(left.pop())
    calls = [problem.calls[number] for number in problem.call_by_place]
    return is_proof(operations, calls, model, order)
