"""A trained model in Python: the numbers are those of ``nmt-core decode``, ``score`` and ``embed``.

Shapes: N texts, D numbers of a vector.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence, Sized
from typing import get_args

import numpy as np
import numpy.typing as npt

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair
from nmt_core.inference.embed import source_vectors
from nmt_core.inference.output.alignment import AlignedPair
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.scoring.forms import TextForm, scorer_of_form
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel, load_models

_WINDOW = 5000  # pairs scored together, as by the command
_LINES = 1000  # translated together


def load_model(*folders: str | os.PathLike[str], device: str = "auto", dtype: str = "float32") -> Model:
    """Load a model folder, or several as one ensemble.

    Args:
        folders: Model folders, as ``nmt-core train`` and ``init`` write them.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``cuda:N``.
        dtype: ``float32``, ``float64``, ``bfloat16``, or ``tf32`` on a GPU.

    Raises:
        ModelError: a folder cannot be used.
        ConfigError: the device or precision is not there, or the models do not go together.
    """
    return Model(load_models([os.fspath(folder) for folder in folders], device=device, dtype=dtype))


class Model:
    """A model, or an ensemble of several, made by ``load_model``.

    Texts are single lines, as the model reads them: tokenised (or cut into subwords) with single spaces, unless an
    argument says otherwise. It is a ``PairScorer``, so that it can be given to ``smt_bridge``.
    """

    def __init__(self, models: Sequence[LoadedModel]) -> None:
        self._models = tuple(models)
        self._scorer = ModelPairScorer(models)

    def __repr__(self) -> str:
        folders = ", ".join(repr(loaded.folder) for loaded in self._models)
        return f"Model({folders}, {self.signature!r})"

    @property
    def signature(self) -> str:
        """What the numbers depend on: models, precision, device, versions; ``key:value`` fields between ``|``."""
        return self._scorer.signature

    def translate(
        self, texts: Iterable[str], *, raw: bool = False, config: DecodingConfig | None = None
    ) -> list[Translation]:
        """The best translation of every text, as ``nmt-core decode``.

        Args:
            texts: Source lines; with ``raw`` running text, which goes through the model's own preparation.
            raw: Whether text comes in, and goes out, as people write it.
            config: How to search (default: a beam of 12, log-probabilities divided by lengths).

        Raises:
            ConfigError: the search cannot be done with this model.
        """
        return [found[0] for found in self._translated(texts, config or DecodingConfig(), raw=raw)]

    def nbest(
        self, texts: Iterable[str], n: int, *, raw: bool = False, config: DecodingConfig | None = None
    ) -> list[list[Translation]]:
        """Up to ``n`` translations of every text, the best first, as ``nmt-core decode --nbest``.

        The beam is at least ``n``; other arguments are those of ``translate``.
        """
        wanted = _checked(config or DecodingConfig()).to_mapping() | {"nbest": n}
        checked = DecodingConfig.from_mapping(wanted, origin="nbest")
        wide = checked.model_copy(update={"beam": max(checked.beam, checked.nbest)})
        return self._translated(texts, wide, raw=raw)

    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        per_word: bool = False,
        attention: bool = False,
        form: TextForm = "prepared",
    ) -> list[PairScore]:
        """The log-probability log p(target | source), in nats, of every (source, target), as ``nmt-core score``.

        Args:
            pairs: Sources and targets.
            per_word: Also give the log-probability of every target word, and of the end.
            attention: Also give the attention weights, where the model has them.
            form: ``prepared``: as the model reads text; ``surface``: words of a Moses system, which the model cuts
                into its subwords (numbers are for the words); ``raw``: running text.

        Raises:
            ConfigError: a pair is not one, there is no such form, or the members of an ensemble were prepared
                differently.
        """
        named = [_pair(pair) for pair in pairs]
        scorer = self._scorer_of(form)
        windows = (named[start : start + _WINDOW] for start in range(0, len(named), _WINDOW))
        scored = (scorer.score(window, per_word=per_word, attention=attention) for window in windows)
        return list(itertools.chain.from_iterable(scored))

    def attention(self, source: str, target: str | None = None, *, form: TextForm = "prepared") -> AlignedPair:
        """Where the model looks in ``source`` for each word of ``target`` (default: of its own translation).

        The answer draws itself in a notebook.

        Raises:
            ConfigError: the model has no attention, there is no such form, it is ``raw``, whose words are not those
                of the text, or it is ``surface`` without a target: translations are as the model writes text.
        """
        _check_form(form)
        if form == "raw":
            raise ConfigError("attention is to the words of a text: give it tokenised, not raw")
        if target is None:
            if form == "surface":
                raise ConfigError("attention of surface words needs a target; without one, give the source as prepared")
            found = self._translated([source], DecodingConfig(), attention=True)[0][0]
            pair = found.aligned
        else:
            named = _pair((source, target))
            pair = AlignedPair.of(named, self._scorer_of(form).score([named], attention=True)[0])
        if pair.attention is None:
            raise ConfigError(f"{self._folders}: has no attention; models such as rnnsearch have")
        return pair

    def encode(self, texts: Iterable[str]) -> npt.NDArray[np.float32]:
        """The vectors of sources, (N, D), as ``nmt-core embed``: what the encoder is left with.

        Raises:
            ConfigError: this is an ensemble, or a model without an encoder.
        """
        if len(self._models) > 1:
            raise ConfigError("vectors are those of one model; an ensemble has none")
        return source_vectors(self._models[0], _lines(texts))

    @property
    def _folders(self) -> str:
        return ", ".join(loaded.folder for loaded in self._models)

    def _scorer_of(self, form: TextForm) -> PairScorer:
        _check_form(form)
        return scorer_of_form(self._models, self._scorer, form)

    def _translated(
        self, texts: Iterable[str], config: DecodingConfig, *, raw: bool = False, attention: bool = False
    ) -> list[list[Translation]]:
        translator = Translator(self._models, config=_checked(config), attention=attention)
        lines = _lines(texts)
        windows = (lines[first : first + _LINES] for first in range(0, len(lines), _LINES))
        return [found for window in windows for found in translator.translate(window, raw=raw)]


def _checked(config: DecodingConfig) -> DecodingConfig:
    if not isinstance(config, DecodingConfig):
        raise ConfigError(f"config: expected a DecodingConfig, found {config!r:.80}")
    return config


def _check_form(form: TextForm) -> None:
    if form not in get_args(TextForm):
        raise ConfigError(f"form {form!r}: expected {', '.join(get_args(TextForm))}")


def _pair(pair: tuple[str, str]) -> SentencePair:
    if isinstance(pair, str) or not isinstance(pair, Sized) or len(pair) != 2:
        raise ConfigError(f"expected a (source, target), found {pair!r:.80}")
    return SentencePair(*_lines(pair))


def _lines(texts: Iterable[str]) -> list[str]:
    """Checked: one text would be taken for its letters, and a line end for a part of a word."""
    if isinstance(texts, str):
        raise ConfigError(f"expected a list of texts, found one: [{texts[:60]!r}]")
    lines = list(texts)
    for line in lines:
        if not isinstance(line, str):
            raise ConfigError(f"a text is a string, but this is {line!r:.80}")
        if "\n" in line:
            raise ConfigError(f"a text is one line, but this has several: {line!r:.80}")
    return lines
