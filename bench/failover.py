"""How long a cluster takes to accept writes again after its leader was hit.

``python -m bench.failover --system kraft --fault kill --runs 100`` deploys one cluster, hits its
leader again and again (``kill``, ``pause``, or ``partition`` from all other nodes), and measures
from the moment the fault was asked for to the first acknowledgement, by a leader of a new epoch,
of a write that was invoked after it: of any writer (one is pinned to each node), and of clients
that look for the leader themselves. ``--idle-minutes`` and ``--loaded-minutes`` count the elections
without any fault beside it. Settings by ``--profile`` (``failover_profiles.toml``) and
``--setting NAME=VALUE``. Prints a table, and one JSON object on the last line; exits with 1 if a
failover never ended.

``python -m bench.failover --all --runs 5 [--only TITLE ...] [--plot FILE.svg]`` measures several
systems, one after the other, and prints one table (``bench.failover_peers``): of Kafka it is the
controller that is hit, and changes are topics that are created through a broker. There the first
change counts that was asked for once the fault was done, of all systems alike.
"""

import argparse
import asyncio
import json
import random
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.failover_arithmetic import Failover, TimedFault, spread
from bench.failover_cluster import PATIENCE_S, Cluster, deployed
from bench.failover_elections import Quiet, idle, loaded, whole_lines
from bench.failover_measurement import FAULTS, Measurements, measure
from bench.failover_peers import PEERS
from bench.failover_table import picture, table
from bench.failover_writers import WriterOptions
from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.state_event import StateEvent

PROFILES: Final = Path(__file__).with_name("failover_profiles.toml")
_INTERVAL_MS: Final = 10.0
#: Where changes of one system are topics, which stay.
_INTERVAL_OF_PEERS_MS: Final = 50.0


def _line(result: Failover | None) -> str:
    """Result of one measurement."""
    if result is None:
        return f"no acknowledgement within {PATIENCE_S:g} s"
    return (
        f"injected in {result.injection_ms:7.1f} ms, any writer {result.any_writer_ms:8.1f} ms, "
        f"following {result.following_ms:8.1f} ms"
    )


def settings_of(system: str, profile: str | None, given: Sequence[str]) -> dict[str, str]:
    """Return the profile's settings for this system, overridden by those given one by one.

    Raises:
        UsageError: the profile is unknown or not for this system; a setting has no value.
    """
    settings: dict[str, str] = {}
    if profile is not None:
        profiles = tomllib.loads(PROFILES.read_text())
        fitting = sorted(name for name, systems in profiles.items() if system in systems)
        if profile not in fitting:
            raise UsageError(
                f"there is no profile {profile!r} for {system!r}",
                f"Choose one of: {', '.join(fitting) or 'none'}; or add it to {PROFILES.name}",
            )
        settings.update(profiles[profile][system])
    for text in given:
        name, separator, value = text.partition("=")
        if not (name and separator and value):
            raise UsageError(f"the setting {text!r} has no value", "Give it as NAME=VALUE")
        settings[name] = value
    return settings


def summary_of(measurements: Measurements) -> dict[str, object]:
    """Figures of one kind of fault, for the JSON object."""
    figures: dict[str, object] = {
        "runs": len(measurements.failovers),
        "unfinished": measurements.unfinished_count,
        "spoilt": measurements.spoilt_count,
    }
    if measurements.failovers:
        for name in ("injection_ms", "any_writer_ms", "following_ms"):
            values = [getattr(failover, name) for failover in measurements.failovers]
            figures[name.removesuffix("_ms")] = msgspec.to_builtins(spread(values))
    return figures


def _print_spreads(fault: str, measurements: Measurements) -> None:
    for title, name in (("any writer", "any_writer_ms"), ("following client", "following_ms")):
        values = [getattr(failover, name) for failover in measurements.failovers]
        if values:
            of = spread(values)
            print(
                f"{fault:>10} {title:>17} {len(values):>5} {of.median_ms:>10.0f} "
                f"{of.p99_ms:>8.0f} {of.max_ms:>8.0f}"
            )


def _print_quiet(quiet: Quiet) -> None:
    latency = quiet.latency
    latencies = "" if latency is None else f"{latency.median_ms:>9.2f} {latency.p99_ms:>8.2f}"
    roles = ", ".join(f"{role} {count}" for role, count in quiet.roles.items()) or "no role taken"
    print(
        f"{quiet.load:>18} {quiet.minutes:>8.1f} {quiet.epochs:>7} "
        f"{quiet.operations_per_second:>8.0f} {quiet.failed:>7} {latencies:>18}  {roles}",
        flush=True,
    )


def story(cluster: Cluster, fault: TimedFault) -> list[str]:
    """One line per start and change of role since the fault was asked for, in order of time."""
    events: list[tuple[float, StateEvent]] = []
    for file in cluster.state_event_files().values():
        for line in whole_lines(file, 0):
            event = msgspec.json.decode(line, type=StateEvent)
            if event.kind in ("role", "started") and event.node_time is not None:
                events.append(((event.node_time - fault.asked_ns) / 1e6, event))
    return [
        f"{at_ms:9.1f} ms  {event.node} {event.role} in epoch {event.epoch}: "
        f"{event.reason or event.kind}"
        for at_ms, event in sorted(events, key=lambda pair: pair[0])
        if at_ms >= 0
    ]


