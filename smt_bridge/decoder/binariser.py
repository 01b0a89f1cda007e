"""The commands of Moses' own programs that binarise a phrase table; ``wire`` prints them."""

from __future__ import annotations

import shlex

from smt_bridge.moses.feature_kinds import kind_of

_DIRECT = 2  # index of p(target | source) among the scores of Moses: by it targets are ranked


def binarising_command(kind: str, table: str, *, scores: int, factors: tuple[int, int] = (1, 1)) -> str:
    """The shell command that makes a table of that class of feature functions; names of files with blanks in quotes.

    ``factors`` are those of source and target words. Targets of a table with one or two scores are ranked by the last.
    """
    rank = min(_DIRECT, scores - 1)
    return kind_of(kind).made_by.format(
        table=shlex.quote(table),
        stem=shlex.quote(stem_of(table)),
        scores=scores,
        rank=rank,
        other_rank="" if rank == _DIRECT else f" -rankscore {rank}",
        source_factors=factors[0],
        target_factors=factors[1],
    )


def stem_of(table: str) -> str:
    """What the names of binarised tables begin with."""
    return table.removesuffix(".gz")
