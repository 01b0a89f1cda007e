"""`smt-bridge wire`: a moses.ini that uses a rescored phrase table."""

from __future__ import annotations

import argparse

from nmt_core.commands.parser import positive
from nmt_core.files import InputFile, OutputFile

RUN = "smt_bridge.tables.wire:wire"
_EXAMPLE = """example:
  smt-bridge wire moses.ini --table nmt-table.gz --output nmt.ini

In the new file the phrase table's num-features, path and weights are changed, and relative paths absolute ones,
so that Moses finds the files from any folder; nothing else. How many columns were added is read from
nmt-table.gz.json where it is there. Start weights are 0.2 for probabilities and 0 for exp(unknown); tune afterwards.
It rejects what cannot grow, such as a member of a PhraseDictionaryGroup.
Tables of rules (PhraseDictionaryMemory, PhraseDictionaryScope3 or RuleTable of moses_chart) are wired in likewise;
a glue grammar, a table with glue-grammar in its path, is never meant unless --feature names it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("ini", type=InputFile, metavar="MOSES.INI", help="the configuration of the decoder")
    add("--table", type=InputFile, required=True, metavar="FILE", help="the rescored table, as rescore-table wrote it")
    add("--added", type=positive, metavar="N", help="columns that were added (default: what FILE.json says)")
    add("--weights", type=float, nargs="+", metavar="W", help="start weights of the added columns")
    add("--feature", metavar="NAME", help="which phrase table, where the file has several")
    add("--output", type=OutputFile, default="-", metavar="NEW.INI", help="where to write ('-')")
