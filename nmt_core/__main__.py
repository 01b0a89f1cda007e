"""``nmt-core``, and ``python -m nmt_core``."""

import sys

from nmt_core.commands.start import start


def main() -> int:
    """Run the program; the exit code."""
    return start("nmt-core", "nmt_core.commands.main")


if __name__ == "__main__":
    sys.exit(main())
