"""The release gate: a policy, the figures of some runs, and one answer (issue 8, item 4).

``policy`` reads the demands and ``selection`` finds the runs, ``verdict_figures`` and ``gating``
measure, ``evaluation`` decides, ``record`` holds the answer that JSON, JUnit, Markdown and the
terminal are made from. Must never be green for lack of data.
"""
