"""Transactions as values of events: their micro-operations as columns; see ``history.columns``.

Each transaction has a number of its own, for two are hardly ever alike. Lists that were read are
kept as ``history.list_texts`` keeps them. Texts, whole numbers, null and lists of whole numbers are
all that is taken; anything else makes the values *odd*, and they are left to readers of objects.
"""

from collections.abc import Sequence
from itertools import chain, compress
from operator import itemgetter
from typing import Any, Final, NamedTuple, Self, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from splitbrain.history.columns import NOTHING, UNKNOWN, Codes, Integers, Numbering
from splitbrain.history.list_texts import NO_CHAIN, Beginnings, Chains
from splitbrain.history.records import Event

_BRACKET: Final = ord("[")


class TransactionEvent(Event, frozen=True, gc=False):
    """Event whose value is null or the micro-operations of a transaction."""

    value: list[tuple[str, Any, msgspec.Raw]] | None = None


class Parts(NamedTuple):
    """Micro-operations, one behind the other."""

    #: Codes of functions and of keys.
    functions: Codes
    keys: Codes
    #: Codes of plain values; ``UNKNOWN`` for lists.
    plain: Codes
    #: Chains of lists, and bytes of their texts; ``NO_CHAIN`` and 0 for plain values.
    chains: Integers
    sizes: Integers

    def at(self, places: Integers) -> "Parts":
        """Return some of them."""
        return Parts(
            self.functions[places],
            self.keys[places],
            self.plain[places],
            self.chains[places],
            self.sizes[places],
        )


class Tables(NamedTuple):
    """Distinct things in micro-operations, and chains of lists."""

    functions: Numbering
    keys: Numbering
    plain: Numbering
    chains: Chains


class Transactions(Sequence[list[list[Any]] | None]):
    """Transactions by number; number 0 is None."""

    def __init__(
        self,
        begins: Integers,
        parts: Parts,
        functions: Sequence[str],
        keys: Sequence[Any],
        plain: Sequence[Any],
        texts: Sequence[bytes],
    ) -> None:
        #: First micro-operation of each, and the one behind its last.
        self.begins = begins
        self.parts = parts
        #: By their codes: functions, keys, plain values, and texts of chains.
        self.functions, self.keys, self.plain, self.texts = functions, keys, plain, texts

    def __len__(self) -> int:
        return len(self.begins) - 1

    @overload
    def __getitem__(self, number: int) -> list[list[Any]] | None: ...
    @overload
    def __getitem__(self, number: slice) -> list[list[list[Any]] | None]: ...
    def __getitem__(self, number: int | slice) -> Any:
        """Return one transaction, or several."""
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        if number == NOTHING:
            return None
        places: Integers = np.arange(self.begins[number], self.begins[number + 1], dtype=np.int64)
        parts = self.parts.at(places)
        lists = self.lists(parts)
        return [
            [
                self.functions[function],
                self.keys[key],
                lists[place] if value == UNKNOWN else self.plain[value],
            ]
            for place, (function, key, value) in enumerate(
                zip(
                    parts.functions.tolist(), parts.keys.tolist(), parts.plain.tolist(), strict=True
                )
            )
        ]

    def taken(self, numbers: Integers) -> tuple[Integers, Parts]:
        """Return the micro-operations of these transactions, and how many each has."""
        begins = self.begins[numbers]
        sizes = self.begins[numbers + 1] - begins
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return sizes, self.parts.at(np.repeat(begins, sizes) + within)

    def lists(self, parts: Parts) -> Beginnings:
        """Return the values of micro-operations as lists; plain ones are empty."""
        return Beginnings(self.texts, parts.chains, parts.sizes)


class TransactionNumbering:
    """Numbers of transactions as they are read: each gets the next one, None has 0."""

    def __init__(self) -> None:
        self.tables = Tables(Numbering(), Numbering(), Numbering(None), Chains())
        #: Sizes of transactions, by block; that of None first.
        self.sizes: list[Integers] = [np.zeros(1, dtype=np.int64)]
        self.parts: list[Parts] = []
        self._count = 1

    def codes(self, things: Sequence[list[tuple[str, Any, msgspec.Raw]] | None]) -> Codes:
        """Return the number of each."""
        known = [thing for thing in things if thing is not None]
        parts = [*chain.from_iterable(known)]
        functions, keys, raws = ([*map(itemgetter(n), parts)] for n in range(3))
        texts = [*map(bytes, raws)]
        are_lists = [text[0] == _BRACKET for text in texts]
        is_list = np.array(are_lists, dtype=bool)
        key_codes = self.tables.keys.codes(keys)
        plain = np.full(len(parts), UNKNOWN, dtype=np.int32)
        values = b",".join(text for text in texts if text[0] != _BRACKET)
        plain[~is_list] = self.tables.plain.codes(msgspec.json.decode(b"[" + values + b"]"))
        lists = [text.replace(b" ", b"")[:-1] for text in compress(texts, are_lists)]
        chains = np.full(len(parts), NO_CHAIN, dtype=np.int64)
        chains[is_list] = self.tables.chains.placed(key_codes[is_list].tolist(), lists)
        sizes = np.zeros(len(parts), dtype=np.int64)
        sizes[is_list] = [*map(len, lists)]
        function_codes = self.tables.functions.codes_of_texts(functions)
        self.parts.append(Parts(function_codes, key_codes, plain, chains, sizes))
        is_known = np.array([thing is not None for thing in things], dtype=bool)
        return self._new(is_known, np.array([*map(len, known)], dtype=np.int64))

    def _new(self, is_known: NDArray[np.bool_], sizes: Integers) -> Codes:
        self.sizes.append(sizes)
        codes = np.where(is_known, self._count - 1 + np.cumsum(is_known), NOTHING)
        self._count += len(sizes)
        return codes.astype(np.int32)

    def taken_in(self, others: Self) -> Codes:
        """Return the numbers here of the transactions of another range, by their numbers there."""
        tables, more = self.tables, others.tables
        functions = tables.functions.taken_in(more.functions)
        keys = tables.keys.taken_in(more.keys)
        of_keys: list[int] = keys[more.chains.keys].tolist()
        # The last entry is for places without one.
        plain = np.append(tables.plain.taken_in(more.plain), np.int32(UNKNOWN))
        chains = np.array([*tables.chains.placed(of_keys, more.chains.texts), NO_CHAIN])
        self.parts += [
            Parts(
                functions[part.functions],
                keys[part.keys],
                plain[part.plain],
                chains[part.chains],
                part.sizes,
            )
            for part in others.parts
        ]
        sizes = np.concatenate(others.sizes)
        return self._new(np.arange(len(sizes)) != NOTHING, sizes[1:])

    @property
    def flat(self) -> bool:
        """Whether different values have different numbers to everyone."""
        return True

    @property
    def is_odd(self) -> bool:
        """Return whether something is for readers of objects."""
        tables = self.tables
        is_flat = tables.keys.flat and tables.plain.flat and None not in tables.keys.things
        return not (is_flat and tables.chains.are_plain)

    @property
    def things(self) -> Transactions:
        """Return the transactions by number."""
        begins = np.cumsum(np.concatenate([[0], *self.sizes]), dtype=np.int64)
        functions, keys, plain, chains, sizes = zip(*self.parts, strict=True)
        parts = Parts(
            np.concatenate(functions),
            np.concatenate(keys),
            np.concatenate(plain),
            np.concatenate(chains),
            np.concatenate(sizes),
        )
        tables = self.tables
        return Transactions(
            begins,
            parts,
            tables.functions.things,
            tables.keys.things,
            tables.plain.things,
            tables.chains.texts,
        )
