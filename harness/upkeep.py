"""What ``clean``, ``systems`` and ``doctor`` do, and what a dead run's folder still lacks."""

from contextlib import suppress

from rich.console import Console
from rich.table import Table
from rich.text import Text

from contracts.errors import HarnessError
from harness.log_collection import DATA_FOLDER, write_committed_log
from harness.store import is_alive
from history.plan import decode_plan
from history.run_folder import RunFolder


def clean(console: Console) -> int:
    """Remove what dead runs left in the engine, after saving it into their run folders."""
    from runtimes.docker import engine, sweep

    client = engine.connect()
    try:
        swept = sweep.sweep(client)
    finally:
        client.close()
    for run in swept:
        console.print(
            Text(
                f"{run.run_id}: removed {run.containers} containers, {run.networks} networks, "
                f"{run.volumes} volumes"
            ),
            soft_wrap=True,
        )
        if run.lock.parent.is_dir():
            dump_missing_logs(RunFolder(run.lock.parent))
    if not swept:
        console.print("Dead runs left nothing.")
    return 0


def ensure_images(runtime: str) -> None:
    """Find or build the images that a runtime needs, from the sources as they are now.

    Raises:
        HarnessError: one could be neither found nor built.
    """
    if runtime != "docker":
        return
    from runtimes.docker import engine, images

    client = engine.connect()
    try:
        images.Images(client).ensure()
    finally:
        client.close()


def salvage(folder: RunFolder) -> None:
    """Fetch what the nodes of a dead run left, so that its folder can be judged.

    Does nothing for a living run or a complete folder. What cannot be had is left: a judge says
    what is missing.
    """
    nodes = folder.node_names()
    if is_alive(folder) or all(folder.committed_log(node).exists() for node in nodes):
        return
    from runtimes.docker import engine, sweep

    with suppress(HarnessError):
        client = engine.connect()
        try:
            if folder.root.name in sweep.runs(client):
                sweep.sweep(client)
        finally:
            client.close()
    dump_missing_logs(folder)


def dump_missing_logs(folder: RunFolder) -> None:
    """Write the neutral dump of each node whose data folder is there and whose dump is not."""
    from systems.registry import system

    try:
        adapter = system(decode_plan(folder.plan.read_bytes()).system)
    except (OSError, ValueError, HarnessError):
        return
    for node in folder.node_names():
        data = folder.node(node) / DATA_FOLDER
        if folder.committed_log(node).exists() or not data.is_dir():
            continue
        # Data that cannot be read leave the dump missing, and the judge says so.
        with suppress(HarnessError):
            write_committed_log(folder.committed_log(node), adapter.committed_log(node, data))


def list_systems(console: Console) -> int:
    """Print each system with its planted bugs."""
    from systems.registry import names, system

    table = Table(box=None, pad_edge=False)
    table.add_column("system")
    table.add_column("planted bugs")
    for name in names():
        table.add_row(name, ", ".join(sorted(system(name).planted_bugs)) or "none")
    console.print(table)
    return 0


def doctor(console: Console) -> int:
    """Print what each runtime can do here; 0 if one of them can run the main job."""
    from runtimes.registry import runtime, runtime_names

    usable = False
    table = Table(box=None, pad_edge=False)
    for column in ("runtime", "usable", "what it can do, or what to do about it"):
        table.add_column(column, overflow="fold")
    for name in runtime_names():
        try:
            capabilities = runtime(name).capabilities()
        except HarnessError as error:
            table.add_row(name, "no", str(error))
            continue
        usable = usable or {"partition", "kill", "pause"} <= capabilities
        table.add_row(name, "yes", ", ".join(sorted(capabilities)))
    console.print(table)
    return 0 if usable else HarnessError.exit_code
