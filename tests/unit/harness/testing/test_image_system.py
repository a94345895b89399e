import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.harness.testing.image_system import Ask, Connect, FunctionClient, ImageSystem
from splitbrain.systems.servers import Refused

THERE = Address("127.0.0.1", 1)
WRITE = Operation("write", "x", 1)


class LibraryError(Exception):
    """Of somebody's client library, which derives from no error of Python's own."""


def raising(error: Exception) -> Callable[[Any], Any]:
    def fail(_: object) -> Any:
        raise error

    return fail


def outcome(connect: Connect, timeout_s: float = 5.0) -> Completion:
    async def invoked() -> Completion:
        client = FunctionClient(connect, NodeName("n1"), THERE)
        try:
            return await client.invoke(WRITE, timeout_s)
        finally:
            await client.close()

    return asyncio.run(invoked())


def test_it_returns_the_value_of_an_ok() -> None:
    done = outcome(lambda there: lambda operation: [there.port, operation.value])
    assert done == Completion("ok", [1, 1], node="n1")


def test_a_context_is_left_once_it_is_of_no_more_use() -> None:
    left = threading.Event()

    @contextmanager
    def connect(there: Address) -> Generator[Ask]:
        yield lambda operation: there.port
        left.set()

    assert outcome(connect) == Completion("ok", 1, node="n1")
    assert left.wait(10)


@pytest.mark.parametrize("error", [ConnectionRefusedError(), LibraryError("refused")])
def test_an_operation_without_a_connection_has_failed(error: Exception) -> None:
    assert outcome(raising(error)) == Completion("fail", error="no-connection")


@pytest.mark.parametrize("error", [BrokenPipeError(), EOFError(), LibraryError("gone")])
def test_nobody_knows_of_an_operation_whose_connection_broke(error: Exception) -> None:
    done = outcome(lambda there: raising(error))
    assert done == Completion("info", error="connection-broken")


def test_a_refusal_is_certain() -> None:
    done = outcome(lambda there: raising(Refused("too-many")))
    assert done == Completion("fail", error="too-many", node="n1")


@pytest.mark.parametrize("place", ["connect", "ask"])
def test_nobody_knows_of_an_operation_that_took_too_long(place: str) -> None:
    released = threading.Event()

    def wait(_: object) -> None:
        released.wait(20)

    connect = wait if place == "connect" else (lambda there: wait)
    try:
        # It may still be sent, also where there was no connection yet.
        assert outcome(connect, 0.05) == Completion("info", error="timeout")  # type: ignore[arg-type]
    finally:
        released.set()


def test_an_error_of_the_functions_own_is_not_taken_for_one_of_the_system() -> None:
    with pytest.raises(KeyError):
        outcome(lambda there: raising(KeyError("x")))


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("redis:7", "redis"),
        ("host:5000/team/queue:1.2", "queue"),
        ("queue@sha256:00ff", "queue"),
        ("queue", "queue"),
    ],
)
def test_it_is_called_as_its_image_is(image: str, name: str) -> None:
    system = ImageSystem(image, (), 1, lambda there: lambda operation: None, "set")
    assert (system.name, system.workloads(None)) == (name, ("set",))
    with pytest.raises(UsageError, match="cannot run on the runtime 'local'"):
        system.check_options(Experiment(system=name, runtime="local"))
