"""Starts the command line: ``python -m splitbrain.harness.cli``."""

import sys

from splitbrain.harness.cli.main import main

sys.exit(main())
