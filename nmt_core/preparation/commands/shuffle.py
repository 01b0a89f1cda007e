"""``nmt-core shuffle``: parallel files in a random order, larger than memory if need be."""

from __future__ import annotations

import argparse

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.preparation.corpus import shuffle


def shuffle_files(args: argparse.Namespace) -> int:
    """Shuffle."""
    if len(args.output) != len(args.inputs):
        files, inputs = counted(len(args.output), "file"), counted(len(args.inputs), "input")
        raise ConfigError(f"--output names {files} for {inputs}; give one for each")
    if args.seed < 0 or args.memory < 1:
        raise ConfigError("--seed is 0 or more, --memory at least 1")
    lines = shuffle(args.inputs, args.output, seed=args.seed, memory=args.memory << 20)
    say(counted(lines, "line"))
    return 0
