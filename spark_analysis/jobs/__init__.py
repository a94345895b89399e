"""Jobs: functions from DataFrames to one DataFrame of a row in ``contracts.analysis``.

A job starts nothing and writes nothing, works on any number of runs at once (every result is by
``run_id``) and is held equal to a plain-Python reference in the tests.
"""
