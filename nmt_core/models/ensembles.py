"""Which models may be the members of one ensemble."""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.errors import ConfigError
from nmt_core.models.checkpoint import LoadedModel


def check_members(models: Sequence[LoadedModel]) -> None:
    """Raises ConfigError where there is no model, or they do not write the same target words in the same order."""
    if not models:
        raise ConfigError("no model was given")
    first = models[0]
    for other in models[1:]:
        if other.target.words != first.target.words:
            raise ConfigError(
                f"{first.folder} and {other.folder} have different target vocabularies; "
                "train the models of an ensemble with one target vocabulary"
            )
        if len(other.factors) != len(first.factors):
            raise ConfigError(
                f"{first.folder} reads {len(first.factors)} factors beside each source word and {other.folder} "
                f"{len(other.factors)}; the models of an ensemble read the same text"
            )
        check_same_order(first, other)


def check_same_order(first: LoadedModel, other: LoadedModel) -> None:
    """Raises ConfigError where one writes from left to right and the other from right to left."""
    if other.target_order != first.target_order:
        raise ConfigError(
            f"{first.folder} writes targets {first.target_order} and {other.folder} {other.target_order}, so that they "
            "have no next word in common; use each of them by itself, such as two features for reranking"
        )
