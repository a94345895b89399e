"""The order in which a seed draws mutants, and the texts that they are made of.

A mutant's place in the draw, and whether a result of it still counts, depend on its own file alone:
a campaign of many nights goes on while other files change. Must never depend on the order of files.
"""

import hashlib
from collections.abc import Sequence

from bench.mutant_rooms import ROOT
from bench.mutant_sites import Mutant, mutants_of


def drawn(files: Sequence[str], seed: int) -> list[Mutant]:
    """All mutants of the files in the order in which this seed draws them.

    Each has its place by seed and name, so others that come or go leave them in their order.
    """
    mutants = [mutant for file in files for mutant in mutants_of((ROOT / file).read_text(), file)]
    return sorted(mutants, key=lambda mutant: _digest(f"{seed} {mutant.id}".encode()))


def sources_of(files: Sequence[str]) -> dict[str, str]:
    """Return the digest of each file's present text."""
    return {file: _digest((ROOT / file).read_bytes()) for file in files}


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
