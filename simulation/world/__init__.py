"""The runtime ``simulated``: one thread, a virtual clock, connections and disks made of memory.

Knows no system: a system hands it the nodes (``contracts.simulation``). Everything in it is a
function of the scenario: no wall clock, no order of a hash, no thread.
"""
