"""Members of the system that may hold what the final reads of others do not show. Pure.

Where members answer from what they have themselves, nothing is lost before each of them was read:
what is missing at one may stand at another. One that did not answer, dead or alive, may hold it.
Must never excuse what a member that was read contradicts by itself. Source: issue 18, section 4.
"""

from collections.abc import Collection, Iterable, Sequence

from splitbrain.history.records import PairedOperation


def unread(members: Iterable[str], answers: Iterable[PairedOperation]) -> tuple[str, ...]:
    """Members that answered none of these final operations, sorted.

    Args:
        members: see ``Evidence.members``; none where one answer speaks for all.
        answers: operations on one object that show what a member holds; those that are no final
            ones, and those without success, count for nothing.
    """
    answered = {answer.node for answer in answers if answer.final and answer.type == "ok"}
    return tuple(sorted(set(members) - answered))


def wrong_for_good(
    reads: Sequence[PairedOperation], wrong: Collection[int]
) -> tuple[PairedOperation, ...]:
    """Of the wrong reads of one object those after which no read is right.

    None where a final read is right: whatever was wrong before it was not there yet, or no longer.

    Args:
        reads: completed reads.
        wrong: indexes of those that show something else than they should.
    """
    right = [read for read in reads if read.index not in wrong]
    if any(read.final for read in right):
        return ()
    last_right = max((read.end for read in right if read.end is not None), default=None)
    return tuple(
        read
        for read in reads
        if read.index in wrong and (last_right is None or read.start > last_right)
    )


def told_unread(what: str, members: Collection[str]) -> str:
    """Why nothing can be said, one sentence; ``what`` is missing or wrong, with its verb."""
    was = "was" if len(members) == 1 else "were"
    return f"{what}, and {', '.join(sorted(members))} {was} not read at the end and may hold it."
