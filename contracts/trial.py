"""The command lines of ``splitbrain try``, and of commands that judge a cluster that is there."""

from pathlib import Path
from typing import Annotated, Final

import msgspec

from splitbrain.contracts.experiment import (
    CONCURRENCY_MAX,
    TIME_LIMIT_S_MAX,
    OperationTimeout,
    Option,
    Rate,
    Seed,
    TimeLimit,
    WorkloadOptions,
)


class TrialOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``splitbrain try``; None: not given."""

    file: Annotated[Path, Option("Compose file of local images.", is_positional=True)]
    ports: Annotated[
        tuple[str, ...],
        Option(
            "SERVICE:PORT that clients ask, the port inside of the container; repeatable.",
            group="System",
        ),
    ] = ()
    driver: Annotated[
        str,
        Option(
            "Protocol of these ports: redis, http, etcd, kafka, postgres, or a file of your own.",
            group="System",
        ),
    ] = ""
    spares: Annotated[
        tuple[str, ...],
        Option(
            "Service that no fault is aimed at; repeatable.",
            group="Faults",
        ),
    ] = ()
    nemesis: Annotated[
        str | None,
        Option(
            "Faults as of `splitbrain test`; a service's name is a target, as in kill:store. By "
            "default partition,pause,kill, of one container pause,kill.",
            group="Faults",
        ),
    ] = None
    time_limit_s: TimeLimit = 30.0
    notices_s: Annotated[
        float | None,
        Option(
            "Time after which the containers notice that one of them is silent; every other "
            "drawn fault lasts half as long again, where the time limit lets it.",
            above=0,
            most=TIME_LIMIT_S_MAX,
            unit="of seconds",
            group="Faults",
        ),
    ] = None
    seed: Seed = 1
    workload: Annotated[
        str | None,
        Option(
            "What clients do, as the driver has it: register or set.",
            group="Load",
        ),
    ] = None
    concurrency: Annotated[
        int,
        Option(
            "Worker slots.",
            1,
            CONCURRENCY_MAX,
            group="Load",
        ),
    ] = 10
    rate: Rate = 100.0
    operation_timeout_s: OperationTimeout = 1.0
    settings: Annotated[
        dict[str, str],
        Option(
            "NAME=VALUE, a setting of the driver (password=...); repeatable.",
            group="System",
        ),
    ] = {}
    workload_options: WorkloadOptions = {}


#: Commands that judge a cluster that is there already (``systems.verifiers``).
VERIFY_COMMANDS: Final = ("kafka-verify",)


class StandingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a command that judges a cluster that is there already."""

    bootstrap: Annotated[
        str, Option("HOST:PORT of a broker, or several with commas.", is_positional=True)
    ]
    command_config: Annotated[
        Path | None,
        Option(
            "File of properties by which clients are let in: security.protocol, sasl.mechanism, "
            "sasl.jaas.config, ssl.ca.location and their like.",
            group="System",
        ),
    ] = None
    time_limit_s: TimeLimit = 60.0
    seed: Seed = 1
    concurrency: Annotated[int, Option("Worker slots.", 1, CONCURRENCY_MAX, group="Load")] = 10
    rate: Rate = 100.0
    operation_timeout_s: OperationTimeout = 5.0
    settings: Annotated[
        dict[str, str],
        Option(
            "NAME=VALUE, a setting of clients (acks=1) or of the topic that is made "
            "(replicas=1, min.insync.replicas=1); repeatable.",
            group="System",
        ),
    ] = {}
    workload_options: WorkloadOptions = {}
