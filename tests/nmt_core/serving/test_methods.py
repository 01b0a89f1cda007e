"""What methods plan for requests, and that answers put together as bytes are what protocol buffers read."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import grpc
import numpy as np
import pytest
from google.rpc import code_pb2

from nmt_core.base.errors import InputError
from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.engine.work import BatchSpeed, Entry, Item
from nmt_core.serving.errors import RpcError, from_trailers, invalid, to_error
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods import plan as planning
from nmt_core.serving.methods.encode import encode
from nmt_core.serving.methods.plan import Method, Plan
from nmt_core.serving.methods.rerank import check_columns, ranking, rerank
from nmt_core.serving.methods.score import ReadPair, read_pairs, restored, score, score_answer
from nmt_core.serving.methods.translate import decoding_config, translate, translate_answer
from nmt_core.serving.models.device import Route
from nmt_core.serving.models.opening import ArrayPairScorer, open_served_model
from nmt_core.serving.models.served import Key, Proportions, ServedModel
from nmt_core.serving.wire import in_stream
from nmt_core.text.lexicon import Candidate, Lexicon
from nmt_core.text.sentence import TargetOrder
from nmt_core.v1 import nmt_pb2 as pb
from smt_bridge.features.neural import attention_of_words
from tests.nmt_core.serving.in_process import Echo, serving

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


SMALL = Limits(beam=8, nbest=4)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"beam": 9}, "beam 9: expected a number of at most 8"),
        ({"nbest": 5}, "nbest 5: expected a number of at most 4"),
        ({"max_length_ratio": 20.5}, "max_length_ratio 20.5: expected a number of at most 20"),
        ({"length_normalization": 11}, "length_normalization 11: expected a number of at most 10"),
        ({"nbest": 3, "beam": 2}, "3 best translations need a beam of at least 3"),
        ({"beam": 0}, "request: 'beam': Input should be greater than or equal to 1 (found 0)"),
    ],
)
def test_an_option_that_is_none_is_named(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(RpcError) as caught:
        decoding_config(pb.TranslateRequest(**fields), DecodingConfig(beam=2), SMALL)
    assert (str(caught.value), caught.value.field, caught.value.reason) == (problem, next(iter(fields)), "BAD_OPTION")


def test_options_are_taken_up_to_their_limits_and_lists_widen_the_beam_that_is_not_given() -> None:
    defaults, most = DecodingConfig(beam=2), {"beam": 8, "max_length_ratio": 20.0, "length_normalization": 10.0}
    assert decoding_config(pb.TranslateRequest(nbest=4, **most), defaults, SMALL) == DecodingConfig(nbest=4, **most)
    assert decoding_config(pb.TranslateRequest(nbest=4), defaults, SMALL) == DecodingConfig(beam=4, nbest=4)
    with pytest.raises(RpcError, match=r"^a beam of 4; at most 3$"):
        decoding_config(pb.TranslateRequest(nbest=4), defaults, Limits(beam=3))


VALUES, LARGEST = "lists[0].hypotheses[1].values", "must be finite numbers of at most 1e+30"


@pytest.mark.parametrize(
    ("weights", "values", "field", "problem"),
    [
        ([1.0] * 1001, [0.0] * 1001, "columns", "1001 columns; at most 1000"),
        ([1.0], [], VALUES, f"{VALUES} has 0 numbers for 1 column"),
        ([1.0], [2e30], VALUES, f"{VALUES}: values {LARGEST}"),
        ([1.0] * 20, [0.0] * 19 + [math.nan], VALUES, f"{VALUES}: values {LARGEST}"),
        ([-2e30], [1.0], "columns", f"columns: weights {LARGEST}"),
    ],
)
def test_columns_that_are_none_are_named(weights: list[float], values: list[float], field: str, problem: str) -> None:
    columns = [pb.FeatureColumn(weight=weight) for weight in weights]
    hypotheses = [pb.Hypothesis(values=[1e30] * len(columns)), pb.Hypothesis(values=values)]
    with pytest.raises(RpcError) as caught:
        check_columns(pb.RerankRequest(columns=columns, lists=[pb.NbestList(hypotheses=hypotheses)]), Limits())
    assert (str(caught.value), caught.value.field) == (problem, field)


def test_equal_hypotheses_stay_in_their_order_and_those_without_a_score_come_last() -> None:
    one = pb.NbestList(hypotheses=[pb.Hypothesis(values=[value]) for value in (1.0, 9.0, 1.0, 2.0)])
    request = pb.RerankRequest(columns=[pb.FeatureColumn(weight=1.0)], model_weight=0.5)
    found = ranking(one, [PairScore(-4.0), REFUSED, PairScore(-4.0), PairScore(-4.0)], request).hypotheses
    assert [(each.position, each.total) for each in found] == [(3, 0.0), (0, -1.0), (2, -1.0), (1, 0.0)]
    assert found[-1].error == to_error(REFUSED)


def test_costs_are_those_of_the_documentation() -> None:
    """docs/serving.md: 5 words have at most 1 · 5 + 2; a step has 32 bytes, with attention 4 more for each position."""
    config = DecodingConfig(beam=3, max_length_ratio=1.0, max_length_extra=2)
    for kept, size in ((False, 32), (True, 32 + 4 * (5 + 1))):
        cost = planning.translation_cost([(5, 20)], config, Proportions(), kept=kept)
        assert (cost.memory - 3 * cost.answer, cost.steps) == (size * 3 * (7 + 1), 3 * (7 + 1))
    cost = planning.score_cost([(5, 3), (2, 0)], per_word=True, attention=False)
    assert (cost.steps, cost.memory) == (4 + 1, 3 * cost.answer)


def test_as_much_is_taken_as_the_limits_say() -> None:
    limits = Limits(items=6, characters=5, words=2, steps=1000, message_mib=1)
    planning.check_items(limits, 6, "texts")
    planning.check_items(limits, 2, "texts", answers=3)
    with pytest.raises(RpcError, match=r"^7 translations of each of 1 item in one request; at most 6, send several "):
        planning.check_items(limits, 1, "texts", answers=7)
    assert isinstance(planning.read_text("a bcd", "texts", limits), planning.ReadText)
    planning.check_cost(limits, answer=1 << 20, steps=1000)
    with pytest.raises(RpcError) as caught:
        planning.check_cost(limits, answer=(1 << 20) + 1, steps=0)
    problem = "the answer would have up to 2 MiB, at most 1; send several requests, or ask for fewer translations"
    assert (str(caught.value), caught.value.reason) == (f"{problem} or no attention", "ANSWER_TOO_LARGE")
    with pytest.raises(RpcError, match="needs up to 1,001 steps of hypotheses; at most 1,000, send several requests"):
        planning.check_cost(limits, answer=0, steps=1001)


class OutOfMemoryError(RuntimeError):
    """Called as PyTorch's is."""


