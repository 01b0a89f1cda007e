"""The models of a server: what each can do on its device, as the work of an engine.

The keys of work are the classes ``Scoring``, ``Encoding`` and ``Decoding`` here: requests of equal
keys are done together.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import os
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt_core.errors import ConfigError, ModelError, NmtError
from nmt_core.inference.beam_search import BeamSearch
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.predictor import joint_vocabulary
from nmt_core.inference.search_config import DecodingConfig
from nmt_core.inference.search_requests import Request
from nmt_core.inference.text_forms import OTHER_FORMS, TextForm, scorer_of_form
from nmt_core.inference.translator import Translation, attends, make_predictor
from nmt_core.inference.unknowns import UnknownReplacement
from nmt_core.interfaces import PairScorer, SentencePair
from nmt_core.serving.work import BatchWork, StepDecoder, StepWork, Work
from nmt_core.text.lexicon import Keep, Lexicon, read_lexicon
from nmt_core.text.lexicon_fit import fit_lexicon
from nmt_core.text.unknown_share import UnknownShare
from nmt_core.text.vocabulary import UNKNOWN_ID, split_words
from nmt_core.whole_numbers import whole_number

if TYPE_CHECKING:
    from nmt_core.inference.hypothesis import Hypothesis
    from nmt_core.models.checkpoint import LoadedModel
    from nmt_core.text.processing import RawText

DECODE_TOKENS = 12_000
"""Source words times beam of a running batch: about what a batch of the command line's decoder has."""

_EMPTY = Translation("", (), 0.0, 0.0, (), ())

Vector = tuple[tuple[float, ...], int]
"""The numbers of a phrase, and its unknown words."""


class Scoring(NamedTuple):
    """Pairs of a form of text are scored by the model of that name."""

    model: str
    per_word: bool = False
    attention: bool = False
    form: TextForm = "prepared"


class Encoding(NamedTuple):
    """Phrases are turned into vectors."""

    model: str


class Decoding(NamedTuple):
    """Sentences are translated; each has its own options."""

    model: str
    attention: bool = False


class Sentence(NamedTuple):
    """A tokenised sentence, and how to search for its translations."""

    text: str
    config: DecodingConfig


@dataclass(frozen=True)
class ServedModel:
    """One model on one device.

    ``decoder(attention)`` starts a search, whose batch may have ``decode_tokens``: source words times
    beam. ``encode`` is None for models without a vector of a phrase, ``vector_size`` its length;
    ``processor`` tokenises and detokenises (None: raw text is not supported); ``attends`` says
    whether there is attention, ``unknowns`` what is written for <unk> where a request wants that; ``scorers``
    makes the scorer for another form of text than the model reads (None: all are as the model reads them).
    """

    scorer: PairScorer
    decoder: Callable[[bool], StepDecoder]
    encode: Callable[[Sequence[str]], Sequence[Vector]] | None = None
    processor: Callable[[], RawText] | None = None
    defaults: DecodingConfig = dataclasses.field(default_factory=DecodingConfig)
    source_language: str = ""
    target_language: str = ""
    source_words: int = 0
    target_words: int = 0
    attends: bool = False
    unknowns: UnknownReplacement = dataclasses.field(default_factory=UnknownReplacement)
    vector_size: int = 0
    decode_tokens: int = DECODE_TOKENS
    scorers: Callable[[TextForm], PairScorer] | None = None

    def work(self, key: Hashable) -> Work:
        """The work of a key."""
        match key:
            case Scoring(_, per_word, attention, form):
                scorer = self.scorer_of(form)
                return BatchWork("score", lambda pairs: scorer.score(pairs, per_word=per_word, attention=attention))
            case Encoding() if self.encode is not None:
                return BatchWork("encode", self.encode)
            case Decoding(_, attention):
                return StepWork("translate", self.decoder(attention), most=self.decode_tokens)
        raise AssertionError(f"no work of this kind: {key}")

    def scorer_of(self, form: TextForm) -> PairScorer:
        """The scorer for pairs of a form. Raises ConfigError where the models cannot read it."""
        return self.scorer if form == "prepared" or self.scorers is None else self.scorers(form)

    def warm_up(self) -> None:
        """Do each kind of work once, and open what reads other forms of text."""
        for form in OTHER_FORMS:
            with contextlib.suppress(NmtError):  # whoever asks for it is told
                self.scorer_of(form)
        self.scorer.score([SentencePair("a", "a")])
        decoder = self.decoder(False)
        decoder.admit([(0, Sentence("a", self.defaults))])
        while not decoder.step():
            pass
        if self.encode is not None:
            self.encode(["a"])


