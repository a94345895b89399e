"""The command ``clean``, and the end of a dead run's folder.

Dead runs' nodes are swept out of every runtime, after their files are saved into the run folders;
then the temporary folders of dead processes go. Living runs and foreign things are spared.
"""

import os
import signal
import stat
import time
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.text import Text

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.console.standard_streams import answer
from splitbrain.harness.folder.store import is_alive
from splitbrain.harness.pool.spark_child import OWNED
from splitbrain.harness.run.log_collection import dump_logs
from splitbrain.history.border import DATA_FOLDER, refuse_foreign_entries
from splitbrain.history.course import left_its_nodes
from splitbrain.history.plan import decode_plan
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.scratch_folders import remove_dead
from splitbrain.runtimes.dead_runs import is_swept
from splitbrain.runtimes.owners import await_end, orphans

#: Children of a harness that outlive it for a moment, and end by themselves.
_TIDY_MODULES = frozenset({f"{PACKAGE}.runtimes.watchdog", OWNED})
#: Tidying takes seconds; a child that waits for its engine to come back is not waited for.
_ORPHAN_PATIENCE_S = 10.0


def clean(console: Console) -> int:
    """Remove the leftovers of dead runs; return the exit code, 3 where something is still there.

    A runtime that cannot look (no engine answers) is reported and does not keep the others'
    leftovers.
    """
    from splitbrain.runtimes.registry import sweep_all

    await_orphans(_ORPHAN_PATIENCE_S)
    lines: list[str] = []
    is_whole = True
    sweeps = sweep_all()
    for sweep in sweeps:
        if sweep.skipped is not None:
            lines.append(f"The runtime {sweep.runtime} was not looked at: {sweep.skipped}")
        for run in sweep.runs:
            removed = ", ".join(f"{kind} {count}" for kind, count in run.removed.items() if count)
            lines.append(f"{run.run_id}: removed {removed or 'nothing'}")
            if run.problem is not None:
                is_whole = False
                lines.append(f"{run.run_id}: {run.problem}")
            if _is_mine(run.lock.parent):
                dump_missing_logs(RunFolder(run.lock.parent))
    folders = remove_dead(before=kill_users)
    lines += [f"{folder}: removed" for folder in folders]
    for line in lines or ["Dead runs left nothing."]:
        console.print(Text(line), soft_wrap=True)
    code = 0 if is_whole else HarnessError.exit_code
    answer(console, {"exit_code": code, "runtimes": sweeps, "folders": folders})
    return code


def salvage(folder: RunFolder) -> None:
    """Fetch the files that a dead run's nodes left and remove the nodes, so that it can be judged.

    Does nothing for a living run, and for a complete folder whose nodes are gone; the judge names
    whatever stays missing.
    """
    if is_alive(folder):
        return
    is_complete = all(folder.committed_log(node).exists() for node in folder.node_names())
    # A run may be killed between the collection and the removal of its nodes.
    if is_complete and (is_swept(folder.lock) or not left_its_nodes(folder)):
        return
    from splitbrain.runtimes.registry import sweep_all

    sweep_all(folder.lock)
    dump_missing_logs(folder)


def dump_missing_logs(folder: RunFolder) -> None:
    """Write the missing neutral dump of each node whose data folder is there."""
    from splitbrain.systems.registry import system

    try:
        refuse_foreign_entries(folder.root)
        adapter = system(decode_plan(folder.plan.read_bytes()).experiment.system)
    except (OSError, ValueError, RecursionError, HarnessError):
        return
    # Unreadable data leave the dump missing, and the judge says so.
    left = [node for node in folder.node_names() if (folder.node(node) / DATA_FOLDER).is_dir()]
    dump_logs(adapter, folder, [n for n in left if not folder.committed_log(n).exists()])


def _is_mine(folder: Path) -> bool:
    """Return whether it is a folder of this user: nothing is written into others'."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def kill_users(folder: Path) -> None:
    """Kill processes that use a dead process's temporary folder.

    Only those of the folder's own user whose command line names it: in practice a JVM whose Spark
    was killed under it.
    """
    user = folder.lstat().st_uid
    for process in Path("/proc").glob("[0-9]*"):
        # It may end meanwhile, or be another user's.
        with suppress(OSError):
            # Held before it is looked at: the number may go to another process at any time.
            descriptor = os.pidfd_open(int(process.name))
            try:
                arguments = (process / "cmdline").read_bytes().split(b"\0")
                is_named = any(argument.endswith(f"={folder}".encode()) for argument in arguments)
                if is_named and process.stat().st_uid == user:
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            finally:
                os.close(descriptor)


def await_orphans(patience_s: float) -> None:
    """Wait until children that tidy up after a dead harness have done so.

    A watchdog's stopped nodes are removed by the sweep; an analysis takes its JVM and files along.
    """
    deadline = time.monotonic() + patience_s
    for process in orphans(_TIDY_MODULES):
        await_end(process, max(0.0, deadline - time.monotonic()))