class Figures(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    faults: dict[str, Measurements]
    without_faults: list[Quiet]


async def _bench(cluster: Cluster, options: argparse.Namespace) -> Figures:
    writer_options = WriterOptions(
        interval_s=options.interval_ms / 1_000,
        timeout_s=options.timeout_ms / 1_000,
        tells_epochs=not options.all,
    )
    faults = options.fault or ([] if options.runs == 0 else list(FAULTS))
    results: dict[str, Measurements] = {}
    phases = random.Random(options.seed)
    for fault in faults:

        def tell(number: int, hit: TimedFault, result: Failover | None, fault: str = fault) -> None:
            print(f"{fault:>10} {number:>5} {_line(result)}", flush=True)
            if result is None or result.any_writer_ms > options.story_above_ms:
                for line in story(cluster, hit):
                    print(line, flush=True)

        results[fault] = await measure(cluster, fault, options.runs, writer_options, phases, tell)
    quiets: list[Quiet] = []
    if options.idle_minutes or options.loaded_minutes:
        print(
            f"{'without faults':>18} {'minutes':>8} {'epochs':>7} {'op/s':>8} {'failed':>7}"
            f" {'p50 ms':>9} {'p99 ms':>8}  roles taken"
        )
    if options.idle_minutes:
        quiets.append(await idle(cluster, options.idle_minutes))
        _print_quiet(quiets[-1])
    if options.loaded_minutes:
        for rate in options.rate or [200.0, 0.0]:
            quiets.append(await loaded(cluster, options.loaded_minutes, rate))
            _print_quiet(quiets[-1])
    if results:
        print(
            f"{'fault':>10} {'writer':>17} {'runs':>5} {'median ms':>10} {'p99 ms':>8} {'max':>8}"
        )
        for fault, measurements in results.items():
            _print_spreads(fault, measurements)
    return Figures(results, quiets)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.failover", description=__doc__)
    parser.add_argument("--system", default="kraft")
    parser.add_argument("--runtime", default="docker")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--fault", action="append", choices=FAULTS, help="default: each of them")
    parser.add_argument("--runs", type=int, default=30, help="of each fault; 0 for none")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the faults")
    parser.add_argument("--profile", help=f"settings from {PROFILES.name}")
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--interval-ms", type=float, help="between a writer's writes")
    parser.add_argument("--all", action="store_true", help="several systems, side by side")
    parser.add_argument("--only", action="append", default=[], metavar="TITLE", help="of these")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="a picture of the table")
    parser.add_argument("--timeout-ms", type=float, default=300.0, help="of one write")
    parser.add_argument(
        "--story-above-ms", type=float, default=1_000.0, help="tell what nodes did in slow ones"
    )
    parser.add_argument("--idle-minutes", type=float, default=0.0)
    parser.add_argument("--loaded-minutes", type=float, default=0.0, help="at each rate")
    parser.add_argument(
        "--rate",
        type=float,
        action="append",
        help="writes a second while loaded, 0 for no limit; default: 200, then no limit",
    )
    return parser


def main() -> int:
    """Measure and print."""
    options = _parser().parse_args()
    if options.interval_ms is None:
        options.interval_ms = _INTERVAL_OF_PEERS_MS if options.all else _INTERVAL_MS
    if options.all:
        return _side_by_side(options)
    try:
        settings = settings_of(options.system, options.profile, options.setting)
        chosen = Experiment(system=options.system, nodes=options.nodes, settings=settings)
        with deployed(options.system, options.runtime, chosen, "failover") as cluster:
            figures = asyncio.run(_bench(cluster, options))
    except HarnessError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    head = {
        "bench": "failover",
        "system": options.system,
        "runtime": options.runtime,
        "nodes": options.nodes,
        "profile": options.profile,
        "settings": settings,
    }
    body = {
        "faults": {fault: summary_of(figure) for fault, figure in figures.faults.items()},
        "without_faults": msgspec.to_builtins(figures.without_faults),
    }
    print(json.dumps({**head, **body}))
    return 1 if any(figure.unfinished_count for figure in figures.faults.values()) else 0


def _side_by_side(options: argparse.Namespace) -> int:
    """Measure the peers, print and draw; returns the exit code."""
    found: dict[str, dict[str, Measurements]] = {}
    for peer in PEERS:
        if options.only and peer.title not in options.only:
            continue
        print(peer.title, flush=True)
        try:
            settings = settings_of(peer.system, peer.profile, ()) | dict(peer.settings)
            chosen = Experiment(system=peer.system, nodes=options.nodes, settings=settings)
            with deployed(peer.adapter(), options.runtime, chosen, "failover") as cluster:
                found[peer.title] = asyncio.run(_bench(cluster, options)).faults
        except HarnessError as error:
            print(error, file=sys.stderr)
            return error.exit_code
    faults = options.fault or list(FAULTS)
    rows = {title: {fault: of[fault].failovers for fault in faults} for title, of in found.items()}
    print(*table(rows, faults), sep="\n")
    if options.plot is not None:
        options.plot.write_text(picture(rows, faults))
    every = {
        title: {fault: summary_of(figure) for fault, figure in of.items()}
        for title, of in found.items()
    }
    print(json.dumps({"bench": "failover", "runtime": options.runtime, "systems": every}))
    is_unfinished = any(figure.unfinished_count for of in found.values() for figure in of.values())
    return 1 if is_unfinished else 0


if __name__ == "__main__":
    sys.exit(main())
