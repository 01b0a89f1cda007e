"""What methods plan for requests, and that answers put together as bytes are what protocol buffers read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import grpc
import numpy as np
import pytest

from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.engine.work import Entry, Item
from nmt_core.serving.errors import RpcError, from_trailers, invalid, to_error
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.encode import encode
from nmt_core.serving.methods.plan import Method, Plan
from nmt_core.serving.methods.rerank import rerank
from nmt_core.serving.methods.score import ReadPair, read_pairs, restored, score, score_answer
from nmt_core.serving.methods.translate import translate, translate_answer
from nmt_core.serving.models.device import Route
from nmt_core.serving.models.opening import ArrayPairScorer, open_served_model
from nmt_core.serving.models.served import Key, ServedModel
from nmt_core.serving.wire import in_stream
from nmt_core.text.sentence import TargetOrder
from nmt_core.v1 import nmt_pb2 as pb
from smt_bridge.features.neural import attention_of_words
from tests.nmt_core.serving.in_process import serving

REFUSED = invalid("texts", "no")
WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3) / 8


def translation(words: int, attention: np.ndarray | None = None, **others: Any) -> Translation:
    text = ("w",) * words
    return Translation(" ".join(text), text, -1.5, -0.5, (-0.25,) * (words + 1), ("s", "t"), attention, **others)


@pytest.mark.parametrize("words", [0, 1, 40, 3000])  # the sizes of fields have one byte, two and three
def test_translations(words: int) -> None:
    hybrid = {"systems": ("moses", "nmt"), "degraded": True}
    found = [[translation(words, **hybrid), translation(1, WEIGHTS)], REFUSED, []]
    shown = [["é", "b"], [], []]
    answer = pb.TranslateResponse.FromString(b"".join(translate_answer(found, shown, attention=True)))
    first, second, third = answer.sentences
    assert [one.text for one in first.translations] == ["é", "b"]
    assert list(first.translations[0].words) == ["w"] * words
    assert first.translations[0].word_log_probs == [-0.25] * (words + 1)
    assert [(list(one.systems), one.degraded) for one in first.translations] == [(["moses", "nmt"], True), ([], False)]
    looking = first.translations[1]
    assert (looking.log_prob, looking.score, list(looking.source_words)) == (-1.5, -0.5, ["s", "t"])
    assert looking.attention == WEIGHTS.ravel().tolist()
    assert [(point.source, point.target) for point in looking.alignment] == [(1, 0)]
    assert second.error == to_error(REFUSED)
    assert third == pb.Translations()
    plain = pb.TranslateResponse.FromString(b"".join(translate_answer(found, shown, attention=False)))
    assert not plain.sentences[0].translations[1].attention


@pytest.mark.parametrize("attention", [None, WEIGHTS, tuple(map(tuple, WEIGHTS.tolist()))])
@pytest.mark.parametrize("count", [1, 250])
def test_scores(count: int, attention) -> None:
    request = pb.ScoreRequest(
        pairs=[pb.Pair()] * count, groups=[pb.SourceGroup(targets=[""] * count), pb.SourceGroup(targets=["", ""])]
    )
    scores = [PairScore(-float(number), 1, 2, (-1.0, -2.0), attention) for number in range(2 * count + 1)]
    answer = pb.ScoreResponse.FromString(b"".join(score_answer(request, [*scores, REFUSED])))
    found = [*answer.scores, *(score for group in answer.groups for score in group.scores)]
    assert [len(group.scores) for group in answer.groups] == [count, 2]
    assert [score.log_prob for score in found[:-1]] == [-float(number) for number in range(2 * count + 1)]
    assert found[-1].error == to_error(REFUSED)
    columns, weights = (0, []) if attention is None else (3, WEIGHTS.ravel().tolist())
    for one in found[:-1]:
        assert (one.unknown_source_words, one.unknown_target_words) == (1, 2)
        assert one.word_log_probs == [-1.0, -2.0]
        assert (one.attention_columns, one.attention) == (columns, weights)


NUMBER = PairScore(-1.0)
PAIRS = pb.ScoreRequest(pairs=[pb.Pair(source="a", target="b")])
LISTS = [pb.NbestList(source="a", hypotheses=[pb.Hypothesis(target="b")])]
CASES: list[tuple[Method, Any, Any, Any]] = [
    (translate, pb.TranslateRequest(texts=["a"]), [translation(1)], pb.TranslateResponse),
    (score, PAIRS, NUMBER, pb.ScoreResponse),
    (rerank, pb.RerankRequest(lists=LISTS), NUMBER, pb.RerankResponse),
    (encode, pb.EncodeRequest(texts=["a"]), ((0.5, 0.25), 1), pb.EncodeResponse),
]


@pytest.mark.parametrize(("method", "request_", "found", "response"), CASES)
def test_every_answer_says_which_model_made_it(method: Method, request_: Any, found: Any, response: Any) -> None:
    model: Any = ServedModel(  # type: ignore[arg-type]
        SimpleNamespace(signature="nmt:rnnsearch|x"),
        decoder=None,
        encode=lambda phrases: [],
        description=pb.Model(version="3f2a"),
    )
    plan = method(request_, Route("m", model), Limits())  # type: ignore[arg-type]
    content = plan.finish([[found]]).content
    answer = response.FromString(content)
    streamed = pb.ScoreStreamResponse.FromString(in_stream("é 7", content))
    assert (streamed.id, streamed.HasField("response")) == ("é 7", True)
    assert {(one.fingerprint, one.signature) for one in (answer, streamed.response)} == {("3f2a", "nmt:rnnsearch|x")}
    assert len(answer.ListFields()[0][1]) == 1


def test_vectors() -> None:
    model: Any = ServedModel(SimpleNamespace(signature=""), decoder=None, encode=lambda phrases: [])  # type: ignore[arg-type]
    plan = encode(pb.EncodeRequest(texts=["a", "b"]), Route("m", model), Limits())  # type: ignore[arg-type]
    answer = pb.EncodeResponse.FromString(plan.finish([[((0.5, 0.25), 1), REFUSED]]).content)
    assert (answer.vectors[0].values, answer.vectors[0].unknown_words) == ([0.5, 0.25], 1)
    assert answer.vectors[1].error == to_error(REFUSED)


@pytest.mark.parametrize("size", [0, 10, 500_000])
def test_an_answer_in_a_stream_has_the_id_of_its_request(size: int) -> None:
    content = pb.ScoreResponse(scores=[pb.PairScore(attention=[1.0] * size)] if size else []).SerializeToString()
    answer = pb.ScoreStreamResponse.FromString(in_stream("a", content))
    assert (answer.id, answer.HasField("response")) == ("a", True)
    assert answer.response.SerializeToString() == content


def test_features_of_hybrids_can_use_the_attention_of_a_served_model(folder: str) -> None:
    served = open_served_model([folder], DecodingConfig(), device="cpu", dtype="float32")
    (score,) = served.scorer_of("surface").score([SentencePair("un deux", "one")], attention=True)
    assert sum(attention_of_words(score)) < 2  # two rows that sum to 1, but for what the end of the source has


@pytest.mark.parametrize("order", TargetOrder)
def test_attention_in_arrays_is_in_the_order_of_the_text(order: TargetOrder) -> None:
    scorer = ArrayPairScorer.__new__(ArrayPairScorer)
    scorer.order = order
    weights = np.arange(12, dtype=np.float32).reshape(4, 3)
    found = scorer.attention_of(weights, "written")
    assert found.tolist() == list(order.attention(weights.tolist(), "written"))
    assert not np.shares_memory(found, weights)


def test_pairs_with_attention_are_done_some_at_a_time_the_smallest_first(folder: str, monkeypatch) -> None:
    monkeypatch.setattr("nmt_core.serving.models.served._WEIGHTS", 20_000)
    served = open_served_model([folder], DecodingConfig(), device="cpu", dtype="float32")
    pairs = [SentencePair(" ".join(["un"] * length), " ".join(["one"] * length)) for length in (150, 2, 90, 99, 3)]
    work = served.work(Key(served, "score", attention=True))
    entries = [Entry(place, None, place, Item(pair, 1)) for place, pair in enumerate(pairs)]
    batches = [
        [(key, value.attention.shape) for key, value in work.iterate(entering)] for entering in (entries, [], [])
    ]
    assert batches == [[(1, (3, 3)), (4, (4, 4))], [(2, (91, 91)), (3, (100, 100))], [(0, (151, 151))]]


LIMITS = Limits(words=10, characters=100)


class Text(NamedTuple):
    text: str


class Letters:
    """Cuts every word into its letters; ``seen`` are the texts that it was given."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def read_source(self, text: str) -> Text:
        self.seen.append(text)
        return Text(" ".join(text.replace(" ", "")))

    def read_target(self, text: str) -> Text:
        return self.read_source(text)

    def restore(self, score: PairScore, source: Any, target: Any) -> PairScore:
        return score._replace(log_prob=score.log_prob - len(source.text))


