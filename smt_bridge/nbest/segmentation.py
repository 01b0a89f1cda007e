"""The phrase pairs a hypothesis was made of, from the marks of ``moses -report-segmentation``.

    Un homme |0-1| avec un chapeau |2-4| . |5-5|

Behind every target phrase stands which source words, counted from 0, it translates; ``-report-segmentation-enriched``
puts more behind these two numbers.
"""

from __future__ import annotations

import re

from nmt_core.base.interfaces import SentencePair
from nmt_core.base.messages import counted
from smt_bridge.moses_lines import split_tokens
from smt_bridge.nbest.entry import NbestEntry

MARK = re.compile(rb"(?:^|(?<=[ \t]))\|([0-9]{1,9})-([0-9]{1,9})(?:,[^|]*)?\|(?=[ \t]|$)")
_NONE = "has no marks of the phrases used, such as |0-1|; decode with -report-segmentation, or leave out phrases:SPEC"


def phrase_pairs(source: str, entry: NbestEntry) -> list[SentencePair]:
    """The pairs in the order of the target; words are those of ``source`` and of the entry's hypothesis.

    Raises ValueError for a hypothesis without marks, with words behind the last one, or with one beyond the source.
    """
    read, written = source.split(" ") if source else [], entry.text.split(" ") if entry.text else []
    pairs, begin, end_of_mark = [], 0, 0
    marked = b"" if entry.json else entry.fields[1]
    for mark in MARK.finditer(marked):
        size = len(split_tokens(marked[end_of_mark : mark.start()]))
        first, last = int(mark[1]), int(mark[2])
        if not first <= last < len(read):
            raise ValueError(
                f"the mark {mark[0].decode()} is not of a source of {counted(len(read), 'word')}; is it another source?"
            )
        pairs.append(SentencePair(" ".join(read[first : last + 1]), " ".join(written[begin : begin + size])))
        begin, end_of_mark = begin + size, mark.end()
    if begin != len(written):
        raise ValueError("has words behind the last mark of a phrase" if pairs else _NONE)
    return pairs
