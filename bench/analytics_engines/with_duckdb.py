"""The jobs in duckdb's SQL."""

# pyright: standard

from pathlib import Path
from typing import Final

import duckdb
import pandas as pd

from bench.analytics_engines.jobs import CONTEXT_NS, SLOT_NS

_PAIR: Final = """
    COPY (
        WITH paired AS (
            SELECT *, lead(struct_pack(t := type, at := "time", v := "value"))
                OVER (PARTITION BY run_id, process ORDER BY "index") AS answer
            FROM {events}
        )
        SELECT run_id, "index", process, f, "key", "value" AS argument, answer.v AS result,
            coalesce(answer.t, 'info') AS type, "time" AS start_ns, answer.at AS end_ns
        FROM paired WHERE type = 'invoke'
    ) TO '{output}' (FORMAT parquet)
"""
_PAIRED: Final = """
    SELECT run_id, type, count(*) AS operations, sum("index")::BIGINT AS indexes,
        coalesce(sum(end_ns - start_ns), 0)::BIGINT AS latency_ns
    FROM '{output}' GROUP BY ALL
"""
_LATENCY: Final = """
    SELECT run_id, f, start_ns // 1000000000 AS second, type, count(*) AS count,
        quantile_cont((end_ns - start_ns)::DOUBLE, 0.50) / 1e6 AS p50_ms,
        quantile_cont((end_ns - start_ns)::DOUBLE, 0.95) / 1e6 AS p95_ms,
        quantile_cont((end_ns - start_ns)::DOUBLE, 0.99) / 1e6 AS p99_ms,
        max(end_ns - start_ns) / 1e6 AS max_ms
    FROM {operations} WHERE NOT final GROUP BY ALL
"""
_THROUGHPUT: Final = """
    SELECT run_id, coalesce(end_ns, start_ns) // 1000000000 AS second,
        count(*) FILTER (type = 'ok') AS ok, count(*) FILTER (type = 'fail') AS fail,
        count(*) FILTER (type = 'info') AS info
    FROM {operations} WHERE NOT final GROUP BY ALL
"""
_WINDOWS: Final = """
    WITH load AS (SELECT * FROM {operations} WHERE NOT final),
    bounds AS (
        SELECT run_id, min(start_ns) AS load_start, max(coalesce(end_ns, start_ns)) AS load_end
        FROM load GROUP BY run_id
    ),
    windows AS (
        SELECT f.run_id, f."index", invoked_ns AS s, removed_ns AS e, load_start, load_end,
            lag(removed_ns) OVER fault AS free_from, lead(invoked_ns) OVER fault AS free_until
        FROM {faults} f JOIN bounds USING (run_id)
        WINDOW fault AS (PARTITION BY f.run_id ORDER BY invoked_ns)
    ),
    spans AS (
        SELECT run_id, "index", 'before' AS phase,
            greatest(s - {context}, load_start, coalesce(free_from, load_start)) AS a, s AS b
        FROM windows
        UNION ALL SELECT run_id, "index", 'during', s, e FROM windows
        UNION ALL SELECT run_id, "index", 'after', e,
            least(e + {context}, load_end, coalesce(free_until, load_end)) FROM windows
    ),
    slotted AS (
        SELECT *, ceil(a / {slot}.0)::BIGINT AS first_slot, b // {slot} AS end_slot FROM spans
    ),
    acknowledged AS (
        SELECT run_id, start_ns AS asked, end_ns AS told, position_epoch AS epoch
        FROM load WHERE type = 'ok' AND f <> 'read'
    ),
    slots AS (SELECT DISTINCT run_id, told // {slot} AS slot FROM acknowledged),
    served AS (
        SELECT p.run_id, p."index", phase,
            CASE WHEN end_slot > first_slot THEN count(slot) / (end_slot - first_slot) END AS share
        FROM slotted p LEFT JOIN slots q
            ON q.run_id = p.run_id AND slot >= first_slot AND slot < end_slot
        GROUP BY p.run_id, p."index", phase, first_slot, end_slot
    ),
    epochs AS (SELECT run_id, epoch, min(told) AS first FROM acknowledged GROUP BY ALL),
    known AS (
        SELECT w.run_id, w."index", max(epoch) AS epoch FROM windows w
        JOIN epochs x ON x.run_id = w.run_id AND first <= s GROUP BY ALL
    ),
    moved AS (
        SELECT w.run_id, w."index", min(told) - any_value(s) AS took, arg_min(x.epoch, told) AS new
        FROM windows w JOIN known k USING (run_id, "index")
        JOIN acknowledged x ON x.run_id = w.run_id AND asked > s AND x.epoch > k.epoch
            AND (free_until IS NULL OR told < free_until)
        GROUP BY ALL
    ),
    back AS (
        SELECT w.run_id, w."index", min(told) - any_value(e) AS took
        FROM windows w JOIN acknowledged x ON x.run_id = w.run_id AND asked >= e
            AND (free_until IS NULL OR told < free_until)
        GROUP BY ALL
    )
    SELECT w.run_id, w."index",
        max(share) FILTER (phase = 'before') AS availability_before,
        max(share) FILTER (phase = 'during') AS availability_during,
        max(share) FILTER (phase = 'after') AS availability_after,
        any_value(moved.took) / 1e6 AS failover_ms, any_value(back.took) / 1e6 AS recovery_ms,
        any_value(moved.new) AS new_epoch
    FROM windows w JOIN served USING (run_id, "index")
    LEFT JOIN moved USING (run_id, "index") LEFT JOIN back USING (run_id, "index")
    GROUP BY w.run_id, w."index"
"""
_LOST: Final = """
    WITH writes AS (
        SELECT * FROM {operations} WHERE type = 'ok' AND f <> 'read'
    ),
    held AS (
        SELECT w.run_id, w."index", position_epoch, position_offset,
            count(DISTINCT c.node) AS holders
        FROM writes w LEFT JOIN {committed} c ON c.run_id = w.run_id AND c.epoch = position_epoch
            AND c."offset" = position_offset AND c.f = w.f AND c."key" = w."key"
            AND c."value" = w.argument
        GROUP BY ALL
    )
    SELECT * FROM held JOIN (SELECT run_id, count(*) AS nodes FROM {logs} GROUP BY ALL)
        USING (run_id) WHERE holders < nodes // 2 + 1
"""
_PHANTOM: Final = """
    WITH records AS (SELECT DISTINCT run_id, "offset", epoch, f, "key", "value" FROM {committed}),
    unplaced AS (
        SELECT * FROM records r ANTI JOIN {operations} w ON w.run_id = r.run_id AND w.type = 'ok'
            AND w.f <> 'read' AND w.position_epoch = r.epoch AND w.position_offset = r."offset"
            AND w."key" = r."key" AND w.argument = r."value"
    ),
    explaining AS (
        SELECT run_id, "key", argument AS "value", count(*) FILTER (type = 'info') AS may,
            count(*) FILTER (type = 'fail') AS failed, count(*) FILTER (type = 'ok') AS told
        FROM {operations} WHERE f <> 'read' GROUP BY ALL
    ),
    ranked AS (
        SELECT *, row_number() OVER (
            PARTITION BY run_id, "key", "value" ORDER BY "offset", epoch) AS place
        FROM unplaced
    )
    SELECT r.run_id, r."offset", r.epoch, CASE WHEN failed > 0 THEN 'failed'
        WHEN told > 0 THEN 'duplicate' ELSE 'never-invoked' END AS reason
    FROM ranked r LEFT JOIN explaining USING (run_id, "key", "value")
    WHERE place > coalesce(may, 0)
"""
_SQL: Final = {
    "latency": _LATENCY,
    "throughput": _THROUGHPUT,
    "windows": _WINDOWS,
    "lost": _LOST,
    "phantom": _PHANTOM,
}


class Duckdb:
    """One connection."""

    def __init__(self, folder: Path, memory_mib: int | None, threads: int) -> None:
        self._words: dict[str, object] = {
            table.name: f"read_parquet('{table}/*.parquet')" for table in folder.iterdir()
        }
        self._words |= {"slot": SLOT_NS, "context": CONTEXT_NS}
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {threads}")
        self._connection.execute(f"SET temp_directory = '{folder.parent / 'duckdb-spill'}'")
        if memory_mib is not None:
            self._connection.execute(f"SET memory_limit = '{memory_mib}MiB'")

    def run(self, job: str, output: Path) -> pd.DataFrame:
        """See ``bench.analytics_engines.jobs.Engine``."""
        try:
            if job == "pair":
                written = output / "operations.parquet"
                self._connection.execute(_PAIR.format(output=written, **self._words))
                return self._connection.execute(_PAIRED.format(output=written)).df()
            return self._connection.execute(_SQL[job].format(**self._words)).df()
        except duckdb.OutOfMemoryException as error:
            raise MemoryError(str(error).splitlines()[0]) from error

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
