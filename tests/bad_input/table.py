"""The ways to be wrong that are known, each with its sentence and exit code."""

from tests.bad_input.cause import Cause, Chapter
from tests.bad_input.compose_causes import COMPOSE_FILES
from tests.bad_input.environment_causes import ENVIRONMENT
from tests.bad_input.format_causes import FORMATS
from tests.bad_input.gate_causes import GATES
from tests.bad_input.history_causes import HISTORIES
from tests.bad_input.lake_causes import LAKES
from tests.bad_input.option_causes import COMBINATIONS, COMMANDS, NAMES, NUMBERS
from tests.bad_input.plan_causes import PLANS
from tests.bad_input.run_causes import RUNS
from tests.bad_input.shrink_causes import SHRINKING
from tests.bad_input.simulation_causes import SIMULATED_RUNS, SWEEPS

CHAPTERS: tuple[Chapter, ...] = (
    COMMANDS,
    NUMBERS,
    NAMES,
    COMBINATIONS,
    PLANS,
    COMPOSE_FILES,
    HISTORIES,
    FORMATS,
    RUNS,
    LAKES,
    SHRINKING,
    SWEEPS,
    SIMULATED_RUNS,
    GATES,
    ENVIRONMENT,
)
CAUSES: tuple[Cause, ...] = tuple(cause for chapter in CHAPTERS for cause in chapter.causes)
