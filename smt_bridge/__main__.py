"""``python -m smt_bridge`` does what the console script does."""

import sys

from smt_bridge.commands.main import main

sys.exit(main())
