"""``smt-bridge``, and ``python -m smt_bridge``."""

import sys

from nmt_core.commands.start import start


def main() -> int:
    """Run the program; the exit code."""
    return start("smt-bridge", "smt_bridge.commands.main")


if __name__ == "__main__":
    sys.exit(main())
