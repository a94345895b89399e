"""Stands in for the commands that follow a suite: notes its words and ends as a file asks.

``fake_steps.py FOLDER COMMAND ...``: the exit code stands in ``FOLDER/COMMAND.code`` (0 where there
is none), seconds that it takes in ``FOLDER/COMMAND.takes``. Its process stands in
``FOLDER/COMMAND.pid`` before its words are noted.
"""

import os
import sys
import time
from pathlib import Path


def number(path: Path) -> float:
    return float(path.read_text()) if path.exists() else 0.0


folder, command = Path(sys.argv[1]), sys.argv[2]
(folder / f"{command}.pid").write_text(str(os.getpid()))
with (folder / "steps").open("a") as log:
    log.write(" ".join(sys.argv[2:]) + "\n")
time.sleep(number(folder / f"{command}.takes"))
if command == "gate":
    (Path(sys.argv[sys.argv.index("--output") + 1]) / "gate.json").write_text("{}")
sys.exit(int(number(folder / f"{command}.code")))
