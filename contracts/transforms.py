"""Functions of the workload ``transform``, and the words of their answers.

Some of ``contracts.log``'s logs are inputs, the others outputs. A transform reads on in an input
from where its group committed, writes for each record that it read one to an output, and commits
both, the outputs and its new offset, in one transaction. An output's value is ``[log, offset,
value]`` of the input that it came of.
"""

from typing import Final

#: Name of the workload; its checker is ``exactly-once``.
TRANSFORM: Final = "transform"
#: An input log -> ``{log, from, to, inputs, taken-as}``; it was committed, or ``ABANDON``: an abort
#: was asked for.
ABANDON: Final = "abandon"
INPUTS: Final = ("0", "1")
OUTPUTS: Final = ("2", "3")

LOG_OF: Final = "log"
#: Offset that was committed before, and the one that is committed with it.
BEGAN_AT: Final = "from"
ENDED_AT: Final = "to"
#: ``[[offset, value], ...]``.
READ_INPUTS: Final = "inputs"
#: ``[id, epoch]`` with which whoever has the input took it; those of one id rise. May be left out.
TAKEN_AS: Final = "taken-as"
