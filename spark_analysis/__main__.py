"""Analysis as a child process: ``python -m splitbrain.spark_analysis RUN_FOLDER [OWNER]``.

When the process of the number OWNER ends, it ends in order too, with Spark's JVM and files. Prints
one JSON line at the end. Exit code 0, 3 with one sentence on standard error if the analysis was not
possible, 64 for wrong usage; never 1 or 2, which are verdicts.
"""

import sys
from pathlib import Path

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.analyze import analyze
from splitbrain.spark_analysis.owned_process import live_with

_EXIT_USAGE = 64


def main(arguments: list[str]) -> int:
    """Analyse the run folder named first; return the exit code."""
    match arguments:
        case [folder]:
            owner = None
        case [folder, number] if number.isdecimal():
            owner = int(number)
        case _:
            sys.stderr.write("usage: python -m splitbrain.spark_analysis RUN_FOLDER [OWNER]\n")
            return _EXIT_USAGE
    live_with(owner)
    run_folder = Path(folder)
    try:
        analysis = analyze(run_folder)
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - a traceback would end with 1, which is a verdict
        sys.stderr.write(
            f"could not analyse the run ({run_folder}): {type(error).__name__}: {error}. "
            "This is a defect of splitbrain; please report it with the run folder.\n"
        )
        return HarnessError.exit_code
    line = {
        "run_id": analysis.run_id,
        "summary": str(RunFolder(run_folder).analysis_summary),
        "seconds": analysis.seconds,
        "lost": analysis.lost and analysis.lost.missing,
        "phantom": analysis.phantom and analysis.phantom.unexplained,
    }
    sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
