"""Suites of tests: a matrix in a file, a time budget, and a ledger that adds up.

``definition`` and ``reading`` turn a file into records, ``cells`` into planned runs, ``agenda``
hands them out, ``attempt`` starts one child process and waits for it, ``conclusion`` reads its
folder, ``ledger`` keeps the result, ``tally`` adds up, ``summary`` shows; ``conductor`` and
``command`` hold it together. Source: issue 4, item 8.
"""
