"""Small random mistakes in the nodes, and how many of them anything notices.

``python -m bench.mutants [--room quorum|above] [--count 60] [--seed 1] [--seeds 0:30]
[--files PATH ...] [--jobs 1] [--time-limit 30m] [--ledger FILE] [--every-stage]
[--again ID,...|survivors]``.

Draws mutants (``bench.mutant_sites``) at random from a room (``bench.mutant_rooms``: consensus and
storage, or what stands above the log) and shows each one to the stages in turn, until one notices:

- ``transcripts``: the golden traces of the quorum, for its own mutants;
- ``unit``: the unit tests of the mutant's room, which take seconds;
- ``seeds``: worlds of the simulation, drawn and judged as ``splitbrain sim`` does. An invariant, a
  checker or a defect kills; another trace does not, for it may be as good;
- ``rest``: properties, and the units above; only what all others let pass comes here.

The room ``above`` is judged by seeds alone, those of the state machine that the mutant is part of.
A mutant is run in no world before the first that comes to the statement it changes: there it does
what the code as it is does (``bench.mutant_reach``).

``--every-stage`` goes on after a kill, which gives the score of each stage alone. First the code as
it is goes through all stages; if one of them objects, nothing would be worth saying: exit code 1.
Survivors named in ``docs/mutants.md`` are explained there. The last line is one JSON object.

Our own mutator, not mutmut or cosmic-ray: both run one test command for each mutant, whereas here
the stages differ in kind, the simulation tells which seed and which invariant noticed, and the
sources must stay untouched because others work in the same tree. Each stage is a process of its
own. Source: issue 5, item 6.
"""

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from bench.mutant_child import CANNOT_RUN, StageOrder, StageResult
from bench.mutant_draw import drawn, sources_of
from bench.mutant_ledger import Entry, Ledger
from bench.mutant_reach import places_of
from bench.mutant_rooms import ROOMS, ROOT, files_of, room_of, state_machine_of
from bench.mutant_sites import Mutant
from bench.trace_hashes import seeds_of

EXPLANATIONS: Final = ROOT / "docs" / "mutants.md"
_SEEDS: Final = "seeds"
_REST: Final = "rest"
#: Stages in their order; seeds and the rest are for both rooms.
STAGES: Final = ("transcripts", "unit", _SEEDS, _REST)
#: By room and stage: who might notice. Transcripts know no storage.
_TESTS: Final = {
    "nodes/quorum": {
        "transcripts": ("tests/transcripts",),
        "unit": ("tests/unit/nodes/quorum",),
    },
    "nodes/storage": {"unit": ("tests/unit/nodes/storage",)},
}
_REST_TESTS: Final = ("tests/properties", "tests/unit/nodes/wire", "tests/unit/nodes/server")
#: Processor time that a mutant may use: so many times what the control run used, and some more.
_CPU_FACTOR: Final = 4
_CPU_S_ADDED: Final = 15
#: Processor time of the control run.
_CONTROL_CPU_S_MAX: Final = 3_600
#: Wall time for each second of processor time, against a process that only waits.
_WALL_FACTOR: Final = 6
_SHOWN_MAX: Final = 100
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3_600}

RunStage = Callable[[StageOrder], StageResult]


