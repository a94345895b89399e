"""``python -m bench.reader_fuzz``: readers of histories against plain ones, file by file.

Each file is read as objects and as columns, and judged by what ``splitbrain check`` calls. Prints
how many files went which way, each kind of difference with its smallest file, and one JSON object
on the last line. The exit code is 1 where anything differs.

    python -m bench.reader_fuzz [--files 100000] [--seed 1] [--jobs 2] [--save FOLDER]
    python -m bench.reader_fuzz --seed 1 --only 4711    # one file again, with what differs
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.reader_fuzz.fuzzing import Difference, file_of, fuzzed, looked_at, shrunk

#: Differences that are shrunk and printed singly.
_PRINTED_MAX = 12


def show(seed: int, differences: Sequence[Difference], save: Path | None) -> None:
    """Print the first difference of each kind, with a small file that shows it."""
    first: dict[tuple[str, str, str], Difference] = {}
    for case in differences:
        first.setdefault((case.finding.kind, case.finding.way, case.format), case)
    kinds = Counter((case.finding.kind, case.finding.way, case.format) for case in differences)
    with tempfile.TemporaryDirectory(prefix="splitbrain-fuzz-") as folder:
        for kind, count in kinds.most_common(_PRINTED_MAX):
            case = first[kind]
            small = shrunk(file_of(seed, case.number), case.finding, Path(folder) / "history")
            print(f"\n{count:,} x {', '.join(kind)}; file {case.number}: {case.finding.detail}")
            print(f"  python -m bench.reader_fuzz --seed {seed} --only {case.number}")
            print(f"  {small._replace(content=b'')}")
            if small.format != "parquet":
                print("".join(f"    {line!r}\n" for line in small.content.splitlines(True)), end="")
            if save is not None:
                save.mkdir(parents=True, exist_ok=True)
                name = save / f"{seed}-{case.number}.{case.format}"
                name.write_bytes(small.stored)
                print(f"  saved as {name}")
    if len(kinds) > _PRINTED_MAX:
        print(f"\nand {len(kinds) - _PRINTED_MAX} kinds more")


def main() -> int:
    """Compare, print the table, the differences and the line."""
    parser = argparse.ArgumentParser(description="Readers of histories against plain ones.")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, help="the number of one file")
    parser.add_argument("--save", type=Path, help="where to keep small files that differ")
    options = parser.parse_args()
    began_s = time.monotonic()
    if options.only is None:
        tally = fuzzed(options.seed, options.files, options.jobs)
    else:
        tally = looked_at(options.seed, range(options.only, options.only + 1))
    seconds = round(time.monotonic() - began_s, 1)
    for name, count in tally.counts.most_common():
        print(f"{count:>9,}  {name}")
    show(options.seed, tally.differences, options.save)
    line = {
        "bench": "reader_fuzz",
        "seed": options.seed,
        "files": options.files if options.only is None else 1,
        "differences": len(tally.differences),
        "seconds": seconds,
        "counts": dict(tally.counts),
    }
    print(json.dumps(line))
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
