"""Analysis as a child process: ``python -m splitbrain.spark_analysis RUN_FOLDER``.

Prints how many jobs are done, and at the end the path of the summary. Exit code 0, 3 with one
sentence on standard error if the analysis was not possible, 64 for wrong usage; never 1 or 2, which
are verdicts.
"""

import sys
from pathlib import Path

from splitbrain.contracts.errors import HarnessError
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.analyze import jobs_line, problem_of
from splitbrain.spark_analysis.owned_process import leave_on_sigterm

_EXIT_USAGE = 64


def main(arguments: list[str]) -> int:
    """Analyse the run folder named first; return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m splitbrain.spark_analysis RUN_FOLDER\n")
        return _EXIT_USAGE
    leave_on_sigterm()
    run_folder = Path(arguments[0])
    problem = problem_of(run_folder, _tell)
    if problem is not None:
        sys.stderr.write(f"{problem}\n")
        return HarnessError.exit_code
    sys.stdout.write(f"{RunFolder(run_folder).analysis_summary}\n")
    return 0


def _tell(done: int, total: int) -> None:
    sys.stdout.write(jobs_line(done, total))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
