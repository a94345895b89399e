"""The release gate: a policy, the figures of some runs, and one answer (issue 8, item 4).

``policy`` reads what is demanded, ``selection`` which runs it is demanded of, ``verdict_figures``
and ``gating`` measure, ``evaluation`` decides, ``conclusion`` holds all of it as one record
that ``json``, JUnit, Markdown and the terminal are made from. Must never be green for lack of data.
"""