class RunningSearch:
    """A beam search that ``Sentence``s, with their own options, enter and leave at every step."""

    def __init__(self, models: Sequence[LoadedModel], *, attention: bool, unknown: UnknownShare | None = None) -> None:
        self._unknown = unknown
        self._source, self._target = joint_vocabulary([loaded.source for loaded in models]), models[0].target
        self._predictor, self._attention = make_predictor(models), attention
        self._search: BeamSearch[int] = BeamSearch(self._predictor, attention=attention)
        self._words: dict[int, tuple[str, ...]] = {}
        self._empty: list[int] = []

    @property
    def tokens(self) -> float:
        """Live hypotheses times the mean length of their sources."""
        if not self._words:
            return 0.0
        return self._search.rows * (sum(map(len, self._words.values())) / len(self._words) + 1)

    def admit(self, requests: Sequence[tuple[int, Any]]) -> None:
        """Let sentences in; one without words has the empty translation, without asking the model."""
        entering = []
        for key, (text, config) in requests:
            words = tuple(split_words(text))
            if words:
                self._words[key] = words
                entering.append(Request(key, self._source.encode(text), config))
                if self._unknown is not None:
                    self._unknown.add(words=len(words), unknown=entering[-1].source.count(UNKNOWN_ID))
            else:
                self._empty.append(key)
        if entering:
            self._enter(entering)

    def _enter(self, requests: list[Request[int]]) -> None:
        self._search.admit(requests)

    def step(self) -> list[tuple[int, Any]]:
        """One step; an answer is the list of a sentence's translations."""
        found: list[tuple[int, Any]] = [(key, [_EMPTY]) for key in self._empty]
        self._empty = []
        for done in self._search.step():
            words = self._words.pop(done.key)
            nbest: Any = [self._translation(hypothesis, words) for hypothesis in done.hypotheses]
            found.append((done.key, nbest or ModelError("the model's probabilities are not numbers")))
        return found

    def cancel(self, keys: Sequence[int]) -> None:
        """Free the rows of sentences."""
        self._empty = [key for key in self._empty if key not in keys]
        self._search.cancel([key for key in keys if self._words.pop(key, None) is not None])

    def _translation(self, hypothesis: Hypothesis, source: tuple[str, ...]) -> Translation:
        words = tuple(self._target.decode(hypothesis.words))
        numbers = hypothesis.log_prob, hypothesis.score, hypothesis.word_log_probs
        return Translation(" ".join(words), words, *numbers, source, hypothesis.attention)


class CandidateSearch(RunningSearch):
    """The same with candidate lists: sentences that arrive while others are searched wait, and share the next list."""

    def __init__(
        self,
        models: Sequence[LoadedModel],
        lists: CandidateLists,
        *,
        attention: bool,
        unknown: UnknownShare | None = None,
    ) -> None:
        super().__init__(models, attention=attention, unknown=unknown)
        self._lists = lists
        self._ids: list[int] = []  # of the words of the list
        self._waiting: list[Request[int]] = []

    @property
    def tokens(self) -> float:
        """What is searched, and what waits."""
        return super().tokens + sum(request.config.beam * (len(request.source) + 1) for request in self._waiting)

    def _enter(self, requests: list[Request[int]]) -> None:
        self._waiting += requests

    def step(self) -> list[tuple[int, Any]]:
        """One step; when nobody is left, those who wait begin."""
        if self._waiting and not self._search.rows:
            words_C = self._lists.of(word for request in self._waiting for word in self._words[request.key])
            self._ids = words_C.tolist()
            self._search = BeamSearch(self._predictor.narrowed(words_C), attention=self._attention)
            self._search.admit(self._waiting)
            self._waiting = []
        return super().step()

    def cancel(self, keys: Sequence[int]) -> None:
        """Free the rows of sentences, and forget those who wait."""
        waiting = {request.key for request in self._waiting}.intersection(keys)
        self._waiting = [request for request in self._waiting if request.key not in waiting]
        for key in waiting:
            del self._words[key]
        super().cancel([key for key in keys if key not in waiting])

    def _translation(self, hypothesis: Hypothesis, source: tuple[str, ...]) -> Translation:
        words = tuple(self._ids[place] for place in hypothesis.words)
        return super()._translation(dataclasses.replace(hypothesis, words=words), source)


