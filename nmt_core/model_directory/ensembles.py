"""What the models of an ensemble have in common: the words they write, the raw text they read, and one signature.

The *fingerprint* of a model covers all that its directory contributes (``settings.fingerprint_of``). The *signature* of
scores adds what this process contributes: precision, device, kernels, processor, versions.
"""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted
from nmt_core.device import name_arithmetic, name_precision
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.interface import SpellingModel
from nmt_core.preparation.bundled import BundledPreprocessor, PreparedText
from nmt_core.text.copying import CopyScheme
from nmt_core.text.processing import RawText, TextProcessor
from nmt_core.version import VERSION


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
    if other.config.target_order != first.config.target_order:
        raise ConfigError(
            f"{first.folder} writes targets {first.config.target_order} and {other.folder} "
            f"{other.config.target_order}, so that they have no next word in common; "
            "use each of them by itself, such as two features for reranking"
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


def open_raw_text(models: Sequence[LoadedModel]) -> RawText:
    """For one model or an ensemble. Raises ConfigError where its members read raw text in different ways, or none."""
    if models[0].factors:
        raise ConfigError(
            f"{models[0].folder} reads words with factors (word|factor), which raw text does not have; "
            "give text whose words have them, without --raw"
        )
    preparation = shared_preparation(models)
    if preparation is not None:
        return PreparedText(preparation)
    for other in models[1:]:
        if other.text != models[0].text:
            raise _differ(models[0], other)
    return TextProcessor(models[0].text)


def shared_preparation(models: Sequence[LoadedModel]) -> BundledPreprocessor | None:
    """What all of them carry, None if nothing. Raises ConfigError where that differs."""
    first = models[0]
    for other in models[1:]:
        if not other.prepared_as(first):
            raise _differ(first, other)
    return first.preparation


def _differ(one: LoadedModel, other: LoadedModel) -> ConfigError:
    return ConfigError(
        f"{one.folder} and {other.folder} were trained on text that was prepared in different ways; "
        "an ensemble of them takes prepared text only, of one kind that all of them know"
    )


def signature_of(models: Sequence[LoadedModel], *fields: str) -> str:
    """Architectures and fingerprints, the ``fields`` of what is computed, and the arithmetic of the first model."""
    names = "+".join(loaded.config.model.type for loaded in models)
    fingerprints = "+".join(loaded.fingerprint for loaded in models)
    parameter = next(models[0].model.parameters())
    arithmetic = (f"dtype:{name_precision(parameter)}", name_arithmetic(parameter), f"version:{VERSION}")
    return "|".join([f"nmt:{names}", f"model:{fingerprints}", *fields, *arithmetic])


def with_field(signature: str, field: str) -> str:
    """A signature with one more field, before the version."""
    before, bar, version = signature.rpartition("|version:")
    return f"{before}|{field}{bar}{version}"
