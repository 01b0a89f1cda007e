"""A model folder, or an ensemble of them, as a server uses it: its scorer, its search, its vectors, its costs."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import Aligns
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.embed import sentence_vectors
from nmt_core.inference.output.finish import Finisher
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.scoring.forms import scorer_of_form
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.scoring.walk import Weights
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.predictor import make_predictor
from nmt_core.model_directory.ensembles import open_raw_text
from nmt_core.model_directory.loaded_model import LoadedModel, load_models
from nmt_core.models.rnnencdec import RNNencdec
from nmt_core.serving.engine.work import StepDecoder
from nmt_core.serving.models.search import RunningSearch, finish, open_finisher
from nmt_core.serving.models.served import Proportions, ServedModel, Vector
from nmt_core.serving.models.transformer import open_served_transformer
from nmt_core.text.lexicon import Keep, Lexicon, fit_lexicon, read_lexicon
from nmt_core.text.unknown_share import UnknownShare
from nmt_core.text.vocabulary import UNKNOWN_ID, joint_vocabulary
from nmt_core.transformer import TRANSFORMERS
from nmt_core.v1 import nmt_pb2 as pb


class LexiconChoice(NamedTuple):
    """A lexicon for ``<unk>`` and for candidate lists, and the rule of its use for ``<unk>``."""

    path: str
    rule: str = "lexicon"


class CandidateChoice(NamedTuple):
    """How many frequent words candidate lists have, and how many of the lexicon for each source word."""

    frequent: int
    per_word: int = 10


class ArrayPairScorer(ModelPairScorer):
    """The same numbers; ``attention`` of a score is an array, used as rows of numbers, of an eighth of the size."""

    def attention_of(self, weights_LS: Weights, aligns: Aligns) -> Any:
        """In the order of the text, apart from what the others of the batch have."""
        rows: Any = weights_LS  # an array is a sequence of them
        return np.array(self.order.attention(rows, aligns), dtype=np.float32)


def open_served_model(
    folders: Sequence[str],
    defaults: DecodingConfig,
    *,
    device: str,
    dtype: str,
    decode_tokens: int = Proportions().together,
    lexicon: LexiconChoice | None = None,
    candidates: CandidateChoice | None = None,
) -> ServedModel:
    """Load a model (or ensemble) for the server. Raises ModelError, ConfigError, or InputError for the lexicon."""
    if folders[0].startswith(TRANSFORMERS):
        if lexicon or candidates:
            raise ConfigError(f"{folders[0]}: --lexicon and --candidates are for models of nmt-core; leave them out")
        return open_served_transformer(",".join(folders), defaults, device=device, dtype=dtype)
    loaded = load_models(folders, device=device, dtype=dtype)
    first, attends, encoder = loaded[0], make_predictor(loaded).aligns is not None, _encoder(loaded)
    if lexicon is not None and candidates is None:
        _check_lexicon_serves(lexicon, loaded, attends=attends)
    read = None if lexicon is None else _read_lexicon(lexicon.path, loaded, top=None if candidates else 1)
    unknowns = None if lexicon is None else UnknownReplacement(lexicon.rule, read)
    scorer, copied = ModelPairScorer(loaded), None if first.copying is None else unknowns
    # with candidate lists the pair scorer has another distribution than search
    finisher = open_finisher(loaded, unknowns=copied, rescores=candidates is None)
    return ServedModel(
        scorer=ArrayPairScorer(loaded),
        scorers=functools.cache(lambda form: scorer_of_form(loaded, scorer, form)),
        decoder=_searches(loaded, candidates, read, finisher),
        finish=functools.partial(finish, finisher),
        encode=None if encoder is None else lambda phrases: _vectors(first, phrases),
        processor=lambda: open_raw_text(loaded),
        defaults=defaults,
        unknowns=unknowns or UnknownReplacement(),
        proportions=_proportions(loaded, attends=attends, together=decode_tokens),
        description=pb.Model(
            kind=pb.MODEL_KIND_NEURAL,
            version="+".join(one.fingerprint for one in loaded),
            source_language=first.text.source_language,
            target_language=first.text.target_language,
            source_words=len(first.source),
            target_words=len(first.target),
            attends=attends,
            vector_size=0 if encoder is None else encoder.config.hidden,
        ),
        loaded=loaded,
    )


def _check_lexicon_serves(lexicon: LexiconChoice, models: Sequence[LoadedModel], *, attends: bool) -> None:
    """Raises ConfigError where nothing would be looked up."""
    useless = f"--lexicon {lexicon.path}: is of no use to {', '.join(loaded.folder for loaded in models)}, which"
    if not attends and models[0].copying is None:
        raise ConfigError(f"{useless} has no attention")
    if models[0].model.spells:
        raise ConfigError(f"{useless} spells unknown words")


def _encoder(models: Sequence[LoadedModel]) -> RNNencdec | None:
    """The model whose vectors of phrases can be asked for."""
    only = models[0].model if len(models) == 1 else None
    return only if isinstance(only, RNNencdec) else None


def _proportions(models: Sequence[LoadedModel], *, attends: bool, together: int) -> Proportions:
    words = models[0].target.words
    mean = sum(len(word.encode("utf-8", "surrogatepass")) for word in words) / len(words)
    configs = [loaded.config.model for loaded in models]
    units = max(getattr(config, "alignment", getattr(config, "hidden", 0)) for config in configs)
    copying = models[0].copying
    tokens = 1 if copying is None else copying.scheme.tokens_of_a_word
    return Proportions(mean, units if attends else 0, together, tokens)


def _searches(
    models: Sequence[LoadedModel],
    candidates: CandidateChoice | None,
    lexicon: Lexicon | None,
    finisher: Finisher,
) -> Callable[[bool], StepDecoder]:
    """What starts a search, given whether attention is wanted."""
    name = " + ".join(loaded.folder for loaded in models)
    share = UnknownShare(
        name,
        logging.getLogger(__name__).warning,
        hint="Raw text needs 'raw' in the request",
        serve=any(loaded.unknown_words_serve for loaded in models),
        usual=max(loaded.source.unknown_share for loaded in models),
    )
    lists = candidates and CandidateLists(
        models[0].target,
        frequent=candidates.frequent,
        lexicon=lexicon,
        per_word=candidates.per_word,
        copying=models[0].config.copying,
    )
    return lambda attention: RunningSearch(models, attention=attention, lists=lists, share=share, finisher=finisher)


def _read_lexicon(path: str, models: Sequence[LoadedModel], *, top: int | None) -> Lexicon:
    source, target = joint_vocabulary([one.source for one in models]), models[0].target
    fitted = fit_lexicon(read_lexicon(path, Keep(top=top)), source, target, path=path)
    if fitted.remark:
        logging.getLogger(__name__).warning("%s", fitted.remark)
    return fitted.lexicon


def _vectors(loaded: LoadedModel, phrases: Sequence[str]) -> list[Vector]:
    """The vectors of phrases, and their unknown words."""
    sentences = [loaded.encode_text(phrase) for phrase in phrases]
    rows = sentence_vectors(loaded, sentences).tolist()
    return [(tuple(row), sentence.count(UNKNOWN_ID)) for row, sentence in zip(rows, sentences, strict=True)]
