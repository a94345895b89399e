"""Bank of the workload ``bank``, as its operations and every system's client know it."""

from typing import Final

#: Accounts of a bank; no other is ever asked for.
ACCOUNTS: Final = ("0", "1", "2", "3", "4")
#: Balance of an account that nothing was transferred from or to.
BALANCE: Final = 20
TOTAL: Final = BALANCE * len(ACCOUNTS)
