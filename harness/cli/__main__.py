"""Starts the command line: ``python -m splitbrain.harness.cli``."""

from splitbrain.harness.cli.entry import start

start()
