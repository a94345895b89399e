"""Where nodes live. A runtime acts: it starts, kills, pauses and cuts, and says what it cannot do.

It decides nothing about a test, and knows no system under test and no checker.
"""
