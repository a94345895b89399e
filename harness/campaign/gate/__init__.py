"""The release gate: a policy, the figures of some runs, and one answer (issue 8, item 4).

Must never be green for lack of data.
"""
