"""Logs of the workload ``log``, and its functions."""

from typing import Final

#: Name of the workload.
LOG: Final = "log"
#: Logs, named by their numbers.
LOGS: Final = tuple(map(str, range(4)))
#: Functions: a record, a read of several logs, transactions of both. An ``abort`` is a transaction
#: that its client means to abort; it is ok once it is.
SEND: Final = "send"
POLL: Final = "poll"
TXN: Final = "txn"
ABORT: Final = "abort"
