"""What a running search allocates follows the source words that are searched, not the longest source."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nmt_core.base.interfaces import SentencePair
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.scoring.walk import MAX_POSITIONS
from nmt_core.inference.search.beam import BeamSearch, search_all
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.inference.search.requests import Request
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.interface import TranslationModel
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.searching import found_by

MakeModel = Callable[..., TranslationModel]
CONFIG = DecodingConfig(beam=2, max_length_ratio=0.0, max_length_extra=5, min_length=5)


def requests(lengths: list[int], config: DecodingConfig = CONFIG) -> Iterator[Request[int]]:
    return (Request(number, Sentence([2 + number % 4] * length), config) for number, length in enumerate(lengths))


class LargestTensor(TorchDispatchMode):
    """``elements`` of the largest tensor that any operation has made."""

    elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        sizes = [one.numel() for one in tree_leaves(made) if isinstance(one, Tensor)]
        self.elements = max([self.elements, *sizes])
        return made


def loaded_of(model: TranslationModel) -> LoadedModel:
    """A model of 30 target words, and the source words a and b."""
    words = Vocabulary([*SPECIAL_WORDS, *map(str, range(30 - len(SPECIAL_WORDS)))])
    sources = Vocabulary([*SPECIAL_WORDS, "a", "b"])
    return LoadedModel(model, sources, words, FolderConfig(model=model.config), "tiny", "tiny")


def positions(search: BeamSearch[int]) -> int:
    """The source positions that memory is allocated for, with padding."""
    return sum(len(batch.memory.widths) * batch.memory.longest for batch in search.batches)


def attention_values(search: BeamSearch[int]) -> int:
    """The attention weights that are kept for hypotheses still searched: all that a view keeps in memory."""
    searched = [one for batch in search.batches for one in batch.sentences_A["searched"]]
    kept = [rows_KS for one in searched for _, rows_KS in one.attention]
    return sum(rows_KS.size if rows_KS.base is None else rows_KS.base.size for rows_KS in kept)


def watched(search: BeamSearch[int], measure: Callable[[], int]) -> list[int]:
    """What is measured after each step from now on."""
    found: list[int] = []
    step = search.step

    def measured() -> object:
        done = step()
        found.append(measure())
        return done

    search.step = measured
    return found


@pytest.mark.parametrize("longest_first", [True, False])
def test_one_long_line_among_short_ones(tiny: MakeModel, longest_first: bool) -> None:
    lengths = [800] + [3] * 66
    lengths = lengths if longest_first else lengths[::-1]
    tokens = sum(lengths) + len(lengths)
    search: BeamSearch[int] = BeamSearch(ModelPredictor(tiny(words=8, seed=1)))
    found = watched(search, lambda: positions(search))
    assert len(list(search_all(search, requests(lengths), batch_tokens=2 * tokens))) == len(lengths)
    assert max(found) <= 4 * tokens  # 53,667 side by side
    assert positions(search) == 0


def test_sentences_of_any_length_that_come_and_go(tiny: MakeModel) -> None:
    chance = random.Random(1)
    lengths = [chance.choice([1, 3, 5, 10, 20, 30, 300]) for _ in range(150)]
    predictor = ModelPredictor(tiny(words=8, seed=2))
    search: BeamSearch[int] = BeamSearch(predictor)
    waiting, live, done = list(requests(lengths)), set[int](), set[int]()
    while waiting or live:
        entering = [waiting.pop() for _ in range(min(chance.randrange(8), len(waiting)))]
        search.admit(entering)
        live |= {request.key for request in entering}
        finished = {one.request.key for one in search.step()}
        live, done = live - finished, done | finished
        tokens = sum(lengths[key] + 1 for key in live)
        assert positions(search) <= 12 * tokens + 4000
    assert len(done) == len(lengths)


def test_lanes_change_no_translation(tiny: MakeModel) -> None:
    predictor = ModelPredictor(tiny(words=30, seed=3))
    lengths = [2, 600, 3, 4, 5, 7, 6, 2, 3, 4]
    asked = list(requests(lengths))
    for request, together in zip(asked, found_by(predictor, asked, batch_tokens=2000), strict=True):
        (alone,) = found_by(predictor, [request])
        assert [one.words for one in alone.hypotheses] == [one.words for one in together.hypotheses]


def test_attention_is_kept_where_asked_for_without_padding_and_until_its_sentence_ends(tiny: MakeModel) -> None:
    predictor = ModelPredictor(tiny(words=8, seed=4))
    lasting = DecodingConfig(beam=2, max_length_ratio=0.0, max_length_extra=40, min_length=40)
    search: BeamSearch[int] = BeamSearch(predictor, attention=True)
    search.admit(
        [
            Request(0, Sentence([2, 3]), lasting),
            *(Request(number, Sentence([2] * 19), CONFIG) for number in range(1, 6)),
        ]
    )
    widths = []
    while search.sentences:
        done = search.step()
        if search.sentences == 1:  # the lasting one
            widths.append(attention_values(search))
        for one in done:
            attention = one.hypotheses[0].attention
            assert attention is None or attention.shape == (
                len(one.hypotheses[0].words) + 1,
                3 if one.request.key == 0 else 20,
            )
    assert max(widths) <= 2 * 3 * 41  # nothing of the five others, and none of their width
    unasked: BeamSearch[int] = BeamSearch(predictor)
    unasked.admit([Request(0, Sentence([2, 3]), lasting)])
    unasked.step()
    assert attention_values(unasked) == 0


@pytest.mark.parametrize(("beam", "most_rows"), [(12, 240), (50, 200), (200, 200), (1000, 1000)])
def test_a_wide_beam_does_not_multiply_the_rows(tiny: MakeModel, beam: int, most_rows: int) -> None:
    """100 source positions have 20 sentences of 5, or 240 rows of a beam of 12."""
    search: BeamSearch[int] = BeamSearch(ModelPredictor(tiny(words=30, seed=6)))
    config = DecodingConfig(beam=beam, max_length_ratio=0.0, max_length_extra=4, min_length=4)
    rows = watched(search, lambda: search.rows)
    assert len(list(search_all(search, requests([4] * 25, config), batch_tokens=100))) == 25
    assert most_rows / 2 < max(rows) <= most_rows


def test_many_samples_do_not_multiply_the_rows(tiny: MakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny(words=30, seed=7)
    loaded = loaded_of(model)
    rows, step = [0], model.step

    def watched(previous_N: Tensor, *rest: Any) -> Any:
        rows.append(len(previous_N))
        return step(previous_N, *rest)

    monkeypatch.setattr(model, "step", watched)
    for samples, most_rows in ((12, 240), (50, 200), (200, 200), (1000, 1000)):
        rows.clear()
        translator = Translator([loaded], config=SamplingConfig(samples=samples, max_length_extra=0), batch_tokens=100)
        assert [len(nbest) for nbest in translator.translate(["a b a b"] * 25)] == [samples] * 25
        assert max(rows) == most_rows


def test_the_buffer_of_logits_shrinks_with_the_batch(tiny: MakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 short sentences and a long one: its last steps, of 2 rows, keep no buffer for the 400 of the first ones."""
    model = tiny(words=8, seed=8)
    held: list[tuple[int, int]] = []
    logits_into = model.generator.logits_into

    def watched(buffer_NV: Tensor, readout_NL: Tensor) -> Tensor:
        storage = buffer_NV.untyped_storage().nbytes() // buffer_NV.itemsize
        held.append((len(readout_NL), storage // model.generator.words))
        return logits_into(buffer_NV, readout_NL)

    monkeypatch.setattr(model.generator, "logits_into", watched)
    search: BeamSearch[int] = BeamSearch(ModelPredictor(model))
    search.admit(
        [*requests([3] * 200), Request(200, Sentence([2, 3]), CONFIG.model_copy(update={"max_length_extra": 20}))]
    )
    while search.sentences:
        search.step()
    most = max(rows for rows, _ in held)
    assert most > 350 and held[-1][0] < 20  # it has shrunk
    assert all(rows <= buffer <= 4 * rows + 64 for rows, buffer in held)


def test_attention_of_a_wide_source_beside_short_ones_in_search(tiny: MakeModel) -> None:
    """No tensor has the rows of the short sources by the positions of the wide one."""
    wide, short = [300], [3] * 80

    def largest(lengths: Sequence[int]) -> int:
        predictor = ModelPredictor(tiny(words=8, seed=9))
        with LargestTensor() as found:
            found_by(predictor, list(requests([*lengths])), attention=True, batch_tokens=2000)
        return found.elements

    assert largest([*short, *wide]) <= 1.1 * max(largest(wide), largest(short))


def test_attention_of_a_wide_source_beside_short_ones_in_pair_scoring(tiny: MakeModel) -> None:
    """Batches have at most so many positions, padding included; answers have none, and what is kept for them little."""
    model = tiny(words=30, seed=10)
    scorer = ModelPairScorer([loaded_of(model)])
    words = {"0": "a", "1": "b"}
    short = [SentencePair(" ".join(words[bit] for bit in f"{n:b}"), f"{n % 28} 3") for n in range(100)]
    wide = [SentencePair("a " * 299 + "b", "4 3")]

    def largest(pairs: Sequence[SentencePair]) -> tuple[int, int]:
        tracemalloc.start()
        with LargestTensor() as found:
            scores = scorer.score(pairs, attention=True)
        _, peak = tracemalloc.get_traced_memory()  # NumPy's arrays and the answers
        tracemalloc.stop()
        widths = [len(pair.source.split()) + 1 for pair in pairs]
        assert [len(one.attention[0]) for one in scores if one.attention] == (widths if model.attends else [])
        return found.elements, peak

    largest(short)  # which makes what is made once
    together, alone = largest([*short, *wide]), (largest(wide), largest(short))
    of_a_position = alone[0][0] / 301
    assert together[0] <= 1.1 * MAX_POSITIONS * of_a_position  # 30,401 positions side by side
    assert together[1] <= 1.5 * sum(one[1] for one in alone)
