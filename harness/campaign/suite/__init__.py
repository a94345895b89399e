"""Runs many tests as one suite: a matrix in a file, a time budget, and a ledger that adds up.

``definition`` and ``reading`` turn a file into records, ``cells`` into planned runs, ``agenda``
hands them out, ``attempt`` starts and sees out one child process, ``conclusion`` reads what it
left, ``ledger`` keeps it, ``tally`` adds it up, ``summary`` and ``night_junit`` show it;
``conductor`` and ``command`` hold it together. Source: issue 4, item 8.
"""
