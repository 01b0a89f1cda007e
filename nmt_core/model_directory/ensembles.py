"""Which models may be the members of one ensemble."""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.interface import SpellingModel
from nmt_core.text.copying import CopyScheme


def check_members(models: Sequence[LoadedModel]) -> None:
    """Raises ConfigError where there is no model, or they do not write and spell the same words in one order."""
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
                f"{first.folder} reads {counted(len(first.factors), 'factor')} beside each source word and"
                f" {other.folder} {len(other.factors)}; the models of an ensemble read the same text"
            )
        check_same_order(first, other)
        _check_same_spelling(first, other)
        _check_same_copying(first, other)


def check_same_order(first: LoadedModel, other: LoadedModel) -> None:
    """Raises ConfigError where one writes from left to right and the other from right to left."""
    if other.target_order != first.target_order:
        raise ConfigError(
            f"{first.folder} writes targets {first.target_order} and {other.folder} {other.target_order}, so that they "
            "have no next word in common; use each of them by itself, such as two features for reranking"
        )


def _check_same_spelling(first: LoadedModel, other: LoadedModel) -> None:
    """Raises ConfigError where not both spell unknown target words, with the same characters."""
    spells = [loaded for loaded in (first, other) if isinstance(loaded.model, SpellingModel)]
    if len(spells) == 1:
        (without,) = [loaded for loaded in (first, other) if loaded is not spells[0]]
        raise ConfigError(
            f"{spells[0].folder} spells unknown target words and {without.folder} does not, so that their numbers are "
            "of different texts; use each of them by itself, such as two features for reranking"
        )
    if isinstance(first.model, SpellingModel) and isinstance(other.model, SpellingModel):
        mine, theirs = first.model.target_characters, other.model.target_characters
        if (mine.characters, mine.longest) != (theirs.characters, theirs.longest):
            raise ConfigError(
                f"{first.folder} and {other.folder} spell with other characters, or words of another length; train the "
                "members of an ensemble with one model.target_characters and one model.longest_spelling"
            )


def _check_same_copying(first: LoadedModel, other: LoadedModel) -> None:
    """Raises ConfigError where unknown words of the same text become different words."""
    if first.config.copying != other.config.copying:
        schemes = (one.config.copying or "none" for one in (first, other))
        raise ConfigError(
            "{} and {} were trained on text annotated in different ways (copying: {} and {}); "
            "use each of them by itself, such as two features for reranking".format(
                first.folder, other.folder, *schemes
            )
        )
    if first.config.copying is CopyScheme.COPYABLE and first.source.words != other.source.words:
        raise ConfigError(
            f"{first.folder} and {other.folder} number unknown words by different source vocabularies "
            "(copying: copyable); train the models of an ensemble with one source vocabulary"
        )
