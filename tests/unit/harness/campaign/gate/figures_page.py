"""The table of figures in ``docs/gate.md``.

Made by ``python -m tests.unit.harness.campaign.gate.figures_page``.
"""

from pathlib import Path

from splitbrain.harness.campaign.gate.catalogue import FIGURES, needs_spark

PAGE = Path(__file__).parents[5] / "docs" / "gate.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"


def table() -> str:
    """The rows of all figures."""
    lines = [
        "| figure | unit | better | over | what it is | chosen by | regression needs | Spark |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for figure in FIGURES.values():
        needed = "" if figure.better == "neither" else f"{figure.samples_min:,} {figure.samples_of}"
        cells = (
            f"`{figure.name}`",
            figure.unit,
            figure.better,
            figure.over,
            figure.meaning,
            ", ".join(figure.dimensions),
            needed,
            "yes" if needs_spark(figure.name) else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with today's table in it."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + table() + "\n" + END + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
