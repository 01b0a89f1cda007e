"""The translations that a model likes best among those that guides allow, such as the strings of a decoder's graphs.

    score = log p(y | x) + the guide's score of y

without a normalisation of the length.
"""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import Guide
from nmt_core.inference.output.finish import search_is_coarse
from nmt_core.inference.search.beam import BeamSearch, search_all
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.guided import GuideInIds
from nmt_core.inference.search.predictor import make_predictor
from nmt_core.inference.search.requests import Finished, Request, checked
from nmt_core.model_directory.ensembles import shared_preparation
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.preparation.words import remembered
from nmt_core.text.sentence import TargetOrder
from nmt_core.text.vocabulary import joint_vocabulary

_BATCH_TOKENS = 1000


class GuidedTranslator:
    """Searches with one model or an ensemble, in words as a Moses system has them, whatever the models read.

    A beam of ``beam`` hypotheses finds the ``nbest`` best. A word of a guide that a model does not know is ``<unk>`` to
    it. Raises ConfigError for models that do not write the words of the text one after the other.
    """

    def __init__(self, models: Sequence[LoadedModel], *, beam: int = 12, nbest: int = 1) -> None:
        _check(models)
        if nbest > beam:
            raise ConfigError(f"{nbest} best translations need a beam of at least {nbest}")
        self._config = DecodingConfig.from_mapping(
            {"beam": beam, "nbest": nbest, "length_normalization": 0.0}, origin="the search"
        )
        self._models = tuple(models)
        self._predictor = make_predictor(models)
        preparation, target = shared_preparation(models), models[0].target
        if preparation is None:
            self._source, self._ids_of = None, remembered(lambda word: target.encode_words([word]))
        else:
            self._source = preparation.open_surface("source", joint_vocabulary([loaded.source for loaded in models]))
            surface = preparation.open_surface("target", target)
            self._ids_of = remembered(lambda word: target.encode(surface.read(word).text))

    def translate(self, sources: Sequence[str], guides: Sequence[Guide]) -> list[Finished[int]]:
        """The best translations of every source, which has at least one word, by its guide.

        A source has none where its guide allows none. ``reached`` of a hypothesis says which of the guide's it is.
        """
        texts = [source if self._source is None else self._source.read(source).text for source in sources]
        requests = [
            Request(number, self._models[0].encode_text(text), self._config, guide=GuideInIds(guide, self._ids_of))
            for number, (text, guide) in enumerate(zip(texts, guides, strict=True))
        ]
        search: BeamSearch[int] = BeamSearch(self._predictor)
        longest_first = sorted(requests, key=lambda one: -len(one.source))
        found = {done.request.key: done for done in search_all(search, longest_first, batch_tokens=_BATCH_TOKENS)}
        for done in found.values():
            if not done.constrained:
                checked(done)
        return [found[number] for number in range(len(requests))]


def _check(models: Sequence[LoadedModel]) -> None:
    """Raises ConfigError for models that a guide cannot lead."""
    folders = ", ".join(loaded.folder for loaded in models)
    first, preparation = models[0], shared_preparation(models)
    problem = None
    if first.config.target_order is not TargetOrder.LEFT_TO_RIGHT:
        problem = f"writes {first.config.target_order}"
    elif first.copying is not None:
        problem = "writes annotated text"
    elif first.model.spells:
        problem = "spells unknown words"
    elif preparation is not None and preparation.record.settings.tokenization is None:
        problem = "reads running text, whose words are not the words of a graph"
    elif search_is_coarse(models):
        problem = "is not in float32"
    if problem is not None:
        raise ConfigError(f"{folders} {problem}: it cannot search among given strings; score n-best lists with it")
