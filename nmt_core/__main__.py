"""``python -m nmt_core`` does what the console script does."""

import sys

from nmt_core.commands.main import main

sys.exit(main())
