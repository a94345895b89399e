#!/usr/bin/env python3
"""Sets the wall clock of the pod's node: rewrites the file that libfaketime reads at each look.

A jump is written once. A drift is written again and again, a hundredth of a second apart, so that
it does not depend on when a program was started, nor changes how long its timeouts are. It must
never leave two writers of one file.

Usage: clock.py set FILE OFFSET_US DRIFT_PPM
       clock.py tick FILE OFFSET_US DRIFT_PPM   (goes on until it is killed; started by ``set``)
Nothing happens where FILE's folder is not there. Exit codes: 0 done, 1 failed, 64 bad usage.

Source: libfaketime's README (relative times, FAKETIME_TIMESTAMP_FILE).
"""

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from splitbrain.runtimes.wall_clocks import offset_line, write_clock

_TICK_S = 0.01


def stop_ticker(file: Path) -> None:
    """End the process that rewrites the file, and wait until it is gone."""
    note = file.with_name(f"{file.name}-ticker")
    with suppress(OSError, ValueError):
        number = int(note.read_text())
        descriptor = os.pidfd_open(number)
        try:
            command = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
            if b"tick" in command and os.fsencode(file) in command:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                select.select([descriptor], [], [])
        finally:
            os.close(descriptor)
        file.with_name(f"{file.name}.{number}").unlink(missing_ok=True)
    note.unlink(missing_ok=True)


def set_clock(file: Path, offset_us: int, drift_ppm: int) -> None:
    """Have the clock go so from now on."""
    if not file.parent.is_dir():
        return
    stop_ticker(file)
    write_clock(file, offset_line(offset_us))
    if drift_ppm:
        command = [sys.executable, __file__, "tick", str(file), str(offset_us), str(drift_ppm)]
        quiet = subprocess.DEVNULL
        ticker = subprocess.Popen(
            command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, cwd="/"
        )
        file.with_name(f"{file.name}-ticker").write_text(str(ticker.pid))


def tick(file: Path, offset_us: int, drift_ppm: int) -> None:
    """Rewrite the file until killed."""
    began = time.monotonic_ns()
    while True:
        write_clock(file, offset_line(offset_us, drift_ppm, time.monotonic_ns() - began))
        time.sleep(_TICK_S)


def main(arguments: list[str]) -> int:
    """Set, or go on setting."""
    match arguments:
        case [("set" | "tick") as action, file, offset_us, drift_ppm]:
            numbers = int(offset_us), int(drift_ppm)
        case _:
            print(__doc__, file=sys.stderr)
            return 64
    try:
        (set_clock if action == "set" else tick)(Path(file), *numbers)
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
