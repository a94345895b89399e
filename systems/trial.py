"""``splitbrain try``: the experiment that ``splitbrain test`` would be given.

Rooms that drive know no system by name, so that what they need of the one that a compose file is
stands here.
"""

import os
from typing import Final

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.trial import TrialOptions
from splitbrain.history.plan import PLAN_FILE_ENDINGS
from splitbrain.systems.compose_file import choices
from splitbrain.systems.compose_file.adapter import ComposeSystem
from splitbrain.systems.compose_file.drivers.registry import full_name
from splitbrain.systems.compose_file.reading import read_compose_file

#: Promise to clients, by the workload.
_PROMISES: Final = {
    "register": "each key is a linearizable register",
    "log": "no record that was acknowledged is lost, skipped or shown twice",
    "set": "no element that was added is lost",
}


def tried(options: TrialOptions) -> tuple[Experiment, list[str]]:
    """Return the experiment, and sentences about what is run and what is otherwise than the file.

    Raises:
        UsageError: the file, a service, a port or the driver does not exist or does not fit.
    """
    path = options.file.absolute()
    for name in choices.OURS:
        if name in options.settings:
            raise UsageError(f"--setting {name} is no setting of a driver", "Leave it out")
    file = read_compose_file(path, os.environ)
    settings = {
        **options.settings,
        choices.FILE: str(path),
        choices.PORT: ",".join(options.ports),
        choices.DRIVER: full_name(options.driver),
        choices.DIGEST: file.digest(),
    }
    if options.spares:
        settings[choices.SPARE] = ",".join(options.spares)
    if options.notices_s is not None:
        settings[choices.NOTICES] = f"{options.notices_s:g}"
    trial = choices.trial_of(file, settings)
    workload = options.workload or trial.driver.workloads[0]
    usual = "partition,pause,kill" if len(trial.nodes) > 1 and len(trial.hit) > 1 else "pause,kill"
    nemesis = options.nemesis or usual
    if not nemesis.endswith(PLAN_FILE_ENDINGS):
        nemesis = choices.nodes_in_nemesis(trial, nemesis)
    experiment = Experiment(
        system=ComposeSystem.name,
        workload=workload,
        nemesis=nemesis,
        nodes=len(trial.hit),
        time_limit_s=options.time_limit_s,
        seed=options.seed,
        concurrency=options.concurrency,
        rate=options.rate,
        operation_timeout_s=options.operation_timeout_s,
        settings=settings,
        workload_options=dict(options.workload_options),
    )
    promise = _PROMISES.get(workload, f"that of the workload {workload}")
    notes = [f"note: {note}." for note in file.notes]
    return experiment, [f"{trial.summary()}; promised: {promise}.", *notes]
