"""A queue of somebody's own: found right, found to lose, found to hand out twice, or allowed to.

Its server hands elements out until they are acknowledged, and takes back what a closed connection
held. Every 25th publish reaches no queue although it is confirmed.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

MODULE = '''
import json
from splitbrain.contracts.system import AllowedAnomaly
from splitbrain.systems.servers import Refused, ServerSystem

SERVER = """
import collections, contextlib, json, socketserver, sys, threading
queues, counts = collections.defaultdict(collections.deque), collections.Counter()
alone, bugs = threading.Lock(), sys.argv[2].split(",")

class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        held = []
        with contextlib.suppress(OSError):
            for line in self.rfile:
                with alone:
                    answer = self.answer(held, *json.loads(line))
                self.wfile.write(json.dumps(answer).encode() + b"\\\\n")
        with alone:
            for key, value in held:
                queues[key].appendleft(value)

    def answer(self, held, f, key, value):
        counts[f] += 1
        if f == "publish":
            if counts[f] % 25 == 0:
                return "returned"
            if "loses" not in bugs or counts[f] != 42:
                queues[key].append(value)
            return "routed"
        if f == "get":
            if not queues[key]:
                return None
            held.append((key, queues[key].popleft()))
            return held[0][1]
        taken = held.pop()
        if "twice" in bugs and counts[f] == 42:
            queues[key].append(taken[1])
        return True

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 64

host, port = sys.argv[1].split(":")
Server((host, int(port)), Connection).serve_forever()
"""

class Tray(ServerSystem):
    name, node_counts = "tray", (1,)

    def workloads(self, state_machine):
        return ("queue",)

    def check_options(self, options):
        return

    def allowed(self):
        if self.experiment.settings.get("delivery") != "at-least-once":
            return ()
        return (AllowedAnomaly("queue-totals", "duplicated", "delivers at least once"),)

    def command(self, server, others):
        bugs = ",".join(self.experiment.settings.get("bugs", "none").split("+"))
        program = server.file("server.py", SERVER)
        return (server.placement.python, program, server.listen_address(), bugs)

    async def ask(self, reader, writer, operation):
        if operation.f == "enqueue":
            if await self.call(reader, writer, "publish", operation) == "returned":
                self.unroutable()
            return operation.value
        value = await self.call(reader, writer, "get", operation)
        if value is not None:
            await self.call(reader, writer, "acknowledge", operation)
        return value

    def unroutable(self):
        raise Refused("unroutable")

    async def call(self, reader, writer, f, operation):
        writer.write(json.dumps([f, operation.key, operation.value]).encode() + b"\\n")
        answer = await reader.readline()
        if not answer:
            raise EOFError
        return json.loads(answer)

class Naive(Tray):
    """Takes a confirmation for all that there is to know."""
    name = "naive"
    def unroutable(self):
        pass
'''


def splitbrain(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-m", "splitbrain.harness.cli", *words],
        check=False,
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )


def short_run(
    folder: Path, code: int, *settings: str, system: str = "Tray", nemesis: str = "none"
) -> tuple[dict[str, Any], str, Path]:
    """A short run: what ``queue-totals`` says, what the terminal shows, and the run folder."""
    (folder / "tray.py").write_text(MODULE)
    words = f"test --system tray.py:{system} --nodes 1 --runtime local --nemesis {nemesis}".split()
    chosen = [word for setting in settings for word in ("--setting", setting)]
    seconds = "4" if nemesis == "none" else "8"
    run = splitbrain(
        folder, *words, *chosen, "--time-limit", seconds, "--seed", "3", "--no-analyze"
    )
    assert run.returncode == code, run.stdout
    (results,) = folder.glob("runs/*/*/results.json")
    return totals_of(results), run.stdout, results.parent


def totals_of(results: Path) -> dict[str, Any]:
    judged = json.loads(results.read_bytes())
    return next(row for row in judged["checkers"] if row["checker"] == "queue-totals")


def test_a_right_queue_is_drained_and_its_unroutable_elements_have_failed(tmp_path: Path) -> None:
    totals, shown, _ = short_run(tmp_path, 0, nemesis="pause:n1")
    figures = totals["figures"]
    assert figures["not-drained"] == figures["lost"] == 0
    assert figures["dequeued"] >= figures["acknowledged"] > 100
    assert "of enqueue operations failed (certainly did not happen)" in shown
    assert "unroutable" in shown


def test_a_client_that_takes_a_confirmation_for_delivery_is_found_to_lose(tmp_path: Path) -> None:
    totals, _, _ = short_run(tmp_path, 1, system="Naive")
    assert totals["figures"]["lost"] > 5
    assert {violation["kind"] for violation in totals["violations"]} == {"lost"}


def test_an_element_handed_out_twice_is_found(tmp_path: Path) -> None:
    totals, shown, _ = short_run(tmp_path, 1, "bugs=twice")
    assert (totals["figures"]["duplicated"], totals["figures"]["lost"]) == (1, 0)
    assert "1 duplicated" in shown


def test_one_that_delivers_at_least_once_may_do_so_also_where_nobody_has_its_adapter(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    totals, shown, run = short_run(tmp_path, 0, "bugs=twice", "delivery=at-least-once")
    assert (totals["verdict"], totals["figures"]["allowed"]) == ("valid", {"duplicated": 1})
    assert "allowed  queue-totals" in shown
    assert "but those that the system documents (1 duplicated in queue-totals)" in shown
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    moved = Path(shutil.move(run, elsewhere / "run"))
    again = splitbrain(elsewhere, "check", str(moved), "--no-analyze")
    assert again.returncode == 0, again.stdout
    assert totals_of(moved / "results.json")["figures"]["allowed"] == {"duplicated": 1}


def test_what_it_loses_is_still_found(tmp_path: Path) -> None:
    totals, shown, _ = short_run(tmp_path, 1, "bugs=twice+loses", "delivery=at-least-once")
    assert {violation["kind"] for violation in totals["violations"]} == {"lost"}
    assert (totals["figures"]["lost"], totals["figures"]["allowed"]) == (1, {"duplicated": 1})
    assert "Allowed: 1 duplicated (delivers at least once)." in shown
