"""Words on one thing that users meet by its name, such as an invariant, a fault or an exit code.

Shown by ``splitbrain explain``. Each is declared beside its thing, by whoever declares that.
"""

import msgspec

#: Columns of a picture at most, so that it fits a terminal of 80 with its indent.
PICTURE_COLUMNS_MAX = 76


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing, explained; an empty text is one that there is not."""

    #: As users write it.
    name: str
    #: Sentences: its meaning.
    says: str
    #: Sentences: why it matters.
    why: str = ""
    #: Picture of a breaking case in plain text, ``PICTURE_COLUMNS_MAX`` wide at most, or sentences.
    breaks: str = ""
    #: Sentences: the next step of who met it.
    next_step: str = ""
    #: Papers, KIPs, tickets.
    source: str = ""
