"""A client in front of a system's own, for workloads that need more than a key and a value.

It tells functions of one name apart, and remembers the tokens of the leases that its slot believes
to hold, which no operation can know. Must never change an outcome that the system's client told.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from splitbrain.contracts.operations import Client, Completion, Operation

LEASE: Final = "lease"
#: Functions that do something else than another workload's of that name.
_APART: Final[Mapping[tuple[str | None, str], str]] = {
    ("bank", "read"): "read-bank",
    (LEASE, "read"): "read-guarded",
    (LEASE, "write"): "write-guarded",
    (LEASE, "acquire"): "acquire-lease",
    (LEASE, "release"): "release-lease",
}
#: Nothing was asked: the client does not believe to hold that lock.
_NOT_HELD: Final = "not-held"


def told_apart(workload: str | None, operation: Operation) -> Operation:
    """Return the operation with a function that means one thing alone."""
    name = _APART.get((workload, operation.f))
    return operation if name is None else msgspec.structs.replace(operation, f=name)


def client_for(workload: str | None, client: Client) -> Client:
    """Return a client of the workload's operations, by one that knows functions told apart."""
    if workload == LEASE:
        return _LeaseClient(client)
    return _Apart(client, workload) if any(of == workload for of, _ in _APART) else client


class _Apart:
    def __init__(self, client: Client, workload: str | None) -> None:
        self._client, self._workload = client, workload

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        return await self._client.invoke(told_apart(self._workload, operation), timeout_s)

    async def close(self) -> None:
        await self._client.close()


class _LeaseClient(_Apart):
    """Believes to hold a lease until it asks for its release, however much time has gone by."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, LEASE)
        self._tokens: dict[str | None, int] = {}

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        if operation.f in ("write", "release"):
            token = self._tokens.get(operation.key)
            if token is None:
                return Completion("fail", error=_NOT_HELD)
            value = [token, operation.value[1]] if operation.f == "write" else token
            operation = msgspec.structs.replace(operation, value=value)
        if operation.f == "release":
            del self._tokens[operation.key]
        completion = await super().invoke(operation, timeout_s)
        if operation.f == "acquire" and completion.type == "ok" and completion.value is not False:
            self._tokens[operation.key] = completion.value
        return completion