def read(groups: list[tuple[str, list[str]]], reader: Letters | None = None) -> list[ReadPair | RpcError]:
    return list(read_pairs(groups, "pairs", LIMITS, reader))


def planned(groups: list[tuple[str, list[str]]], reader: Letters | None = None) -> Plan:
    """For scores with attention."""
    described = pb.Model(attends=True)
    model: Any = ServedModel(SimpleNamespace(signature="fake"), decoder=None, description=described)  # type: ignore[arg-type]
    model.__dict__["reader_of"] = lambda form: reader
    asked = [pb.SourceGroup(source=source, targets=targets) for source, targets in groups]
    return score(pb.ScoreRequest(groups=asked, with_attention=True), Route("m", model), LIMITS)  # type: ignore[arg-type]


def test_words_are_counted_as_the_model_reads_them() -> None:
    as_it_is, cut = planned([("ab cd", ["e"])]), planned([("ab cd", ["e"])], Letters())
    assert [plan.parts["interactive"][0].tokens for plan in (as_it_is, cut)] == [2 + 1 + 2, 4 + 1 + 2]
    assert cut.items == [Item(SentencePair("a b c d", "e"), 7)]
    assert as_it_is.cost.answer < cut.cost.answer


def test_a_word_of_many_pieces_is_as_long_as_these() -> None:
    long = "a" * 11  # one word, and more pieces than are allowed
    assert all(isinstance(one, ReadPair) for one in read([(long, [long])]))
    for one in read([(long, ["b"]), ("b", [long, long])], Letters()):
        assert isinstance(one, RpcError)
        assert one.reason == "TEXT_TOO_LONG"
        assert str(one) == "the text as the model reads it has 11 words; at most 10"