class LexiconChoice(NamedTuple):
    """A lexicon for ``<unk>`` and for candidate lists, and the rule of its use for ``<unk>``."""

    path: str
    rule: str = "lexicon"


class CandidateChoice(NamedTuple):
    """How many frequent words candidate lists have, and how many of the lexicon for each source word."""

    frequent: int
    per_word: int = 10


def open_served_model(
    folders: Sequence[str],
    defaults: DecodingConfig,
    *,
    device: str,
    dtype: str,
    decode_tokens: int = DECODE_TOKENS,
    lexicon: LexiconChoice | None = None,
    candidates: CandidateChoice | None = None,
) -> ServedModel:
    """Load a model (or ensemble) for the server. Raises ModelError, ConfigError, or InputError for the lexicon."""
    from nmt_core.device import choose_device, choose_dtype
    from nmt_core.inference.pair_scorer import ModelPairScorer
    from nmt_core.models.checkpoint import load_model
    from nmt_core.models.raw_text import open_raw_text
    from nmt_core.models.rnnencdec import RNNencdec

    place = choose_device(device)
    loaded = [load_model(folder, device=place, dtype=choose_dtype(dtype, place)) for folder in folders]
    has_attention = attends(make_predictor(loaded))
    if lexicon is not None and not has_attention and candidates is None:
        raise ConfigError(f"--lexicon {lexicon.path}: is of no use to {', '.join(folders)}, which has no attention")
    read = None if lexicon is None else _read_lexicon(lexicon.path, loaded, top=None if candidates else 1)
    only = loaded[0].model if len(loaded) == 1 else None
    encoder = only if isinstance(only, RNNencdec) else None

    scorer = ModelPairScorer(loaded)

    return ServedModel(
        scorer=scorer,
        scorers=functools.cache(lambda form: scorer_of_form(loaded, scorer, form)),
        decoder=_searches(loaded, candidates, read),
        encode=None if encoder is None else lambda phrases: _vectors(encoder, loaded[0].source, phrases),
        processor=lambda: open_raw_text(loaded),
        defaults=defaults,
        decode_tokens=decode_tokens,
        source_language=loaded[0].text.source_language,
        target_language=loaded[0].text.target_language,
        source_words=len(loaded[0].source),
        target_words=len(loaded[0].target),
        attends=has_attention,
        unknowns=UnknownReplacement() if lexicon is None else UnknownReplacement(lexicon.rule, read),
        vector_size=0 if encoder is None else encoder.config.hidden,
    )


def _searches(
    models: Sequence[LoadedModel], candidates: CandidateChoice | None, lexicon: Lexicon | None
) -> Callable[[bool], StepDecoder]:
    """What starts a search, given whether attention is wanted."""
    name = " + ".join(loaded.folder for loaded in models)
    unknown = UnknownShare(name, logging.getLogger(__name__).warning, hint="Raw text needs 'raw' in the request")
    if candidates is None:
        return lambda attention: RunningSearch(models, attention=attention, unknown=unknown)
    lists = CandidateLists(
        models[0].target, frequent=candidates.frequent, lexicon=lexicon, per_word=candidates.per_word
    )
    return lambda attention: CandidateSearch(models, lists, attention=attention, unknown=unknown)


def _read_lexicon(path: str, models: Sequence[LoadedModel], *, top: int | None) -> Lexicon:
    source, target = joint_vocabulary([one.source for one in models]), models[0].target
    fitted = fit_lexicon(read_lexicon(path, Keep(top=top)), source, target, path=path)
    if fitted.remark:
        logging.getLogger(__name__).warning("%s", fitted.remark)
    return fitted.lexicon


