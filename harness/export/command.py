"""The command ``splitbrain export``: a run in the format of another tool, as a file or sent."""

import gzip
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Final, cast
from urllib.parse import unquote, urlsplit

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.nearest import or_nearest
from splitbrain.harness.console.console_lines import say
from splitbrain.harness.console.standard_streams import answer
from splitbrain.harness.console.waiting import Waiting
from splitbrain.harness.export.otlp import TRACES_PATH, otlp_requests
from splitbrain.harness.export.perfetto import perfetto_trace
from splitbrain.harness.export.posting import (
    Patience,
    PostFailedError,
    post_json,
    problem_of_address,
)
from splitbrain.harness.export.timeline import Timeline
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.harness.folder.store import find_run
from splitbrain.history.json_problems import in_words
from splitbrain.history.plan import decode_plan

#: Headers for a collector, as OpenTelemetry's own programs read them: ``name=value,name=value``.
HEADERS_VARIABLE: Final = "OTEL_EXPORTER_OTLP_HEADERS"


class Format(msgspec.Struct, frozen=True):
    """One format that runs are exported in."""

    #: End of the file's name.
    suffix: str
    #: Yields the parts of a file, each of which is a message where ``is_sent``.
    parts: Callable[[Timeline], Iterator[bytes]]
    #: The next step of who has the file, a sentence.
    next_step: str
    is_sent: bool = False


FORMATS: Final[dict[str, Format]] = {
    "perfetto": Format(
        ".perfetto.json", perfetto_trace, "Open it at https://ui.perfetto.dev, which keeps it here."
    ),
    "otlp": Format(
        ".otlp.jsonl",
        lambda timeline: (request + b"\n" for request in otlp_requests(timeline)),
        "A collector's otlpjsonfile receiver reads it; --to sends it.",
        is_sent=True,
    ),
}


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``splitbrain export``."""

    format: str
    #: None: named after the run, in the working folder.
    output: Path | None = None
    #: Address of a collector.
    to: str | None = None


def export_run(
    run: Path,
    options: ExportOptions,
    console: Console,
    patience: Patience = Patience(),  # noqa: B008
) -> int:
    """Write a run's file, or send it; returns the exit code.

    Raises:
        UsageError: there is no such run or format, or an option does not fit.
        HarnessError: the disk or the collector refuses.
    """
    chosen = FORMATS.get(options.format)
    if chosen is None:
        problem = f"there is no format {options.format!r}"
        raise UsageError(problem, or_nearest(options.format, FORMATS, "formats"))
    if options.to is not None:
        _check_address(options, options.to, chosen)
    path: Path | None = None
    folder = find_run(run)
    try:
        plan = decode_plan(folder.plan.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        problem = f"{folder.plan} cannot be read: {in_words(error)}"
        raise UsageError(problem, "Export a run made by this version") from error
    timeline = Timeline(folder, plan)
    parts = chosen.parts(timeline)
    with Waiting(console).during(f"exporting {plan.run_id}"):
        if options.to is not None:
            messages = _send(parts, options.to, patience)
            told = f"sent {messages:,} messages"
        else:
            path = options.output or Path(f"{plan.run_id}{chosen.suffix}")
            _write(parts, path)
            told = f"{path}: {chosen.next_step}"
    for problem in timeline.problems:
        say(console, problem)
    say(console, told)
    answer(console, {"exit_code": 0, "file": path, "problems": timeline.problems})
    return 0


def _check_address(options: ExportOptions, address: str, chosen: Format) -> None:
    if not chosen.is_sent:
        sent = ", ".join(name for name, each in FORMATS.items() if each.is_sent)
        problem = f"--to does not fit {options.format}, which is a file"
        raise UsageError(problem, f"Choose --format {sent}")
    if options.output is not None:
        raise UsageError("--output and --to cannot be used together", "Leave one of them out")
    if (problem := problem_of_address(address)) is not None:
        raise UsageError(f"--to {problem}", "Write it as http://127.0.0.1:4318")


def _write(parts: Iterable[bytes], path: Path) -> None:
    """Write a file, packed where its name ends with .gz; it is there whole or not at all."""
    unfinished = path.with_name(f".{path.name}.part")
    with tell_refusal("write the export", path, "Choose another file with --output."):
        try:
            with unfinished.open("wb") as file, ExitStack() as stack:
                target: IO[bytes] = file
                if path.suffix == ".gz":
                    packed = gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
                    target = cast("IO[bytes]", stack.enter_context(packed))
                for part in parts:
                    target.write(part)
            unfinished.replace(path)
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)


def _send(messages: Iterable[bytes], address: str, patience: Patience) -> int:
    """Send all messages; return their number."""
    whole = address.rstrip("/")
    if not urlsplit(whole).path.endswith(TRACES_PATH):
        whole += TRACES_PATH
    count, headers = 0, _headers(os.environ.get(HEADERS_VARIABLE, ""))
    for count, message in enumerate(messages, start=1):
        try:
            rejected = _rejected(post_json(whole, message, headers=headers, patience=patience))
        except PostFailedError as error:
            rejected = f"{error}, asked for message {count:,}"
        if rejected:
            next_step = "What was sent before may be sent again: ids are those of the run."
            raise HarnessError("send the run", "the collector of --to", rejected, next_step)
    return count


class _PartialSuccess(msgspec.Struct, rename="camel"):
    """Part of a collector's answer; as text or as a number, like every integer of 64 bits."""

    rejected_spans: int = 0
    error_message: str = ""


class _Answer(msgspec.Struct, rename="camel"):
    partial_success: _PartialSuccess | None = None


def _rejected(answered: bytes) -> str | None:
    """Return why a collector that answered 200 did not take all; None: it did."""
    with suppress(msgspec.DecodeError):
        partial = msgspec.json.decode(answered, type=_Answer, strict=False).partial_success
        if partial is not None and partial.rejected_spans:
            return f"it rejected {partial.rejected_spans} spans: {partial.error_message}"
    return None


def _headers(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}