def test_a_text_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return 1

    monkeypatch.setattr("nmt_core.serving.methods.plan.count_words", count)
    assert len(read([(" " * 50, ["b"] * 500)] * 3)) == 1500
    assert counted == [" " * 50] * 2 + ["b"]  # that the text is not too long, and its words
    reader = Letters()
    read([("a", ["b"] * 500)] * 3, reader)
    assert reader.seen == ["a", "b"]


def test_factors_are_those_of_source_words() -> None:
    same, plain = read_pairs([("a|b", ["a|b"]), ("a", ["a"])], "pairs", LIMITS, None, 1)
    assert isinstance(same, ReadPair)
    assert isinstance(plain, RpcError)
    assert plain.reason == "WRONG_FACTORS"
    (swapped,) = read_pairs([("a|b", ["a"])], "pairs", LIMITS, None, 1)
    assert isinstance(swapped, ReadPair)


def test_what_is_wrong_stays_in_its_place() -> None:
    groups = [("a", ["b", "c" * 101]), ("d" * 101, ["e", "f"])]
    pairs, plan = read(groups, Letters()), planned(groups, Letters())
    assert [isinstance(one, RpcError) for one in pairs] == [False, True, True, True]
    assert plan.parts == {"interactive": [Item(SentencePair("a", "b"), 4)]}
    assert plan.finish([[PairScore(-1.0, 0, 0)]]).words == {"scored": 1}
    scores = [PairScore(-1.0, 0, 0), *plan.items[1:]]
    assert list(restored(scores, pairs, Letters())) == [PairScore(-2.0, 0, 0), *scores[1:]]


@pytest.mark.parametrize("method", ["Score", "Rerank"])
async def test_a_priority_that_the_contract_does_not_have_is_rejected(method: str) -> None:
    request = pb.RerankRequest(priority=7) if method == "Rerank" else pb.ScoreRequest(priority=7)
    async with serving() as running:
        with pytest.raises(grpc.RpcError, match="there is no priority 7") as caught:
            await getattr(running.stub, method)(request)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert from_trailers(caught.value.trailing_metadata())[0] == "BAD_OPTION"


def test_a_long_message_is_cut() -> None:
    """Clients take 8 KiB of what ends a call."""
    assert str(invalid("texts", "x" * 1000)) == "x" * 1000
    assert str(invalid("texts", "x" * 1001)) == f"{'x' * 1000}…"
