"""What is tuned of a list, and how, where nobody says otherwise.

>>> names = ["LM0", "TotalMoses0", "InMoses0", "FirstMoses0", "RankMoses0"]
>>> names += ["NmtNMT0", "TotalNmt0", "InNmt0", "FirstNmt0", "RankNmt0", "NMT0", "WordCount0"]
>>> baselines(names)
('FirstMoses0', 'FirstNmt0')
>>> " ".join(tuned_by_default(names) or ())
'TotalMoses0 InMoses0 RankMoses0 TotalNmt0 RankNmt0 NMT0 WordCount0'
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from smt_bridge.nbest.merge import baselines, column_of
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.pool import NbestPool
from smt_bridge.tuning.tune import Start

RIDGES = (0.0, 0.15, 0.3, 0.5)
"""The shares of the start in the weights that are tried."""

_WORDS = ("WordCount", "WordPenalty")  # the same number with two signs
_FOLDS = 5


class TuningPlan(NamedTuple):
    """How to tune, and what the result is compared with.

    ``baselines`` are columns ``FirstS0``; ``ridges`` are shares of the start to choose from, 0 the first. One ridge
    alone takes the best run.
    """

    start: Start | None = None
    options: TuningOptions = TuningOptions()
    baselines: tuple[str, ...] = ()
    ridges: tuple[float, ...] = (0.0,)


def plan_for_list(
    pool: NbestPool, start: Start | None, options: TuningOptions, *, recomputed: Collection[str] = ()
) -> TuningPlan:
    """How a list is tuned.

    A merged list: the columns of ``tuned_by_default`` unless ``options.features`` names others, by MERT with a ridge
    that five folds choose, compared with its systems (nothing is held out of a single sentence). A list of a single
    system: all columns, without folds.
    """
    names = list(dict.fromkeys(column.name for column in pool.columns))
    systems = baselines(names)
    if not systems:
        return TuningPlan(start, options)
    features = tuned_by_default(names, recomputed) if options.features is None else options.features
    folds = options.folds or (_FOLDS if len(pool.padding) > 1 else None)
    options = options.model_copy(update={"features": features, "folds": folds})
    return TuningPlan(start, options, systems, RIDGES if options.tuner == "mert" else RIDGES[:1])


def tuned_by_default(names: Sequence[str], recomputed: Collection[str] = ()) -> tuple[str, ...] | None:
    """The columns that are tuned where nobody names others, in the order of the list; None: all of them.

    Of each system of a merged list its total, its rank and whether it has the hypothesis (of one system less than
    there are: the last follows from the others); of its own features only those that were ``recomputed`` for every
    hypothesis (``--exact``), WordPenalty0 not beside a WordCount0. And all columns that were added to the merged list,
    which stand behind its own.
    """
    systems = baselines(names)
    if not systems:
        return None
    wanted = {column_of(system, kind) for system in systems for kind in ("Total", "Rank")}
    wanted |= {column_of(system, "In") for system in systems[:-1]} | set(recomputed)
    own = max(names.index(column_of(system, kind)) for system in systems for kind in ("In", "First", "Rank"))
    added = names[own + 1 :]
    counted = any(name.startswith(_WORDS[0]) for name in added)
    needless = {name for name in recomputed if counted and name.startswith(_WORDS[1])}
    return tuple(name for name in names if name in added or name in wanted - needless)
