"""The command line of ``splitbrain try``."""

from pathlib import Path
from typing import Annotated, Any

import msgspec

from splitbrain.contracts.experiment import (
    CONCURRENCY_MAX,
    OPERATION_TIMEOUT_S_MAX,
    RATE_MAX,
    TIME_LIMIT_S_MAX,
    Option,
)
from splitbrain.contracts.scenario import SEED_MAX


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
    time_limit_s: Annotated[
        float,
        Option(
            "How long the load lasts: 60, 500ms, 1m or 1h30m; a number is of seconds.",
            above=0,
            most=TIME_LIMIT_S_MAX,
            unit="of seconds",
            group="Load",
        ),
    ] = 30.0
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
    seed: Annotated[
        int,
        Option(
            "Master seed; drawn and printed if not given.",
            0,
            SEED_MAX,
            group="Load",
        ),
    ] = 1
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
    rate: Annotated[
        float,
        Option(
            "Operations per second over all slots.",
            above=0,
            most=RATE_MAX,
            group="Load",
        ),
    ] = 100.0
    operation_timeout_s: Annotated[
        float,
        Option(
            "Time after which an operation's outcome is unknown, such as 1 or 500ms.",
            above=0,
            most=OPERATION_TIMEOUT_S_MAX,
            unit="of seconds",
            group="Load",
        ),
    ] = 1.0
    settings: Annotated[
        dict[str, str],
        Option(
            "NAME=VALUE, a setting of the driver (password=...); repeatable.",
            group="System",
        ),
    ] = {}
    workload_options: Annotated[
        dict[str, Any],
        Option(
            "NAME=VALUE, an option of the workload; repeatable.",
            group="Load",
        ),
    ] = {}
