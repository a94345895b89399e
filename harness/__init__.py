"""Runs experiments, judges them, and shows what came of it: the command line and all behind it."""
