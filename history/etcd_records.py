"""Records of etcd's robustness tests, as Go writes them to JSON; only the fields read here.

Source: etcd-io/etcd, tests/robustness/model/types.go and report/client.go.
"""

import msgspec

#: Values of more bytes are kept as their FNV-1a hash, except in the requests of transactions.
PLAIN_BYTES_MAX = 19
_FNV_OFFSET, _FNV_PRIME, _FNV_MASK = 0x811C9DC5, 0x01000193, 0xFFFFFFFF


class Value(msgspec.Struct, frozen=True):
    """Value, or the hash of a long one."""

    value: str = msgspec.field(default="", name="Value")
    hash: int = msgspec.field(default=0, name="Hash")


class Span(msgspec.Struct, frozen=True, rename="pascal"):
    """Range of keys, with the revision of a read."""

    start: str = ""
    end: str = ""
    limit: int = 0
    revision: int = 0


class Put(msgspec.Struct, frozen=True):
    """Put of a value, perhaps for the time of a lease."""

    key: str = msgspec.field(default="", name="Key")
    value: Value = msgspec.field(default=Value(), name="Value")
    lease: int = msgspec.field(default=0, name="LeaseID")


class Delete(msgspec.Struct, frozen=True, rename="pascal"):
    """Deletion of a key."""

    key: str = ""


class Step(msgspec.Struct, frozen=True, rename="pascal"):
    """Operation of a transaction."""

    type: str
    range: Span = Span()
    put: Put = Put()
    delete: Delete = Delete()


class Condition(msgspec.Struct, frozen=True, rename="pascal"):
    """Condition of a transaction on a key."""

    key: str
    expected_revision: int = 0
    expected_version: int = 0


class Transaction(msgspec.Struct, frozen=True, rename="pascal"):
    """Conditions and two branches."""

    conditions: list[Condition] | None = None
    operations_on_success: list[Step] | None = None
    operations_on_failure: list[Step] | None = None


class Request(msgspec.Struct, frozen=True, rename="pascal"):
    """Request of any kind."""

    type: str
    range: Span | None = None
    txn: Transaction | None = None


class KeyValue(msgspec.Struct, frozen=True, rename="pascal"):
    """Key with its value and the revision of that."""

    key: str
    value: Value = Value()
    mod_revision: int = 0


class Found(msgspec.Struct, frozen=True):
    """Result of a range; a put or delete inside a transaction finds nothing."""

    pairs: list[KeyValue] | None = msgspec.field(default=None, name="KVs")
    count: int = msgspec.field(default=0, name="Count")


class Answers(msgspec.Struct, frozen=True, rename="pascal"):
    """Answer to a transaction."""

    failure: bool = False
    results: list[Found] | None = None


class Response(msgspec.Struct, frozen=True, rename="pascal"):
    """Response, or the reason why there is none."""

    txn: Answers | None = None
    range: Found | None = None
    revision: int = 0
    error: str = ""
    client_error: str = ""
    persisted: bool = False
    partial_response: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the client has an answer."""
        unknown = self.error or self.client_error or self.persisted or self.partial_response
        return not unknown


class Recorded(msgspec.Struct, frozen=True, rename="pascal"):
    """Line of the record; times in nanoseconds since the start of the test."""

    client_id: int
    input: Request
    call: int
    output: Response
    # Named as in Go.
    return_: int = msgspec.field(default=0, name="Return")


def plain_text(value: Value) -> str:
    """Return a value, or the text that stands for a long one; the same for both."""
    if value.hash:
        return f"#{value.hash:08x}"
    encoded = value.value.encode()
    if len(encoded) <= PLAIN_BYTES_MAX:
        return value.value
    digest = _FNV_OFFSET
    for byte in encoded:
        digest = ((digest ^ byte) * _FNV_PRIME) & _FNV_MASK
    return f"#{digest:08x}"
