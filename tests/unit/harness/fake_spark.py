"""Another program in the place of Spark's analysis."""

from pathlib import Path

import splitbrain
from splitbrain import spark_analysis


def fake_spark(folder: Path, program: str, service: str = "raise SystemExit(1)") -> str:
    """Make a package that runs the programs instead; what must come first on Python's path.

    ``service`` stands for the analyses of many runs.
    """
    package = folder / "path" / "splitbrain" / "spark_analysis"
    package.mkdir(parents=True)
    # All else is found where it is.
    (package.parent / "__init__.py").write_text(f"__path__.extend({list(splitbrain.__path__)})\n")
    (package / "__init__.py").write_text(f"__path__.extend({list(spark_analysis.__path__)})\n")
    (package / "__main__.py").write_text(program)
    (package / "service.py").write_text(service)
    return str(folder / "path")
