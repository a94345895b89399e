"""Nodes as pods in a Docker engine: pause containers, firewall rules, labels, sweep, watchdog.

Everything that is made here carries labels, and nothing that does not is ever touched.
"""