def test_why_an_item_has_no_answer() -> None:
    failed = [OutOfMemoryError("CUDA"), InputError("file", "the model takes 5 words"), ValueError("secret")]
    reply = planned([("a", ["b", "c", "d"])]).finish([failed])
    assert reply.errors == {"OUT_OF_MEMORY": 1, "TEXT_TOO_LONG": 1, "INTERNAL": 1}
    found = [one.error for one in pb.ScoreResponse.FromString(reply.content).groups[0].scores]
    assert [(code_pb2.Code.Name(one.code), one.message) for one in found] == [
        ("RESOURCE_EXHAUSTED", "the device has not enough memory for this item"),
        ("INVALID_ARGUMENT", "the model takes 5 words"),
        ("INTERNAL", "the server made a mistake; its log says more"),
    ]


def served(**facts: Any) -> Route:
    model: Any = ServedModel(SimpleNamespace(signature=""), decoder=None, **facts)  # type: ignore[arg-type]
    return Route("m", model)


def test_words_are_counted_by_kind_of_work() -> None:
    """Words read are of all sources, words written of the best translations, words replaced of all translations."""
    unknowns = UnknownReplacement("lexicon", Lexicon({"s": (Candidate("S", 1.0),)}))
    looks = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]], dtype=np.float32)
    one = replace(translation(2, looks), words=("<unk>", "<unk>"))
    request = pb.TranslateRequest(texts=["s t", "x" * 101, "a"], replace_unknown=True)
    plan = translate(request, served(description=pb.Model(attends=True), unknowns=unknowns), LIMITS)
    reply = plan.finish([[[one, one, translation(1)], [translation(3)]]])
    assert reply.words == {"read": 3, "written": 5, "copied": 2, "translated": 2}
    texts = [each.text for each in pb.TranslateResponse.FromString(reply.content).sentences[0].translations]
    assert texts == ["S t", "S t", "w"]


HYBRID, TRANSFORMER = {"description": pb.Model(kind=pb.MODEL_KIND_HYBRID)}, {"speed": BatchSpeed()}
COPIES: dict[str, Any] = {"loaded": [SimpleNamespace(copying=True)]}


@pytest.mark.parametrize(
    ("options", "facts", "problem"),
    [
        ({"replace_unknown": True}, {}, "replace_unknown needs a model with attention; 'm' has none"),
        ({"raw": True}, {}, "the model takes tokenised text only"),
        *((asked, COPIES | has, "forbid_unknown: 'm' writes unknown words as places of the source")
          for asked, has in (({"forbid_unknown": True}, {}), ({}, {"defaults": DecodingConfig(forbid_unknown=True)}))),
        ({"max_length_ratio": 1.0, "beam": 3, "forbid_unknown": True}, HYBRID,
         "a hybrid searches as it was tuned to; leave out max_length_ratio, beam, forbid_unknown"),
        ({"length_normalization": 0.5}, TRANSFORMER,
         "'m' is a Transformer, which searches by log-probability alone; leave out length_normalization"),
    ],
)  # fmt: skip
def test_what_a_model_cannot_do_is_said(options: dict[str, Any], facts: dict[str, Any], problem: str) -> None:
    with pytest.raises(RpcError) as caught:
        translate(pb.TranslateRequest(texts=["a"], **options), served(**facts), Limits())
    why = ("max_length_ratio", "BAD_OPTION") if facts == HYBRID else ("", "NOT_SUPPORTED")
    assert (str(caught.value), caught.value.field, caught.value.reason) == (problem, *why)


async def test_an_answer_that_is_larger_than_was_expected_is_no_answer() -> None:
    class Long(Echo):
        def step(self) -> list[tuple[int, Any]]:
            return [(key, [replace(translation(0), text="x" * (1 << 20))]) for key in self.keys]

    async with serving(Limits(message_mib=1)) as running:
        model = ServedModel(running.gate, decoder=lambda attention: Long())
        await running.server.load(lambda: {"gate": model})
        with pytest.raises(grpc.RpcError, match="the answer would have up to 2 MiB, at most 1;") as caught:
            await running.stub.Translate(pb.TranslateRequest(texts=["a"]))
    assert from_trailers(caught.value.trailing_metadata()) == ("ANSWER_TOO_LARGE", None)


def test_a_long_message_is_cut() -> None:
    """Clients take 8 KiB of what ends a call."""
    assert str(invalid("texts", "x" * 1000)) == "x" * 1000
    assert str(invalid("texts", "x" * 1001)) == f"{'x' * 1000}…"
