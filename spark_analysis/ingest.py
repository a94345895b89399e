"""Ingest of a run folder into Parquet tables with declared schemas, without Spark.

Invocations and completions are paired here, once, in one pass, so that no later query pays for a
shuffle. Memory is bounded by one batch of rows and the operations in flight, not by the run.

Each table is replaced whole or not at all, and the manifest is written last, so that the next
ingest repairs a crash in the middle. Damaged files are read as far as possible, and
``Ingested.damage`` names the rest.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from splitbrain.contracts.committed import RecordForm
from splitbrain.contracts.errors import UNREADABLE, HarnessError
from splitbrain.contracts.words import counted
from splitbrain.history.border import refuse_foreign_entries
from splitbrain.history.functions import Functions
from splitbrain.history.plan import decode_plan
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.damage import Damage
from splitbrain.spark_analysis.run_rows import ingested_rows
from splitbrain.spark_analysis.schemas import INGESTED_TABLES, OPERATIONS, Table
from splitbrain.spark_analysis.table_writer import (
    BATCH_ROWS,
    PART_FILE,
    replace_file,
    replace_table,
)


class Source(msgspec.Struct, frozen=True):
    """Source file, as it was when read."""

    #: Relative to the run folder.
    path: str
    size_bytes: int
    modified_ns: int


class Ingested(msgspec.Struct, frozen=True):
    """Yield of an ingest; content of the manifest."""

    run_id: str
    #: Versions of the tables' schemas.
    tables: dict[str, int]
    #: Numbers of rows, by table.
    rows: dict[str, int]
    sources: tuple[Source, ...]
    #: One sentence each; empty for a run that ended in order.
    damage: tuple[str, ...]


def refused_rows(table: Table, count: int) -> str:
    """Return the sentence for rows that fit no column."""
    rows = counted(count, "row")
    return f"{rows} of {table.name} left out: a number beyond 64 bits, or text that is no Unicode."


def table_folder(folder: RunFolder, table: Table) -> Path:
    """Return the folder of an ingested table."""
    return folder.operations if table is OPERATIONS else folder.analysis_table(table.name)


def ingest(run_folder: Path, *, batch_rows: int = BATCH_ROWS) -> Ingested:
    """Make the tables of one run, unless they are there and nothing has changed since.

    Missing files give empty tables; ``batch_rows`` are held in memory at once.

    Raises:
        HarnessError: there is no such folder, it cannot be read or written, or no run made it.
    """
    folder = RunFolder(run_folder)
    if not run_folder.is_dir():
        raise HarnessError(
            "ingest the run",
            str(run_folder),
            "there is no such folder",
            "Name a folder below runs/.",
        )
    refuse_foreign_entries(run_folder)
    try:
        # Taken before reading: a run that still grows is then seen to have changed.
        sources = _sources(folder)
        made = _manifest(folder)
        if made is not None and made.sources == sources and _tables_stand(folder, made):
            return made
        ingested = _ingest(folder, sources, batch_rows)
        replace_file(folder.ingest_manifest, msgspec.json.encode(ingested))
    except OSError as error:
        raise HarnessError(
            "ingest the run",
            error.filename or str(run_folder),
            error.strerror or str(error),
            "Check that the folder can be read and written and that the disk is not full.",
        ) from error
    return ingested


def _ingest(folder: RunFolder, sources: tuple[Source, ...], batch_rows: int) -> Ingested:
    run_id, nodes, functions, forms = _identity(folder)
    damage = Damage()
    rows: dict[str, int] = {}

    for table, content in ingested_rows(folder, functions, nodes, damage, forms):
        with replace_table(table, table_folder(folder, table), batch_rows=batch_rows) as writer:
            for row in content:
                writer.add((run_id, *row))
            if refused := writer.end_of_run():
                damage.add("values-refused", refused_rows(table, refused))
        rows[table.name] = writer.row_count
    return Ingested(
        run_id=run_id,
        tables={table.name: table.version for table in INGESTED_TABLES},
        rows=rows,
        sources=sources,
        damage=damage.sentences,
    )


def _identity(
    folder: RunFolder,
) -> tuple[str, list[str], Functions, Mapping[str, RecordForm]]:
    """Return run id, nodes, functions and forms of records, as far as they are told."""
    try:
        plan = decode_plan(folder.plan.read_bytes())
    except (OSError, ValueError, RecursionError):
        return folder.root.resolve().name, [str(node) for node in folder.node_names()], {}, {}
    nodes = [str(node) for node in plan.nodes]
    return plan.run_id, nodes, plan.functions, plan.record_forms


def _sources(folder: RunFolder) -> tuple[Source, ...]:
    candidates = [folder.plan, folder.history, folder.faults]
    for node in folder.node_names():
        candidates += [folder.state_events(node), folder.committed_log(node)]
    found: list[Source] = []
    for path in candidates:
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        name = path.relative_to(folder.root).as_posix()
        found.append(Source(name, status.st_size, status.st_mtime_ns))
    return tuple(found)


def _manifest(folder: RunFolder) -> Ingested | None:
    try:
        return msgspec.json.decode(folder.ingest_manifest.read_bytes(), type=Ingested)
    except (OSError, *UNREADABLE):
        return None


def _tables_stand(folder: RunFolder, made: Ingested) -> bool:
    return all(
        made.tables.get(table.name) == table.version
        and (table_folder(folder, table) / PART_FILE).is_file()
        for table in INGESTED_TABLES
    )
