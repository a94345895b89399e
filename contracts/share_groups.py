"""Functions of the workload ``share-groups``, and the words of their answers.

The members of a share group (KIP-932) read logs of ``contracts.log`` together: a record is acquired
by one of them at a time, which accepts it, rejects it, or releases it to be delivered again; where
it does none of that in time, its lock expires, and the record is delivered again.

A log has leaders, each with an epoch. An answer tells for each log the epochs that its leader
claimed before and after it answered, ``[before, after]``; null where it was not told.
"""

from typing import Final

#: Name of the workload and of its checker.
SHARE_GROUPS: Final = "share-groups"
#: ``null`` -> ``{member, records, epochs, unanswered, lock-ms}``; a final one acquires of all logs
#: and accepts what it is delivered: null says that none of them had any more.
ACQUIRE: Final = "acquire"
#: ``accept``, ``release`` or ``reject``: of all that its client has acquired and not settled yet ->
#: ``{member, settled, unclear, epochs}``; of logs that are in neither nothing was settled.
SETTLE: Final = "settle"
#: ``null`` -> the member that left, whereby what it has is free again; null: it was none.
LEAVE: Final = "leave"

ACCEPT: Final = "accept"
RELEASE: Final = "release"
REJECT: Final = "reject"

MEMBER: Final = "member"
#: ``{log: [[offset, value, count], ...]}``: how often the record was delivered, this time included.
RECORDS: Final = "records"
#: ``{log: [before, after]}``.
EPOCHS: Final = "epochs"
#: Logs of which records may have been acquired that nobody was told of.
UNANSWERED: Final = "unanswered"
#: How long what was acquired is its member's, in milliseconds, from some moment of the request on.
LOCK_MS: Final = "lock-ms"
#: ``{log: [offset, ...]}``.
SETTLED: Final = "settled"
#: ``{log: [offset, ...]}``: it may have been settled or not.
UNCLEAR: Final = "unclear"
#: A record is delivered so often at most; then it is gone.
DELIVERIES_MAX: Final = 10
