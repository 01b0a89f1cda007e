"""Recurrent neural machine translation: training, decoding, scoring and serving.

What is listed in ``__all__`` is the Python interface (docs/api.md); everything else may change. Names are loaded
when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmt_core.base.lazy import lazily
from nmt_core.version import VERSION

if TYPE_CHECKING:
    from nmt_core.base.errors import ConfigError, InputError, ModelError, NmtError, ServiceError
    from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair
    from nmt_core.inference.output.alignment import AlignedPair
    from nmt_core.inference.output.finish import Translation
    from nmt_core.inference.search.config import DecodingConfig
    from nmt_core.model import Model, load_model
    from nmt_core.serving.client.aio import AsyncNmtClient
    from nmt_core.serving.client.client import NmtClient, RemotePairScorer
    from nmt_core.serving.client.connection import Access
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "Access": "nmt_core.serving.client.connection",
            "AlignedPair": "nmt_core.inference.output.alignment",
            "AsyncNmtClient": "nmt_core.serving.client.aio",
            "ConfigError": "nmt_core.base.errors",
            "DecodingConfig": "nmt_core.inference.search.config",
            "InputError": "nmt_core.base.errors",
            "Model": "nmt_core.model",
            "ModelError": "nmt_core.base.errors",
            "NmtClient": "nmt_core.serving.client.client",
            "NmtError": "nmt_core.base.errors",
            "PairScore": "nmt_core.base.interfaces",
            "PairScorer": "nmt_core.base.interfaces",
            "RemotePairScorer": "nmt_core.serving.client.client",
            "SentencePair": "nmt_core.base.interfaces",
            "ServiceError": "nmt_core.base.errors",
            "Translation": "nmt_core.inference.output.finish",
            "load_model": "nmt_core.model",
        },
    )

__all__ = [
    "Access",
    "AlignedPair",
    "AsyncNmtClient",
    "ConfigError",
    "DecodingConfig",
    "InputError",
    "Model",
    "ModelError",
    "NmtClient",
    "NmtError",
    "PairScore",
    "PairScorer",
    "RemotePairScorer",
    "SentencePair",
    "ServiceError",
    "Translation",
    "__version__",
    "load_model",
]

__version__ = VERSION