def _vectors(model: Any, vocabulary: Any, phrases: Sequence[str]) -> list[Vector]:
    """The summaries of phrases, batched by length."""
    import torch

    from nmt_core.data.batching import group_by_tokens, pad
    from nmt_core.text.vocabulary import UNKNOWN_ID

    ids = [vocabulary.encode(phrase) for phrase in phrases]
    by_length = sorted(range(len(ids)), key=lambda number: len(ids[number]))
    vectors: list[Vector] = [((), 0)] * len(ids)
    with torch.inference_mode():
        for group in group_by_tokens([len(ids[number]) + 1 for number in by_length], limit=10_000):
            numbers = [by_length[place] for place in group]
            summary_BH = model.encode(pad([ids[number] for number in numbers]).to(model.device)).summary_BH
            for number, values in zip(numbers, summary_BH.float().cpu().tolist(), strict=True):
                vectors[number] = tuple(values), ids[number].count(UNKNOWN_ID)
    return vectors


def model_folders(root: str) -> dict[str, list[str]]:
    """The models in a folder of model folders, by name. Raises ConfigError when there are none."""
    try:
        names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise ConfigError(f"--models {root}: cannot be read ({error.strerror})") from error
    folders = {name: [os.path.join(root, name)] for name in names}
    folders = {name: parts for name, parts in folders.items() if os.path.isfile(os.path.join(parts[0], "config.yaml"))}
    if not folders:
        raise ConfigError(f"--models {root}: no model folder (one with a config.yaml) in it")
    return folders


def named_folders(arguments: Sequence[str]) -> dict[str, list[str]]:
    """The folders of every NAME=DIR,DIR. Raises ConfigError."""
    folders: dict[str, list[str]] = {}
    for text in arguments:
        name, equals, parts = text.partition("=")
        if not (name and equals and all(parts.split(","))):
            raise ConfigError(f"--model {text}: expected NAME=DIR, or NAME=DIR,DIR for an ensemble")
        if name in folders:
            raise ConfigError(f"--model {text}: there is a model {name} already")
        folders[name] = parts.split(",")
    return folders


def named_lexicons(arguments: Sequence[str], models: Collection[str]) -> dict[str, LexiconChoice]:
    """The lexicon of every NAME=FILE or NAME=FILE,RULE, of one of these models. Raises ConfigError."""
    choices: dict[str, LexiconChoice] = {}
    for text in arguments:
        name, _, choice = text.partition("=")
        path, comma, rule = choice.partition(",")
        if not (name and path) or rule not in (["lexicon", "lexicon-lowercase"] if comma else [""]):
            raise ConfigError(f"--lexicon {text}: expected NAME=FILE, or NAME=FILE,lexicon-lowercase")
        if name in choices or name not in models:
            problem = "has a lexicon already" if name in choices else f"is none of {', '.join(sorted(models))}"
            raise ConfigError(f"--lexicon {text}: the model {name} {problem}")
        choices[name] = LexiconChoice(path, rule or "lexicon")
    return choices


def named_candidates(arguments: Sequence[str], models: Collection[str]) -> dict[str, CandidateChoice]:
    """The candidate lists of every NAME=K or NAME=K,K', of one of these models. Raises ConfigError."""
    choices: dict[str, CandidateChoice] = {}
    for text in arguments:
        name, _, choice = text.partition("=")
        numbers = [number for part in choice.split(",") if (number := whole_number(part)) is not None]
        if not name or len(numbers) > 2 or len(numbers) <= choice.count(",") or numbers[0] < 1:
            problem = "expected NAME=K or NAME=K,L: K frequent words, L of the lexicon for a source word"
            raise ConfigError(f"--candidates {text}: {problem}")
        if name in choices or name not in models:
            problem = "has candidates already" if name in choices else f"is none of {', '.join(sorted(models))}"
            raise ConfigError(f"--candidates {text}: the model {name} {problem}")
        choices[name] = CandidateChoice(*numbers)
    return choices
