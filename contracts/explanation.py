"""Words on one thing that users meet by its name, such as an invariant, a fault or an exit code.

Shown by ``splitbrain explain``. Each is declared beside its thing, by whoever declares that.
"""

from typing import Annotated, Literal

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


_Sentences = Annotated[str, msgspec.Meta(min_length=1)]


class KnownLoss(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Words on a known loss of a system, as they stand in the suite that shows it."""

    title: _Sentences
    #: By the system's own documents.
    promised: _Sentences
    #: In the runs of whoever found it, and in ours.
    happened: _Sentences
    #: Tickets, papers, pages.
    source: _Sentences
    #: Whether its makers have mended it, have it open, or document it as the system's way.
    standing: Literal["mended", "open", "documented"]

    def explanation(self, name: str) -> Explanation:
        """Return it as one of the things that can be explained."""
        return Explanation(
            name=name,
            says=f"{self.title}. {self.happened}",
            why=f"Promised is: {self.promised}",
            next_step=f"`splitbrain findings run {name}` shows it, with its control.",
            source=self.source,
        )
