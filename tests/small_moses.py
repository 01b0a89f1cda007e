"""The decoder that the environment variable MOSES names, and a system of a few phrases that it loads at once."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MOSES = os.environ.get("MOSES", "")
needs_moses = pytest.mark.skipif(not MOSES, reason="needs a Moses decoder: MOSES=/path/of/moses")
TABLE = """\
ab cd ||| ba dc ||| 0.9 0.5 0.9 0.5 ||| 0-0 1-1 ||| 2 2 2
ab ||| ab ||| 0.2 0.3 0.2 0.3 ||| 0-0 ||| 10 10 2
ab ||| ba ||| 0.8 0.7 0.8 0.7 ||| 0-0 ||| 8 10 8
cd ||| cd ||| 0.1 0.3 0.1 0.3 ||| 0-0 ||| 10 10 2
cd ||| dc ||| 0.8 0.7 0.8 0.7 ||| 0-0 ||| 8 10 8
ef ||| fe ba ||| 0.1 0.2 0.1 0.3 ||| 0-0 0-1 ||| 10 10 2
ef ||| fe ||| 0.8 0.7 0.8 0.7 ||| 0-0 ||| 8 10 8
"""
_WORDS = ("ba", "dc", "fe", "ab", "cd")
_BIGRAMS = ("<s> ba", "ba dc", "dc </s>", "dc fe", "fe </s>", "ba ba", "fe ba")
INI = """\
[input-factors]
0

[mapping]
0 T 0

[distortion-limit]
{distortion}

[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=phrase-table input-factor=0 output-factor=0
Distortion
KENLM name=LM0 factor=0 path=lm.arpa order=2

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0.2
TranslationModel0= 0.4 0.4 0.4 0.4
Distortion0= 0.3
LM0= 0.5
"""


def decoder(folder: Path) -> str:
    """A program of its own in that folder, so that its processes can be told from those of others."""
    found = shutil.which(MOSES)
    assert found is not None, f"MOSES is {MOSES}, which is no program"
    program = folder / "moses"
    program.write_text(f'#!/bin/bash\nexec -a "$0" "{Path(found).absolute()}" "$@"\n')
    program.chmod(0o755)
    return str(program)


def write_moses_system(folder: Path, *, distortion: int = 0) -> None:
    """``moses.ini``, ``phrase-table`` and ``lm.arpa``; without distortion every word is best turned round."""
    (folder / "moses.ini").write_text(INI.format(distortion=distortion))
    (folder / "phrase-table").write_text(TABLE)
    words = ("<unk>", "<s>", "</s>", *_WORDS)
    single = [
        f"{-99 if word == '<s>' else -1 - number / 16}\t{word}\t-0.25\n".replace("</s>\t-0.25", "</s>")
        for number, word in enumerate(words)
    ]
    pairs = [f"{-0.5 - number / 32}\t{pair}\n" for number, pair in enumerate(_BIGRAMS)]
    counts = f"\\data\\\nngram 1={len(single)}\nngram 2={len(pairs)}\n"
    (folder / "lm.arpa").write_text(f"{counts}\n\\1-grams:\n{''.join(single)}\n\\2-grams:\n{''.join(pairs)}\n\\end\\\n")


def decode(*options: str | Path, source: str, ini: str = "moses.ini") -> str:
    """What the decoder writes to its standard output, in the current folder."""
    command = [MOSES, "-f", ini, "-v", "0", *options]
    done = subprocess.run(command, input=source.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return done.stdout.decode()