def run_stage(order: StageOrder) -> StageResult:
    """One stage in a process of its own; what makes the process end kills the mutant, too.

    Raises:
        RuntimeError: a file has changed since its mutants were drawn.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        order_file, result_file = Path(folder, "order.json"), Path(folder, "result.json")
        order_file.write_bytes(msgspec.json.encode(order))
        command = [sys.executable, "-B", "-m", "bench.mutant_child", order_file, result_file]
        try:
            ended = subprocess.run(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_WALL_FACTOR * order.cpu_s_max,
            )
        except subprocess.TimeoutExpired:
            return StageResult(killed_by="timeout: it waits for ever")
        if result_file.exists():
            return msgspec.json.decode(result_file.read_bytes(), type=StageResult)
        if ended.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return StageResult(killed_by="timeout: it computes for ever", cpu_s=order.cpu_s_max)
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        if ended.returncode == CANNOT_RUN:
            raise RuntimeError(lines[-1])
        if any("Timeout" in line for line in lines):
            return StageResult(killed_by="timeout: a test hangs")
        return StageResult(killed_by=f"exit {ended.returncode}: {lines[-1] if lines else ''}")


class Campaign:
    """Shows mutants to the stages, and writes down who notices."""

    def __init__(self, options: argparse.Namespace, ledger: Ledger, run: RunStage) -> None:
        self._options = options
        self._ledger = ledger
        self._run = run
        self._files = tuple(options.files)
        self._sources = sources_of(self._files)
        #: Processor time of each stage in the control run, by its extent.
        self._cpu_s: dict[tuple[str, str], float] = {}
        #: Of the control run, by its seeds.
        self._controls: dict[str, StageResult] = {}

    def control(self) -> str | None:
        """Show the code as it is to all stages; what they object, None in order."""
        machines = list(dict.fromkeys(map(state_machine_of, self._files)))
        for stage in self._options.stages:
            for machine in machines if stage == _SEEDS else machines[:1]:
                extent = self._extent(stage, machine)
                result = self._run(self._order(None, stage, machine, _CONTROL_CPU_S_MAX))
                if result.killed_by is not None:
                    return f"{stage}: {result.killed_by}"
                self._cpu_s[stage, extent] = result.cpu_s
                if stage == _SEEDS:
                    self._controls[extent] = result
                print(f"control: {stage} {extent} passes in {result.cpu_s:.1f} s", flush=True)
        return None

    def judge(self, mutant: Mutant) -> list[Entry]:
        """Return the stages that were run for the mutant; none if all is known."""
        fresh: list[Entry] = []
        is_killed = False
        machine = state_machine_of(mutant.file)
        for stage in self._options.stages:
            if stage != _SEEDS and not tests_of(stage, mutant):
                continue
            extent = self._extent(stage, machine)
            result = self._ledger.result(mutant.id, stage, extent)
            if result is None:
                if is_killed and (not self._options.every_stage or stage == _REST):
                    continue
                result = self._result(mutant, stage, machine)
                source = self._sources[mutant.file]
                fresh.append(
                    Entry(mutant=mutant, stage=stage, extent=extent, source=source, result=result)
                )
            is_killed = is_killed or result.killed_by is not None
        return fresh

    def _result(self, mutant: Mutant, stage: str, machine: str) -> StageResult:
        extent = self._extent(stage, machine)
        cpu_s_max = round(_CPU_FACTOR * self._cpu_s[stage, extent]) + _CPU_S_ADDED
        order = self._order(mutant, stage, machine, cpu_s_max)
        control = self._controls.get(extent)
        place = places_of((ROOT / mutant.file).read_text(), mutant.file)[mutant.number]
        if stage != _SEEDS or control is None or control.first_seeds is None or place is None:
            return self._run(order)
        if place not in control.first_seeds:
            return StageResult(killed_by=None, traces=control.traces)
        first_seed = control.first_seeds[place]
        known = control.hashes[: first_seed - order.first_seed]
        return self._run(msgspec.structs.replace(order, first_seed=first_seed, known_hashes=known))

    def has_other_traces(self, mutant: Mutant) -> bool | None:
        """Whether the simulation does anything else with it; None: not known."""
        extent = self._extent(_SEEDS, state_machine_of(mutant.file))
        result = self._ledger.result(mutant.id, _SEEDS, extent)
        control = self._controls.get(extent)
        if result is None or control is None or not result.traces or not control.traces:
            return None
        return result.traces != control.traces

    def _extent(self, stage: str, machine: str) -> str:
        if stage != _SEEDS:
            return ""
        seeds: range = self._options.seeds
        return f"{'' if machine == 'registers' else f'{machine} '}{seeds.start}:{seeds.stop}"

    def _order(self, mutant: Mutant | None, stage: str, machine: str, cpu_s_max: int) -> StageOrder:
        seeds: range = self._options.seeds
        return StageOrder(
            mutant=mutant,
            files=self._files,
            tests=tests_of(stage, mutant),
            state_machine=machine,
            first_seed=seeds.start,
            end_seed=seeds.stop,
            cpu_s_max=cpu_s_max,
        )


def tests_of(stage: str, mutant: Mutant | None) -> tuple[str, ...]:
    """Return pytest's arguments in a stage; all of the stage's for the control run."""
    if mutant is not None and room_of(mutant.file) == "above":
        return ()
    if stage == _REST:
        return _REST_TESTS
    rooms = _TESTS if mutant is None else [mutant.file.rpartition("/")[0]]
    return tuple(path for room in rooms for path in _TESTS[room].get(stage, ()))


def explained() -> frozenset[str]:
    """Names of the survivors that are explained: the first cells of the table's rows."""
    if not EXPLANATIONS.exists():
        return frozenset()
    return frozenset(re.findall(r"^\| `([0-9a-f]{8})` \|", EXPLANATIONS.read_text(), re.MULTILINE))


