"""Jobs: functions from DataFrames to one DataFrame of a row in ``contracts.analysis``.

A parameter that is named like a table of ``schemas`` has its rows, of any number of runs at once
(every result is by ``run_id``; runs of a lake also have their ``system``). A result is in no order.
A job starts nothing, writes nothing and is held equal to a plain-Python reference in the tests.
"""
