"""Failovers of several systems as one table in Markdown and one picture."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Final

from bench.failover_arithmetic import Failover, quantile
from bench.failover_cluster import PATIENCE_S

#: By fault: the failovers that were measured.
Row = Mapping[str, Sequence[Failover]]
_COLORS: Final = ("#c2410c", "#1d4ed8", "#047857")
_LEFT, _WIDTH, _LINE, _TOP = 270, 520, 54, 60
_NOTHING: Final = f"not within {PATIENCE_S:g} s"


def seconds(values: Sequence[float]) -> tuple[float, float, float]:
    """Return median, least and greatest of times in milliseconds, in seconds."""
    return quantile(values, 0.5) / 1000, min(values) / 1000, max(values) / 1000


def table(rows: Mapping[str, Row], faults: Sequence[str]) -> list[str]:
    """Return the lines of a table: seconds until any client's change, median and range."""

    def cell(failovers: Sequence[Failover]) -> str:
        if not failovers:
            return _NOTHING
        median, least, greatest = seconds([each.any_writer_ms for each in failovers])
        return f"{median:.2f} ({least:.2f} to {greatest:.2f})"

    lines = [f"| | {' | '.join(faults)} |", "|---" * (len(faults) + 1) + "|"]
    for title, row in rows.items():
        lines.append(f"| {title} | {' | '.join(cell(row[fault]) for fault in faults)} |")
    return lines


def picture(rows: Mapping[str, Row], faults: Sequence[str]) -> str:
    """Return the same as SVG: a line from least to greatest, a dot at the median, logarithmic."""
    every = [
        value.any_writer_ms / 1000 for row in rows.values() for of in row.values() for value in of
    ]
    low = math.floor(math.log10(min(every, default=0.1)))
    high = max(low + 1, math.ceil(math.log10(max(every, default=1.0))))

    def across(value: float) -> float:
        return _LEFT + _WIDTH * (math.log10(value) - low) / (high - low)

    bottom = _TOP + _LINE * len(rows)
    size = f'width="{_LEFT + _WIDTH + 40}" height="{bottom + 40}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<text x="16" y="24">Seconds from the fault to the next accepted change</text>',
    ]
    for place, fault in enumerate(faults):
        x = _LEFT + 120 * place
        parts.append(f'<circle cx="{x}" cy="40" r="5" fill="{_COLORS[place]}"/>')
        parts.append(f'<text x="{x + 10}" y="45">{html.escape(fault)}</text>')
    for power in range(low, high + 1):
        x = across(10.0**power)
        parts.append(f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom}" stroke="#d4d4d4"/>')
        parts.append(f'<text x="{x}" y="{bottom + 20}" text-anchor="middle">{10.0**power:g}</text>')
    for number, (title, row) in enumerate(rows.items()):
        y = _TOP + _LINE * number
        parts.append(f'<text x="16" y="{y + 31}">{html.escape(title)}</text>')
        for place, fault in enumerate(faults):
            at, color = y + 14 + 13 * place, _COLORS[place]
            if not row[fault]:
                parts.append(f'<text x="{_LEFT}" y="{at + 4}" fill="{color}">{_NOTHING}</text>')
                continue
            median, least, greatest = map(across, seconds([of.any_writer_ms for of in row[fault]]))
            parts.append(
                f'<line x1="{least:.1f}" x2="{greatest:.1f}" y1="{at}" y2="{at}" stroke="{color}" '
                f'stroke-width="2"/><circle cx="{median:.1f}" cy="{at}" r="4" fill="{color}"/>'
            )
    return "\n".join([*parts, "</svg>", ""])
