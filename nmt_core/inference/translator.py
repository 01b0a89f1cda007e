"""Lines in, translations out, in order.

A window of lines is sorted by length, the longest first, translated in a batch in which the next
lines take the place of those that are done, and put back in the order of the input; windows follow
one another, so that a file of any size takes constant memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from nmt_core.data.batching import group_by_tokens, pad
from nmt_core.errors import ConfigError
from nmt_core.inference.beam_search import BeamSearch, DecodingConfig, Request, search_all
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.hypothesis import Hypothesis, Matrix
from nmt_core.inference.predictor import Ensemble, ModelPredictor, Predictor, ids_in, joint_vocabulary
from nmt_core.inference.sampling import SamplingConfig, sample
from nmt_core.inference.shallow_fusion import FusedLanguageModel, fuse
from nmt_core.inference.unknowns import NOTHING_REPLACED, UnknownCounts, UnknownReplacement
from nmt_core.models.checkpoint import LoadedModel, load_model
from nmt_core.models.interface import NO_WORD
from nmt_core.models.raw_text import open_raw_text
from nmt_core.text.processing import RawText
from nmt_core.text.vocabulary import END, split_words


@dataclass(frozen=True)
class Translation:
    """One translation of one line.

    ``text`` is tokenised, or raw when raw text was given. ``words`` are the target words as the
    model has them, but for ``<unk>`` where it is replaced; the numbers and ``attention`` are those of
    ``Hypothesis``. ``source_words`` are the tokenised words of the source. ``lm_log_prob`` is what an
    n-gram model said, if one was asked; ``unknown`` counts the words that were replaced.
    """

    text: str
    words: tuple[str, ...]
    log_prob: float
    score: float
    word_log_probs: tuple[float, ...]
    source_words: tuple[str, ...]
    attention: Matrix | None = field(default=None, compare=False)
    lm_log_prob: float | None = None
    unknown: UnknownCounts = NOTHING_REPLACED

    @property
    def source_labels(self) -> tuple[str, ...]:
        """What the columns of ``attention`` stand for."""
        return (*self.source_words, END)

    @property
    def target_labels(self) -> tuple[str, ...]:
        """What the rows of ``attention`` and ``word_log_probs`` stand for."""
        return (*self.words, END)


class Translator:
    """Translates with one model or an ensemble.

    ``config`` chooses beam search or sampling. ``batch_tokens`` limits the source words searched at
    once, ``window`` the lines read ahead by ``translate_stream``. A line without words has the
    empty translation, log-probability 0, without asking the models. With ``fusion`` a language model
    has a say in the search; log-probabilities are then the sums that ``shallow_fusion`` defines.
    With ``candidates`` every batch is searched with the words its candidate list has. ``unknowns``
    says what is written instead of ``<unk>``, which takes models with attention (else ConfigError).
    """

    def __init__(
        self,
        models: Sequence[LoadedModel],
        *,
        config: DecodingConfig | SamplingConfig | None = None,
        batch_tokens: int = 1000,
        window: int = 1000,
        attention: bool = False,
        average: str = "log-probabilities",
        fusion: FusedLanguageModel | None = None,
        candidates: CandidateLists | None = None,
        unknowns: UnknownReplacement | None = None,
    ) -> None:
        self.models = tuple(models)
        self.config = config or DecodingConfig()
        if isinstance(self.config, DecodingConfig) and self.config.nbest > self.config.beam:
            raise ConfigError(f"{self.config.nbest} best translations need a beam of at least {self.config.nbest}")
        self.batch_tokens, self.window = batch_tokens, window
        self.attention, self.unknowns = attention or unknowns is not None, unknowns
        self.source = joint_vocabulary([loaded.source for loaded in models])
        self.target = models[0].target
        self.predictor = make_predictor(models, average=average)
        if fusion is not None:
            self.predictor = fuse(self.predictor, self.models, fusion)
        self.candidates = candidates
        if unknowns is not None and not attends(self.predictor):
            folders = ", ".join(loaded.folder for loaded in models)
            raise ConfigError(f"replacing <unk> needs a model with attention (such as rnnsearch); {folders} has none")
        self._processor: RawText | None = None

    def __repr__(self) -> str:
        return f"Translator({self.predictor!r}, {self.config!r})"

    def translate(self, lines: Sequence[str], *, raw: bool = False) -> list[list[Translation]]:
        """The translations of every line, best first. ``raw`` lines are tokenised, and detokenised after."""
        return self._translate(lines, first=0, raw=raw)

    def translate_stream(self, lines: Iterable[str], *, raw: bool = False) -> Iterator[list[Translation]]:
        """The same for lines of any number, a window at a time."""
        lines = iter(lines)
        first = 0
        while part := list(itertools.islice(lines, self.window)):
            yield from self._translate(part, first=first, raw=raw)
            first += len(part)

    def _translate(self, lines: Sequence[str], *, first: int, raw: bool) -> list[list[Translation]]:
        texts = [self.processor.tokenize(line) for line in lines] if raw else lines
        sources = [tuple(split_words(text)) for text in texts]
        by_length = sorted((number for number, words in enumerate(sources) if words), key=lambda n: -len(sources[n]))
        ids = {number: self.source.encode(texts[number]) for number in by_length}
        found: list[list[Hypothesis]] = [[Hypothesis((), 0.0, 0.0, ())]] * len(lines)
        for number, hypotheses in self._decode(ids, sources, first):
            found[number] = hypotheses
        return [
            [self._translation(hypothesis, words, raw=raw) for hypothesis in hypotheses]
            for hypotheses, words in zip(found, sources, strict=True)
        ]

    def _decode(
        self, sources: dict[int, list[int]], words: Sequence[tuple[str, ...]], first: int
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """The hypotheses of numbered sources, as they are done; the longest should come first."""
        if self.candidates is None:
            yield from self._search(self.predictor, sources, first)
            return
        numbers = list(sources)
        for group in group_by_tokens([len(sources[number]) + 1 for number in numbers], limit=self.batch_tokens):
            batch = {numbers[place]: sources[numbers[place]] for place in group}
            words_C = self.candidates.of(word for number in batch for word in words[number])
            ids = words_C.tolist()
            for number, hypotheses in self._search(self.predictor.narrowed(words_C), batch, first):
                yield number, [replace(one, words=tuple(ids[place] for place in one.words)) for one in hypotheses]

    def _search(
        self, predictor: Predictor, sources: dict[int, list[int]], first: int
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        match self.config:
            case DecodingConfig() as config:
                search: BeamSearch[int] = BeamSearch(predictor, attention=self.attention)
                requests = (Request(number, ids, config) for number, ids in sources.items())
                yield from search_all(search, requests, batch_tokens=self.batch_tokens)
            case SamplingConfig() as config:
                numbers = list(sources)
                for group in group_by_tokens([len(sources[number]) + 1 for number in numbers], limit=self.batch_tokens):
                    batch = [numbers[place] for place in group]
                    source = pad([sources[number] for number in batch])
                    lines = [first + number for number in batch]
                    drawn = sample(predictor, source, config=config, numbers=lines, attention=self.attention)
                    yield from zip(batch, drawn, strict=True)

    def _translation(self, hypothesis: Hypothesis, source: tuple[str, ...], *, raw: bool) -> Translation:
        words, counts = tuple(self.target.decode(hypothesis.words)), NOTHING_REPLACED
        if self.unknowns is not None and hypothesis.attention is not None:
            words, counts = self.unknowns.replace(words, source, hypothesis.attention)
        text = " ".join(words)
        return Translation(
            text=self.processor.detokenize(text) if raw else text,
            words=words,
            log_prob=hypothesis.log_prob,
            score=hypothesis.score,
            word_log_probs=hypothesis.word_log_probs,
            source_words=source,
            attention=hypothesis.attention,
            unknown=counts,
        )

    @property
    def processor(self) -> RawText:
        """What makes of raw text what the models read, and back. Raises ConfigError where they differ in that."""
        if self._processor is None:
            self._processor = open_raw_text(self.models)
        return self._processor


@torch.inference_mode()
def attends(predictor: Predictor) -> bool:
    """Whether it says where it looked; one step tells."""
    memory, state = predictor.begin(pad([[]]).to(predictor.device))
    beginning_N = torch.full((1,), NO_WORD, device=predictor.device)
    return predictor.advance(beginning_N, state, memory).attention_NS is not None


def make_predictor(models: Sequence[LoadedModel], *, average: str = "log-probabilities") -> Predictor:
    """The predictor of one model or of an ensemble, for sources encoded with their joint vocabulary.

    Raises ConfigError when the models do not write the same target words.
    """
    if not models:
        raise ConfigError("no model was given")
    for other in models[1:]:
        if other.target.words != models[0].target.words:
            raise ConfigError(
                f"{models[0].folder} and {other.folder} have different target vocabularies; "
                "train the models of an ensemble with one target vocabulary"
            )
    joint = joint_vocabulary([loaded.source for loaded in models])
    members = [ModelPredictor(loaded.model, ids_in(loaded.source, joint)) for loaded in models]
    return members[0] if len(members) == 1 else Ensemble(members, average=average)


def open_translator(
    folders: Sequence[str],
    *,
    config: DecodingConfig | SamplingConfig | None = None,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    batch_tokens: int = 1000,
    attention: bool = False,
) -> Translator:
    """Load the models of ``folders`` and make their translator. Raises ModelError or ConfigError."""
    models = [load_model(folder, device=device, dtype=dtype) for folder in folders]
    return Translator(models, config=config, batch_tokens=batch_tokens, attention=attention)