def _seconds(text: str) -> int:
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS_S or not number.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; write 90s, 30m or 2h")
    return int(number) * _UNITS_S[unit]


def _stages(text: str) -> tuple[str, ...]:
    names = text.split(",")
    for name in names:
        if name not in STAGES:
            raise argparse.ArgumentTypeError(f"there is no stage {name!r}; {', '.join(STAGES)}")
    return tuple(stage for stage in STAGES if stage in names)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--seeds", type=seeds_of, default=range(30), help="worlds, as in 0:30")
    parser.add_argument("--room", choices=ROOMS, default="quorum", help="to be mutated")
    parser.add_argument("--files", nargs="+", help="of any room, in place of all of one")
    parser.add_argument("--stages", type=_stages, help="comma-separated")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--time-limit", type=_seconds, default=None, help="as in 30m")
    parser.add_argument("--ledger", type=Path, default=None, help="keeps results; is continued")
    parser.add_argument("--every-stage", action="store_true", help="go on after a kill")
    parser.add_argument("--again", default="", help="run these again: names, or survivors")
    options = parser.parse_args(arguments)
    known = [file for room in ROOMS for file in files_of(room)]
    options.files = options.files or files_of(options.room)
    unknown = [file for file in options.files if file not in known]
    if unknown:
        parser.error(f"{unknown[0]} is none of the files that may be mutated")
    is_above = all(room_of(file) == "above" for file in options.files)
    options.stages = options.stages or ((_SEEDS,) if is_above else STAGES)
    return options


def main(arguments: Sequence[str] | None = None, run: RunStage = run_stage) -> int:
    """Run the campaign; 1 where the code as it is does not pass."""
    options = options_of(arguments)
    began_s = time.monotonic()
    every_file = [file for room in ROOMS for file in files_of(room)]
    ledger = Ledger(options.ledger, sources_of(every_file))
    mutants = _chosen(options, ledger)
    campaign = Campaign(options, ledger, run)
    objection = campaign.control()
    if objection is not None:
        print(f"THE CODE AS IT IS DOES NOT PASS: {objection}")
        print(json.dumps({"bench": "mutants", "control": objection}))
        return 1

    def is_late() -> bool:
        limit_s = options.time_limit
        return limit_s is not None and time.monotonic() - began_s > limit_s

    for mutant, fresh in _judged(campaign, mutants, options.jobs, is_late):
        for entry in fresh:
            ledger.add(entry)
        if fresh:
            print(_line(mutant, ledger, campaign), flush=True)
    known = {mutant.id for mutant in ledger.mutants}
    left = sum(mutant.id not in known for mutant in mutants)
    _summarise(ledger, campaign, options, left)
    return 0


