"""Pairs are checked and counted as the model reads them, each text once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.serving.engine.work import Item
from nmt_core.serving.errors import RpcError
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.plan import Plan
from nmt_core.serving.methods.score import ReadPair, plan_pairs, read_pairs, restored
from nmt_core.serving.models.served import Key, ServedModel
from nmt_core.v1 import nmt_pb2 as pb

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
    model: Any = ServedModel(SimpleNamespace(signature="fake"), decoder=None)  # type: ignore[arg-type]
    model.__dict__["reader_of"] = lambda form: reader
    return plan_pairs(
        pb.ScoreRequest(), groups, "pairs", Key(model, "score", attention=True), LIMITS, lambda scores: []
    )


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

    monkeypatch.setattr("nmt_core.serving.methods.texts.count_words", count)
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
