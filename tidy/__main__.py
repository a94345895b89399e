"""Run every rule over the files of the project and print what is found; exit code 1 if any."""

import sys
from pathlib import Path

from tidy.exactness_rules import check_exactness
from tidy.style_rules import check_names, check_python, check_text
from tidy.tree import Finding, project_files
from tidy.word_rules import check_words


def findings(root: Path) -> list[Finding]:
    """Everything that is wrong below ``root``, sorted by path and line."""
    found: list[Finding] = []
    files = project_files(root)
    found += check_names(files)
    for path in files:
        try:
            text = (root / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # a picture has no style, a file deleted meanwhile neither, nor a room's link
        found += check_text(path, text)
        if path.suffix == ".py":
            found += check_python(path, text)
            found += check_exactness(path, text)
            found += check_words(path, text)
    return sorted(found)


def main() -> int:
    """Print the findings, one a line."""
    found = findings(Path.cwd())
    for finding in found:
        print(finding)
    print(f"tidy: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