def _chosen(options: argparse.Namespace, ledger: Ledger) -> list[Mutant]:
    order = drawn(options.files, options.seed)
    if not options.again:
        return order[: options.count]
    if options.again == "survivors":
        names = {mutant.id for mutant in ledger.survivors()}
    else:
        names = set(options.again.split(","))
    ledger.forget(names)
    return [mutant for mutant in order if mutant.id in names]


def _judged(
    campaign: Campaign, mutants: Sequence[Mutant], jobs: int, is_late: Callable[[], bool]
) -> Iterator[tuple[Mutant, list[Entry]]]:
    """Each mutant with what was found, in order; nothing was found once it is late."""

    def judge(mutant: Mutant) -> tuple[Mutant, list[Entry]]:
        return mutant, [] if is_late() else campaign.judge(mutant)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(judge, mutants)


def _line(mutant: Mutant, ledger: Ledger, campaign: Campaign) -> str:
    killed = ledger.killed_by(mutant.id)
    if killed is not None:
        fate = f"killed by {killed[0]}: {killed[1]}"
    else:
        others = {True: "other traces", False: "same traces", None: "traces unknown"}
        fate = f"SURVIVED ({others[campaign.has_other_traces(mutant)]})"
    before, after = _shortened(mutant.before, mutant.after)
    return (
        f"{mutant.id} {mutant.file}:{mutant.line} {mutant.scope} [{mutant.operator}]\n"
        f"    - {before}\n    + {after}\n    {fate}"
    )


def _shortened(before: str, after: str) -> tuple[str, str]:
    """Both around the first place where they differ."""
    pairs = enumerate(zip(before, after, strict=False))
    differs_at = next((at for at, (one, other) in pairs if one != other), 0)
    start = max(0, differs_at - _SHOWN_MAX // 2)

    def shortened(text: str) -> str:
        part = text[start : start + _SHOWN_MAX]
        return f"{'...' if start else ''}{part}{'...' if start + len(part) < len(text) else ''}"

    return shortened(before), shortened(after)


def _summarise(ledger: Ledger, campaign: Campaign, options: argparse.Namespace, left: int) -> None:
    """Scores over the whole ledger, and the JSON line; ``left``: drawn, and not judged yet."""
    whole = ledger.score()
    named = explained()
    open_ends = [mutant for mutant in ledger.survivors() if mutant.id not in named]
    files = sorted({mutant.file for mutant in ledger.mutants})
    print(f"\n{'file':40} {'mutants':>8} {'killed':>8} {'score':>8}")
    for file in files:
        score = ledger.score(file)
        print(f"{file:40} {score.mutants:8} {score.killed:8} {score.percent:7.1f}%")
    low, high = whole.interval
    print(
        f"{'all':40} {whole.mutants:8} {whole.killed:8} {whole.percent:7.1f}%,"
        f" 95 % interval {low} to {high}"
    )
    first = ledger.first_kills(STAGES)
    print(f"\n{'stage':14} {'shown':>8} {'killed':>8} {'score':>8} {'first to':>9}")
    for stage in STAGES:
        score = ledger.stage_score(stage)
        print(
            f"{stage:14} {score.mutants:8} {score.killed:8} {score.percent:7.1f}% {first[stage]:9}"
        )
    survived = whole.mutants - whole.killed
    print(f"\n{survived} survived, {survived - len(open_ends)} of them explained; {left} are left")
    for mutant in open_ends:
        print(_line(mutant, ledger, campaign))
    summary = {
        "bench": "mutants",
        "mutants": whole.mutants,
        "killed": whole.killed,
        "score_percent": whole.percent,
        "interval_percent": whole.interval,
        "explained": survived - len(open_ends),
        "unexplained": [mutant.id for mutant in open_ends],
        "left": left,
        "seeds": f"{options.seeds.start}:{options.seeds.stop}",
        "stages": {
            stage: {
                "shown": ledger.stage_score(stage).mutants,
                "killed": ledger.stage_score(stage).killed,
                "first": first[stage],
            }
            for stage in STAGES
        },
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    sys.exit(main())
