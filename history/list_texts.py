"""Lists of whole numbers as they stand in JSON, most of them the beginning of a longer one; pure.

Each read of a list that is appended to repeats all of it. So of each key the longest text is kept,
a *chain*, and of each list how much of its chain it is: of a hundred million elements a few are
kept, and none is decoded. A list that neither begins the last chain of its key nor goes on with it
is a chain of its own.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

_COMMA: Final = ord(",")
#: Bytes of lists of whole numbers, without the last one.
_PLAIN: Final = b"0123456789,-["
#: Chain of null.
NO_CHAIN: Final = -1
Integers = NDArray[np.int64]


class Chains:
    """Longest texts, without their closing brackets, by number."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        #: Key of each.
        self.keys: list[int] = []
        #: Last chain of each key.
        self._last: dict[int, int] = {}

    def placed(self, keys: Iterable[int], texts: Iterable[bytes]) -> list[int]:
        """Return the chain of each text, which is of the key beside it."""
        return [*map(self._place, keys, texts)]

    def _place(self, key: int, text: bytes) -> int:
        number = self._last.get(key)
        if number is not None:
            chain = self.texts[number]
            # Most lists are longer than those before.
            if _begins(chain, text):
                self.texts[number] = text
                return number
            if _begins(text, chain):
                return number
        number = self._last[key] = len(self.texts)
        self.texts.append(text)
        self.keys.append(key)
        return number

    @property
    def are_plain(self) -> bool:
        """Return whether all elements are whole numbers."""
        return all(
            not text.translate(None, _PLAIN) and text.rfind(b"[") == 0 for text in self.texts
        )


def _begins(text: bytes, whole: bytes) -> bool:
    size = len(text)
    return whole.startswith(text) and (len(whole) == size or size == 1 or whole[size] == _COMMA)


class Beginnings(Sequence[list[Any]]):
    """Lists, each the beginning of a chain and decoded when it is asked for; null is empty."""

    def __init__(self, texts: Sequence[bytes], chains: Integers, sizes: Integers) -> None:
        """``sizes`` are bytes of the chains' texts."""
        self._texts, self._chains, self._sizes = texts, chains, sizes

    def __len__(self) -> int:
        return len(self._chains)

    @overload
    def __getitem__(self, place: int) -> list[Any]: ...
    @overload
    def __getitem__(self, place: slice) -> list[list[Any]]: ...
    def __getitem__(self, place: int | slice) -> Any:
        """Return one list, or several."""
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        chain = int(self._chains[place])
        return [] if chain == NO_CHAIN else decoded(self._texts[chain], int(self._sizes[place]))

    @property
    def lengths(self) -> Integers:
        """Return the number of elements of each."""
        whole = np.frombuffer(b"".join(self._texts), dtype=np.uint8)
        commas = np.flatnonzero(whole == _COMMA)
        ends = np.cumsum([0, *map(len, self._texts)])
        begins = ends[self._chains]
        within = np.searchsorted(commas, begins + self._sizes) - np.searchsorted(commas, begins)
        return np.where(self._sizes > 1, within + 1, 0)

    def agree(self, places: Integers) -> bool:
        """Return whether certainly each of these is the beginning of the longest of them."""
        chains = self._chains[places[self._sizes[places] > 1]]
        return bool((chains == chains[:1]).all())


def decoded(text: bytes, size: int) -> list[Any]:
    """Return the list that a beginning of a chain is."""
    return msgspec.json.decode(text[:size] + b"]")
