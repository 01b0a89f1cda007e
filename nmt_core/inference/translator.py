"""Lines in, translations out, in order.

Lines are sorted by length, the longest first, translated in a batch in which the next lines take the place of those
that are done, and put back in the order of the input.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from nmt_core.base.errors import ConfigError
from nmt_core.batches.padding import group_by_tokens
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.lines import LineRequests, SourceLine
from nmt_core.inference.output.copies import check_unknowns_allowed
from nmt_core.inference.output.finish import Finisher, Translation
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.search.beam import BeamSearch, search_all
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.search.predictor import Predictor, make_predictor
from nmt_core.inference.search.requests import Finished, Request, checked
from nmt_core.inference.search.sampling import sample_all
from nmt_core.model_directory.ensembles import open_raw_text
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.text.copying import Copying
from nmt_core.text.processing import RawText
from nmt_core.text.vocabulary import joint_vocabulary


class Translator:
    """Translates with one model or an ensemble.

    ``config`` chooses beam search or sampling. ``batch_tokens`` limits the source words searched at once. A line
    without words has the empty translation with the pair scorer's number, whatever search has. With ``candidates``
    every batch is searched with the words its candidate list has. ``unknowns`` is what is written instead of ``<unk>``,
    which needs models with attention or of annotated text (else ConfigError); the latter write words of the text in any
    case. Models that spell words write none (``nmt_core.inference.output.spelling``).

    Lines are text, or ``SourceLine``s, whose translations contain phrases, or have n-gram guidance.
    One that cannot be translated so is a ConfigError that names its number.
    """

    def __init__(
        self,
        models: Sequence[LoadedModel],
        *,
        config: DecodingConfig | SamplingConfig | None = None,
        batch_tokens: int = 1000,
        attention: bool = False,
        candidates: CandidateLists | None = None,
        unknowns: UnknownReplacement | None = None,
    ) -> None:
        self.models = tuple(models)
        self._folders = ", ".join(loaded.folder for loaded in models)
        self.config = config or DecodingConfig()
        if isinstance(self.config, DecodingConfig) and self.config.nbest > self.config.beam:
            raise ConfigError(f"{self.config.nbest} best translations need a beam of at least {self.config.nbest}")
        self.batch_tokens = batch_tokens
        self.source = joint_vocabulary([loaded.source for loaded in models])
        self.predictor = make_predictor(models)
        self.copying, self.unknowns = models[0].copying, unknowns
        self.attention = attention or (unknowns is not None and self.copying is None)
        if self.copying is not None:
            self.config = self._of_annotated_text(self.copying)
        self.candidates = candidates
        self._requests = LineRequests(self.config, models[0], candidates is not None)
        self._finisher = Finisher(
            models,
            self.predictor.aligns,
            rescores=candidates is None,  # among candidates search has another distribution than the pair scorer
            unknowns=unknowns,
        )
        if unknowns is not None:
            self._check_replaces()

    def __repr__(self) -> str:
        return f"Translator({self.predictor!r}, {self.config!r})"

    def _of_annotated_text(self, copying: Copying) -> DecodingConfig | SamplingConfig:
        if self.config.forbid_unknown:
            check_unknowns_allowed(self.models)
        return self.config.lengthened(copying.scheme.tokens_of_a_word)

    def check_attends(self, purpose: str) -> None:
        """Raises ConfigError where no model has attention, which the purpose needs."""
        if self.predictor.aligns is None:
            raise ConfigError(f"{purpose} needs a model with attention (such as rnnsearch); {self._folders} has none")

    def _check_replaces(self) -> None:
        """Raises ConfigError where these models write no ``<unk>``, or do not say where it comes from."""
        if self.copying is None:
            self.check_attends("replacing <unk>")
        if self._finisher.spells:
            raise ConfigError(f"replacing <unk> is for models that write it; {self._folders} spells unknown words")

    def translate(
        self, lines: Sequence[str | SourceLine], *, raw: bool = False, first: int = 0
    ) -> list[list[Translation]]:
        """The translations of every line, best first. ``raw`` lines are tokenised, and detokenised after.

        ``first`` is the number of the first line, from 0; samples are drawn by it, and errors name it.
        """
        asked = [line if isinstance(line, SourceLine) else SourceLine(line) for line in lines]
        if raw:
            asked = [replace(line, text=self.processor.tokenize(line.text)) for line in asked]
        requests = [self._requests.make(number, line) for number, line in enumerate(asked, start=first)]
        found: dict[int, Finished[int]] = {}
        for done in self._decode([request for request in requests if request.source]):
            checked(done, f"line {done.request.key + 1}: ")
            found[done.request.key] = done
        nbests = self._finisher.finish([found.get(one.key) or Finished(one, []) for one in requests])
        return [[self._detokenized(one) for one in nbest] for nbest in nbests] if raw else nbests

    def _decode(self, requests: Sequence[Request[int]]) -> Iterator[Finished[int]]:
        """What is found for sources, the longest first."""
        longest_first = sorted(requests, key=lambda request: -len(request.source))
        if self.candidates is None:
            yield from self._search(self.predictor, longest_first)
            return
        for group in group_by_tokens([len(request.source) + 1 for request in longest_first], limit=self.batch_tokens):
            batch = [longest_first[place] for place in group]
            asked = {word for request in batch for word in request.target_words}
            words_C = self.candidates.of((word for one in batch for word in one.source.words), also=asked)
            ids = words_C.tolist()
            place_of = {number: place for place, number in enumerate(ids)}
            narrow = [request.with_words(place_of) for request in batch]
            for done in self._search(self.predictor.restrict_vocabulary(words_C), narrow):
                yield done.with_words(ids)

    def _search(self, predictor: Predictor, requests: Sequence[Request[int]]) -> Iterator[Finished[int]]:
        if isinstance(self.config, DecodingConfig):
            search: BeamSearch[int] = BeamSearch(predictor, attention=self.attention)
            return search_all(search, requests, batch_tokens=self.batch_tokens)
        return sample_all(
            predictor,
            requests,
            config=self.config,
            batch_tokens=self.batch_tokens,
            attention=self.attention,
        )

    def _detokenized(self, translation: Translation) -> Translation:
        return replace(translation, text=self.processor.detokenize(translation.text))

    @functools.cached_property
    def processor(self) -> RawText:
        """What makes of raw text what the models read, and back. Raises ConfigError where they differ in that."""
        return open_raw_text(self.models)
