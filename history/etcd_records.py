"""The records of etcd's robustness tests, as Go writes them to JSON; only what is read here.

Source: etcd-io/etcd, tests/robustness/model/types.go and report/client.go.
"""

import msgspec

#: Values of more bytes are kept as their FNV-1a hash, except in the requests of transactions.
PLAIN_BYTES_MAX = 19
_FNV_OFFSET, _FNV_PRIME, _FNV_MASK = 0x811C9DC5, 0x01000193, 0xFFFFFFFF


class Value(msgspec.Struct, frozen=True):
    """A value, or the hash of a long one."""

    value: str = msgspec.field(default="", name="Value")
    hash: int = msgspec.field(default=0, name="Hash")


class Span(msgspec.Struct, frozen=True, rename="pascal"):
    """The keys that are read, and their revision."""

    start: str = ""
    end: str = ""
    limit: int = 0
    revision: int = 0


class Put(msgspec.Struct, frozen=True):
    """A key gets a value, perhaps for as long as a lease lasts."""

    key: str = msgspec.field(default="", name="Key")
    value: Value = msgspec.field(default=Value(), name="Value")
    lease: int = msgspec.field(default=0, name="LeaseID")


class Delete(msgspec.Struct, frozen=True, rename="pascal"):
    """A key goes."""

    key: str = ""


class Step(msgspec.Struct, frozen=True, rename="pascal"):
    """One operation of a transaction."""

    type: str
    range: Span = Span()
    put: Put = Put()
    delete: Delete = Delete()


class Condition(msgspec.Struct, frozen=True, rename="pascal"):
    """Demand of a transaction on a key before it does anything."""

    key: str
    expected_revision: int = 0
    expected_version: int = 0


class Transaction(msgspec.Struct, frozen=True, rename="pascal"):
    """Conditions and two branches."""

    conditions: list[Condition] | None = None
    operations_on_success: list[Step] | None = None
    operations_on_failure: list[Step] | None = None


class Request(msgspec.Struct, frozen=True, rename="pascal"):
    """A request."""

    type: str
    range: Span | None = None
    txn: Transaction | None = None


class KeyValue(msgspec.Struct, frozen=True, rename="pascal"):
    """A key with its value and the revision that gave it that."""

    key: str
    value: Value = Value()
    mod_revision: int = 0


class Found(msgspec.Struct, frozen=True):
    """Result of a range; a put or delete inside a transaction finds nothing."""

    pairs: list[KeyValue] | None = msgspec.field(default=None, name="KVs")
    count: int = msgspec.field(default=0, name="Count")


class Answers(msgspec.Struct, frozen=True, rename="pascal"):
    """The answer to a transaction."""

    failure: bool = False
    results: list[Found] | None = None


class Response(msgspec.Struct, frozen=True, rename="pascal"):
    """A response, or why there is none."""

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
    """One line; times in nanoseconds since the start of the test."""

    client_id: int
    input: Request
    call: int
    output: Response
    # Read with the name that Go gave it.
    return_: int = msgspec.field(default=0, name="Return")


def plain_text(value: Value) -> str:
    """A value, or what stands for a long one; the same for both."""
    if value.hash:
        return f"#{value.hash:08x}"
    encoded = value.value.encode()
    if len(encoded) <= PLAIN_BYTES_MAX:
        return value.value
    digest = _FNV_OFFSET
    for byte in encoded:
        digest = ((digest ^ byte) * _FNV_PRIME) & _FNV_MASK
    return f"#{digest:08x}"
