"""Record batches of the simulated world: how a fetch answer carries entries, and back."""

import msgspec

from nodes.quorum.effects import AnswerFetch
from nodes.quorum.identifiers import Offset
from nodes.quorum.messages import BatchHeader, FetchAnswer
from tests.simulation.disk import Entry

#: The payloads of each batch, None for a LeaderChange.
Batches = list[list[bytes | None]]
_DECODER = msgspec.msgpack.Decoder(Batches)
_ENCODER = msgspec.msgpack.Encoder()


def fill(effect: AnswerFetch, log: list[Entry], batches_max: int) -> FetchAnswer:
    """The answer with whole batches from the page cache, no more than so many of them."""
    headers: list[BatchHeader] = []
    batches: Batches = []
    offset = effect.read_offset
    while offset < effect.end_offset and len(headers) < batches_max:
        first = offset
        payloads: list[bytes | None] = []
        while offset < effect.end_offset and (offset == first or not log[offset].first):
            payloads.append(log[offset].payload)
            offset = Offset(offset + 1)
        headers.append(BatchHeader(first, Offset(offset - 1), log[first].epoch, 100))
        batches.append(payloads)
    return msgspec.structs.replace(
        effect.answer, batches=tuple(headers), records=_ENCODER.encode(batches)
    )


def decode_batches(headers: tuple[BatchHeader, ...], records: bytes) -> tuple[Entry, ...]:
    """The entries of a fetch answer."""
    entries: list[Entry] = []
    for header, payloads in zip(headers, _DECODER.decode(records), strict=True):
        entries.extend(
            Entry(header.epoch, payload, index == 0) for index, payload in enumerate(payloads)
        )
    return tuple(entries)
