"""Banks: money goes from account to account and never becomes more or less.

A transfer ``[from, to, amount]`` is answered ``[from, to, amount, done]``; it is refused where the
account has too little. A read shows all accounts of one moment.
"""

from typing import Final

from splitbrain.contracts.bank import ACCOUNTS, TOTAL
from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Operation
from splitbrain.history.functions import READ, Function, Functions, Refusal
from splitbrain.workloads.keys import PlainWorkload

#: Enough to find some accounts with too little.
AMOUNT_MAX: Final = 10
_MIX: Final = (("read", 1), ("transfer", 2))
_FUNCTIONS: Final[Functions] = {"read": READ, "transfer": Function("changes", Refusal(3))}


class BankWorkload(PlainWorkload):
    """Transfers and reads over a few banks."""

    name = "bank"
    prefix = "b"
    checkers: tuple[str, ...] = (f"bank:total={TOTAL}", "split-brain")
    functions: Functions = _FUNCTIONS

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        key = self._keys.key(draws.below(self.lanes), n)
        if draws.weighted(_MIX) == "read":
            return Operation("read", key, None)
        giver = draws.below(len(ACCOUNTS))
        taker = (giver + 1 + draws.below(len(ACCOUNTS) - 1)) % len(ACCOUNTS)
        amount = 1 + draws.below(AMOUNT_MAX)
        return Operation("transfer", key, [ACCOUNTS[giver], ACCOUNTS[taker], amount])


WORKLOAD: Final = BankWorkload
