"""Neural scores in Moses pipelines: phrase tables, n-best lists and the weights that go with them.

What is listed in ``__all__`` is the Python interface (docs/api.md); everything else may change. Names are loaded
when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmt_core.base.lazy import lazily
from nmt_core.version import VERSION

if TYPE_CHECKING:
    from smt_bridge.api import add_scores, read_nbest, rerank, rescore_table, tune, with_features, write_nbest
    from smt_bridge.errors import BridgeError, FormatError, WiringError
    from smt_bridge.moses.weights import format_weights, read_weights
    from smt_bridge.nbest.entry import NbestEntry, NbestList
    from smt_bridge.tables.scoring import Counts
    from smt_bridge.tuning.options import TuningOptions
    from smt_bridge.tuning.tune import TuningReport
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "BridgeError": "smt_bridge.errors",
            "Counts": "smt_bridge.tables.scoring",
            "FormatError": "smt_bridge.errors",
            "NbestEntry": "smt_bridge.nbest.entry",
            "NbestList": "smt_bridge.nbest.entry",
            "TuningOptions": "smt_bridge.tuning.options",
            "TuningReport": "smt_bridge.tuning.tune",
            "WiringError": "smt_bridge.errors",
            "add_scores": "smt_bridge.api",
            "format_weights": "smt_bridge.moses.weights",
            "read_nbest": "smt_bridge.api",
            "read_weights": "smt_bridge.moses.weights",
            "rerank": "smt_bridge.api",
            "rescore_table": "smt_bridge.api",
            "tune": "smt_bridge.api",
            "with_features": "smt_bridge.api",
            "write_nbest": "smt_bridge.api",
        },
    )

__all__ = [
    "BridgeError",
    "Counts",
    "FormatError",
    "NbestEntry",
    "NbestList",
    "TuningOptions",
    "TuningReport",
    "WiringError",
    "__version__",
    "add_scores",
    "format_weights",
    "read_nbest",
    "read_weights",
    "rerank",
    "rescore_table",
    "tune",
    "with_features",
    "write_nbest",
]

__version__ = VERSION
