"""Checkers that installed packages offer, as entry points of the group ``splitbrain.checkers``."""

from abc import ABC, abstractmethod
from collections.abc import Collection

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget


class OwnChecker(ABC):
    """Checker of somebody else; made without arguments, in each process that needs it."""

    #: As the entry point has it, and as workloads name it.
    name: str
    #: Promise that it holds a run to, for people.
    promise: str = ""
    #: Kinds of evidence besides the history of which it needs one (``checker.names``).
    needs: Collection[str] = ()

    @abstractmethod
    def check(self, evidence: Evidence, budget: Budget) -> CheckResult:
        """Judge one run; what it raises makes the verdict ``unknown``.

        It respects itself what the system documents (``evidence.allowed``), for example by
        ``checker.allowing.with_allowed``.
        """
        ...
