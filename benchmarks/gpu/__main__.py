"""Correctness and speed on a GPU, in at most nine minutes: ``python -m benchmarks.gpu`` (``make test-gpu``).

Every section is a process of its own with a time limit, and every row is in the report as soon as it is known
(``report.md`` and ``report.json``). ``--device cpu`` does the same in small, within a minute; waits are then
counted on the simulated GPU. Texts and weights are made up, so that nothing but the repository is needed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.gpu.needs import missing, say_what_is_missing


def main() -> int:
    """Run all sections; 1 where a row is wrong, 2 where nothing can be run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--output", default="runs/test-gpu", help="directory of the report (%(default)s)")
    parser.add_argument("--seconds", type=float, help="for all sections together (530, on a CPU 58)")
    parser.add_argument("--sections", nargs="+", metavar="NAME", help="these alone (default: all)")
    args = parser.parse_args()
    absent = missing()
    if say_what_is_missing(absent):
        return 2
    from benchmarks.gpu.sections import MOST_SECONDS, run  # which needs what was looked for

    seconds = args.seconds or MOST_SECONDS[args.device]
    return run(args.device, Path(args.output), seconds=seconds, only=args.sections, without_tests=bool(absent.tests))


if __name__ == "__main__":
    sys.exit(main())
