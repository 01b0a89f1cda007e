"""The client against servers that misbehave: what is asked, what is asked again, and what a user reads."""

from __future__ import annotations

import asyncio
import collections
import functools
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import grpc
import pytest

from nmt_core.base.errors import ConfigError, Overloaded, ServiceError, Unavailable
from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.serving.client.aio import AsyncNmtClient
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.serving.client.connection import Access, Attempts, Connection, OneModel
from nmt_core.serving.errors import RpcError, busy, trailers
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc


class Scripted(nmt_pb2_grpc.NmtServiceServicer):
    """Answers after the failures that were ordered; the score of a pair is minus the length of its target.

    With ``together`` scores are answered when so many requests are in progress. ``lose`` scores are missing. Answers of
    a model with a ``fingerprint`` name it; after ``lasts`` requests it is another one.
    """

    def __init__(
        self,
        *failures: grpc.StatusCode,
        fingerprint: str = "",
        signature: str = "s",
        lasts: float = math.inf,
        together: int = 1,
        lose: int = 0,
        **limits: int,
    ) -> None:
        self.failures, self.fingerprint, self.signature, self.lasts = list(failures), fingerprint, signature, lasts
        self.limits, self.lose = limits, lose
        self.asked: list[int] = []
        self.at_once = self.most_at_once = 0
        self.together = threading.Barrier(together)
        self.lock = threading.Lock()

    def _answers(self, asked: int) -> dict[str, str]:
        """The name of the model in the answer to a request of so many items."""
        with self.lock:
            self.asked.append(asked)
            self.lasts -= 1
            fingerprint = self.fingerprint if self.lasts >= 0 else "second"
        return {"fingerprint": fingerprint, "signature": self.signature} if self.fingerprint else {}

    def GetModel(self, request, context):
        made = {"version": self.fingerprint, "signature": self.signature}
        return pb.GetModelResponse(model=pb.Model(name="m", **made, limits=pb.Limits(**self.limits)))

    def Translate(self, request, context):
        sentences = [pb.Translations() for _ in request.texts]
        return pb.TranslateResponse(sentences=sentences, **self._answers(len(sentences)))

    def Rerank(self, request, context):
        totals = [pb.RankedHypothesis(total=len(request.columns) * len(one.hypotheses)) for one in request.lists]
        rankings = [pb.Ranking(hypotheses=[one]) for one in totals]
        return pb.RerankResponse(rankings=rankings, **self._answers(sum(len(one.hypotheses) for one in request.lists)))

    def Encode(self, request, context):
        vectors = [pb.PhraseVector(values=[len(text)]) for text in request.texts]
        return pb.EncodeResponse(vectors=vectors, **self._answers(len(vectors)))

    def Score(self, request, context):
        made = self._answers(len(request.pairs))
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            failure = self.failures.pop(0) if self.failures else None
        self.together.wait(30)
        with self.lock:
            self.at_once -= 1
        if failure is not None:
            context.abort(failure, "as ordered")
        scores = [pb.PairScore(log_prob=-len(pair.target)) for pair in request.pairs]
        return pb.ScoreResponse(scores=scores[self.lose :], **made)


@contextmanager
def serving(
    servicer: nmt_pb2_grpc.NmtServiceServicer, *, message_bytes: int = 32 << 20, address: str = "127.0.0.1:0"
) -> Iterator[str]:
    server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", message_bytes)])
    nmt_pb2_grpc.add_NmtServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port(address)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(0).wait()


def pairs_of_lengths(lengths: list[int]) -> list[SentencePair]:
    return [SentencePair("s", "x" * length) for length in lengths]


SMILE = "\N{GRINNING FACE}"  # four bytes


@pytest.mark.parametrize(
    ("limits", "lengths", "asked"),
    [
        ({}, [number % 7 for number in range(15_000)], [1000] + 7 * [2000]),
        ({}, [200_000] * 30, [2] * 15),
        ({"items": 3}, [1] * 8, [2, 3, 3]),
        ({"request_bytes": 1 << 20, "message_bytes": 32 << 20}, [50_000] * 6, [2] * 3),
        ({"message_bytes": 1 << 20}, [50_000] * 6, [2] * 3),  # a server of before ``request_bytes``
    ],
    ids=["number", "size", "few items", "small requests", "small messages"],
)
def test_pairs_go_in_requests_that_the_server_takes(
    limits: dict[str, int], lengths: list[int], asked: list[int]
) -> None:
    servicer = Scripted(**limits)
    pairs = [SentencePair(SMILE * length, SMILE * length) for length in lengths]
    with serving(servicer, message_bytes=limits.get("message_bytes", 32 << 20)) as address:
        scores = RemotePairScorer(address).score(pairs)
    assert [-score.log_prob for score in scores] == lengths
    assert sorted(servicer.asked) == asked


def test_a_few_requests_are_in_progress_at_once() -> None:
    servicer = Scripted(together=4)
    with serving(servicer) as address:
        assert len(RemotePairScorer(address).score(pairs_of_lengths([1] * 16_000))) == 16_000
    assert servicer.most_at_once == 4


def test_texts_phrases_and_nbest_lists_go_in_requests_of_bounded_size() -> None:
    """All of each are more than one request may have."""
    servicer = Scripted()
    long = [SMILE * 20_000] * 200  # 80 kB each
    lengths = [number % 9 for number in range(1200)] + [20_000] * 200
    phrases = [SMILE * length for length in lengths]
    sizes = [900, 1000, 0, 700, *[3] * 130]
    word = {900: "a", 1000: "a", 0: "a", 700: "a", 3: SMILE * 20_000}
    lists = [pb.NbestList(hypotheses=[pb.Hypothesis(target=word[size])] * size) for size in sizes]
    columns = [pb.FeatureColumn(name="LM0")]

    async def asked(client: AsyncNmtClient) -> list[list[Any]]:
        found = client.translate(long), client.encode(phrases), client.rerank(iter(lists), columns=columns)
        return [await one for one in found]

    with serving(servicer, message_bytes=8 << 20) as address:
        with NmtClient(address) as client:
            found = [client.translate(long), client.encode(phrases), client.rerank(iter(lists), columns=columns)]
        assert sorted(servicer.asked[:4]) == [44, 52, 52, 52] and max(servicer.asked) <= 2000
        for sentences, vectors, rankings in (found, asynchronous(address, asked)):
            assert len(sentences) == 200
            assert [vector.values[0] for vector in vectors] == lengths
            assert [ranking.hypotheses[0].total for ranking in rankings] == sizes


def test_a_wrong_option_is_named_before_anything_is_sent() -> None:
    client = NmtClient("127.0.0.1:1")
    for ask in (client.translate, client.encode, client.rerank):
        with pytest.raises(ConfigError, match=r"an option of a \w+ request is wrong: .*bogus"):
            ask([pb.NbestList()] if ask == client.rerank else ["a"], bogus=3)


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_a_server_that_is_busy_or_away_for_a_moment_is_asked_again(code: grpc.StatusCode) -> None:
    servicer = Scripted(code, code, code, items=2)
    lengths = [3, 1, 4, 1, 5, 9, 2, 6]
    with serving(servicer) as address:
        scores = RemotePairScorer(address, first_wait=0.01).score(pairs_of_lengths(lengths))
    assert [-score.log_prob for score in scores] == lengths
    assert len(servicer.asked) == 7


@pytest.mark.parametrize(
    ("code", "tries", "error", "text"),
    [
        (grpc.StatusCode.UNAVAILABLE, 5, Unavailable, r"nothing answers at .* \(as ordered\); is 'nmt-core serve'"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, 10, Overloaded, "as ordered"),
        (grpc.StatusCode.INVALID_ARGUMENT, 1, ServiceError, r"as ordered \(INVALID_ARGUMENT\)"),
        (grpc.StatusCode.INTERNAL, 1, ServiceError, r"as ordered \(INTERNAL\)"),
    ],
)
def test_what_does_not_pass_is_one_clear_error(code, tries: int, error: type[ServiceError], text: str) -> None:
    servicer = Scripted(*[code] * 50)
    with serving(servicer) as address:
        with pytest.raises(error, match=text) as caught:
            RemotePairScorer(address, first_wait=0.001).score(pairs_of_lengths([1]))
        assert len(servicer.asked) == tries
    assert "\n" not in str(caught.value)


class Failed(Exception):
    """As the library's errors."""

    def __init__(self, code: str, details: str = "as ordered", trailers: Any = ()) -> None:
        self.code, self.details = lambda: grpc.StatusCode[code], lambda: details
        self.trailing_metadata = lambda: trailers


AWAY, BUSY = "UNAVAILABLE", "RESOURCE_EXHAUSTED"
LATER = trailers(busy("later", reason="QUEUE_FULL", retry_after=3.0))
LARGE = "Received message larger than max (9 vs. 8)"


@pytest.mark.parametrize(
    ("addresses", "error", "pauses"),
    [
        ("a:1", Failed(AWAY), [0.2, 0.4, 0.8, 1.6]),
        ("a:1,b:2", Failed(AWAY), [0, 0.2, 0, 0.4, 0, 0.8, 0, 1.6, 0]),  # the next address at once
        ("a:1", Failed("CANCELLED"), [0.2, 0.4, 0.8, 1.6]),
        ("a:1", Failed("INTERNAL", "Internal error from Core"), [0.2, 0.4, 0.8, 1.6]),
        ("a:1", Failed("INTERNAL"), []),
        ("a:1", Failed(BUSY), [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 10]),
        ("a:1", Failed(BUSY, trailers=LATER), [3, 3, 3, 3, 3.2, 6.4, 10, 10, 10]),
        ("a:1", Failed(BUSY, trailers=trailers(RpcError("", code=8, reason="OUT_OF_MEMORY"))), []),
        ("a:1", Failed(BUSY, LARGE), []),
    ],
)
def test_pauses_grow_and_are_at_least_as_long_as_the_server_says(
    addresses: str, error: Any, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.uniform", lambda *bounds: 1.0 if bounds == (0.7, 1.3) else 9.9)
    attempts, every = Attempts(Connection(addresses)), addresses.split(",")
    for number, pause in enumerate(pauses):
        assert attempts.address == every[number % len(every)]
        assert attempts.pause(error) == pytest.approx(pause)
    with pytest.raises(ServiceError):
        attempts.pause(error)


HERE, TRUST = "is 'nmt-core serve' running there", "do both sides trust each other's certificates?"


@pytest.mark.parametrize(
    ("error", "tls", "message"),
    [
        (Failed(AWAY), False, f"nothing answers at a:1 (as ordered); {HERE}, and without TLS (else --tls)?"),
        (Failed(AWAY), True, f"nothing answers at a:1 (as ordered); {HERE} with TLS, and {TRUST}"),
        (Failed(BUSY), False, "a:1: as ordered"),
        (Failed("DEADLINE_EXCEEDED"), False, "a:1 gave no answer within 0.1 s; is the server busy?"),
        (Failed("UNIMPLEMENTED"), False, "a:1 is not an 'nmt-core serve' of this version (as ordered)"),
        (Failed("NOT_FOUND"), False, "a:1: as ordered (NOT_FOUND)"),
    ],
)
def test_what_a_user_reads_of_a_failure(error: Any, tls: bool, message: str) -> None:
    """A pause that is longer than what is left of the time is not begun."""
    with pytest.raises(ServiceError) as caught:
        Attempts(Connection("a:1", timeout=0.1, access=Access(tls=tls))).pause(error)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("found", "before", "now"), [(("second", "t"), "first", "second"), (("first", "other"), "s", "other")]
)
def test_what_has_changed_of_a_model_is_named(found: tuple[str, str], before: str, now: str) -> None:
    models = OneModel(pb.Model(version="first", signature="s"))
    models.check(pb.ScoreResponse(), "a:1")  # of a server that names none
    with pytest.raises(ServiceError) as caught:
        models.check(pb.ScoreResponse(fingerprint=found[0], signature=found[1]), "a:1")
    changed = f"the model changed during the work (it was {before}, now {now})"
    assert str(caught.value) == f"a:1: {changed}; let all servers have the same model, and start again"


USUAL = {"priority": "PRIORITY_BULK", "window": 500}
TEXTS_AS_ASKED = USUAL | {"raw": False, "forbid_unknown": False, "replace_unknown": False}
PAIRS_AS_ASKED = USUAL | {"per_word": False, "form": "TEXT_FORM_UNSPECIFIED"}
ANSWERS: dict[str, list[Any]] = {
    "score": [pb.PairScore(log_prob=-2 / 3, word_log_probs=[-1 / 3, -2])] * 2,
    "translate": [
        pb.Translations(
            translations=[pb.Translation(text=f"{line} ||| {n}", log_prob=-1 / 3 - n, score=-0.25) for n in (0, 1)]
        )
        for line in "ab"
    ],
}
LISTED = [f"{number} ||| {line} &#124;&#124;&#124; {n} ||| X= -{n}.333333 ||| -0.250000"
          for number, line in enumerate("ab") for n in (0, 1)]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "options", "lines"),
    [
        ("translate S", TEXTS_AS_ASKED, ["a ||| 0", "b ||| 0"]),
        ("translate --raw --forbid-unk --replace-unk --beam 7 --priority auto --window 1 S",
         TEXTS_AS_ASKED | {"raw": True, "forbid_unknown": True, "replace_unknown": True, "beam": 7, "window": 1}
         | {"priority": "PRIORITY_UNSPECIFIED"}, ["a ||| 0", "b ||| 0"]),
        ("translate --nbest 2 --feature-name X --window 1 S", TEXTS_AS_ASKED | {"nbest": 2, "window": 1}, LISTED),
        ("score S S", PAIRS_AS_ASKED, ["-0.666667"] * 2),
        ("score --raw --priority interactive S S",
         PAIRS_AS_ASKED | {"form": "TEXT_FORM_RAW", "priority": "PRIORITY_INTERACTIVE"}, ["-0.666667"] * 2),
        ("score --surface --per-word S S",
         PAIRS_AS_ASKED | {"form": "TEXT_FORM_SURFACE", "per_word": True}, ["-0.333333 -2.000000"] * 2),
    ],
)  # fmt: skip
def test_options_of_the_command_are_those_of_the_request(
    words: str, options: dict[str, Any], lines: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s").write_text("a\nb\n")
    (tmp_path / "token").write_text("alice the-token \nbob another\n")
    what, *given = (str(tmp_path / "s") if word == "S" else word for word in words.split())
    more = ["--address", "h:1", "--model", "m", "--timeout", "5", "--token-file", str(tmp_path / "token"), "--tls"]
    with mock.patch("nmt_core.serving.client.command.NmtClient") as made:
        asked = getattr(made.return_value.__enter__.return_value, {"score": "score_pairs"}.get(what, "translate_lines"))
        asked.return_value = iter(ANSWERS[what])
        assert main(["client", what, *more, *given]) == 0
    assert capfd.readouterr().out.splitlines() == lines
    made.assert_called_once_with("h:1", model="m", timeout=5.0, access=Access(tls=True, token="the-token"))
    assert asked.call_args.kwargs == options


def test_a_token_file_without_a_token_is_named(tmp_path: Path, error_line: Callable[..., str]) -> None:
    (tmp_path / "token").write_text("\nalice token\n")
    line = error_line(main, ["client", "translate", "--token-file", str(tmp_path / "token"), "/dev/null"])
    assert line == f"nmt-core client: {tmp_path / 'token'}: expected a token in the first line"


def test_an_answer_that_does_not_come_in_time_is_an_error() -> None:
    servicer = Scripted(together=2)
    with serving(servicer) as address:
        with pytest.raises(ServiceError, match=r"gave no answer within 0\.3 s"):
            RemotePairScorer(address, timeout=0.3).score(pairs_of_lengths([1]))
        servicer.together.abort()


def test_answers_that_are_missing_are_an_error() -> None:
    with serving(Scripted(lose=1)) as address, pytest.raises(ServiceError, match="3 answers for 4 pairs"):
        RemotePairScorer(address).score(pairs_of_lengths([1, 2, 3, 4]))


def test_another_service_at_the_address_is_named_as_such() -> None:
    with (
        serving(nmt_pb2_grpc.NmtServiceServicer()) as address,
        pytest.raises(ServiceError, match="is not an 'nmt-core serve' of this version"),
    ):
        RemotePairScorer(address)


@pytest.mark.parametrize("away", [False, True])
def test_several_servers_share_the_work(away: bool) -> None:
    """One that is away is made up for by the other."""
    servicers = [Scripted(items=10), Scripted(items=10)]
    lengths = [number % 7 for number in range(200)]
    with serving(servicers[0]) as first, serving(servicers[1]) as second:
        scorer = RemotePairScorer(f"{'127.0.0.1:1' if away else first},{second}", first_wait=0.01)
        assert [-score.log_prob for score in scorer.score(pairs_of_lengths(lengths))] == lengths
    assert [sum(servicer.asked) for servicer in servicers] == ([0, 200] if away else [100, 100])


@pytest.mark.parametrize("ahead", [1, 5, 8])
def test_every_call_finds_the_server_that_is_there(ahead: int) -> None:
    """However many others take turns meanwhile: each attempt at a call goes to the next address."""

    async def found(client: AsyncNmtClient) -> list[int]:
        return [number async for number, _ in client.translate_stream(map(str, range(100)), ahead=ahead)]

    with serving(Scripted()) as there:
        assert len(asynchronous(f"127.0.0.1:1,{there}", found, first_wait=0.001)) == 100


def test_servers_with_different_models_are_not_mixed() -> None:
    with (
        serving(Scripted()) as first,
        serving(Scripted(signature="t")) as second,
        pytest.raises(ServiceError, match=r"the servers differ in model or arithmetic \(s; t\)"),
    ):
        RemotePairScorer(f"{first},{second}")


ADDRESSES = ("localhost", "localhost:", ":50551", "a:1,", "a:1,b", "a:x", "a:0", "a:65536", "\udcff:1")
SEVERAL = "expected HOST:PORT, or several with commas"


@pytest.mark.parametrize(
    ("open_", "problem"),
    [
        *((functools.partial(NmtClient, address), f"{address.split(',')[-1]!r} is not an address; {SEVERAL}")
          for address in ADDRESSES),
        *((functools.partial(NmtClient, "a:1", timeout=seconds),
           f"a timeout of {seconds:g} s: expected more than 0, at most 1000000")
          for seconds in (0.0, -1.0, 1.01e6, math.inf, math.nan)),
        *((functools.partial(Access, token=token),
           "a token has characters that are not printable ASCII; expected the one the server knows")
          for token in ("t\u00f6ken", "to\x01ken", "to\nken")),
        *((functools.partial(Access, **half), "a client's certificate and its key belong together")
          for half in ({"certificate": "c"}, {"key": "k"})),
    ],
)  # fmt: skip
def test_what_no_client_can_use_is_named(open_: Callable[[], object], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_()
    assert str(caught.value) == problem


def test_what_a_client_can_just_use() -> None:
    assert Connection("a:1,[::1]:65535", timeout=1e6).addresses == ["a:1", "[::1]:65535"]
    assert Access(token="").metadata == []
    encrypted = [Access(**one).encrypted for one in ({}, {"tls": True}, {"ca": "c"}, {"certificate": "c", "key": "k"})]
    assert encrypted == [False, True, True, True]


def test_files_that_are_no_certificates_are_named(tmp_path: Path, error_line: Callable[..., str]) -> None:
    path = tmp_path / "file"
    path.write_text("hello\n")
    for options, kind in (("--tls-ca", "CERTIFICATE"), ("--tls-cert", "CERTIFICATE"), ("--tls-key", "PRIVATE KEY")):
        other = {"--tls-cert": "--tls-key", "--tls-key": "--tls-cert"}.get(options)
        (tmp_path / "good").write_text("-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n")
        files = [options, str(path), *([other, str(tmp_path / "good")] if other else [])]
        line = error_line(main, ["client", "health", *files])
        assert line == f"nmt-core client: {path}: expected a PEM file with a {kind}"


def test_a_call_never_takes_longer_than_its_timeout() -> None:
    begin = time.monotonic()
    with pytest.raises(Unavailable):
        NmtClient("127.0.0.1:1", timeout=0.5, first_wait=0.2).models()
    assert time.monotonic() - begin < 30  # as long as it is loaded; five attempts take three


named = functools.partial(Scripted, fingerprint="first", items=2)
CHANGED = "the model changed during the work"
TEXTS = ["un deux"] * 3
LISTS = [pb.NbestList(source="un", hypotheses=[pb.Hypothesis(target="one")] * 1500)] * 3


async def translated(client: AsyncNmtClient, texts: Any = TEXTS, **options: Any) -> list[int]:
    return [number async for number, _ in client.translate_stream(texts, ahead=2, **options)]


def asynchronous(address: str, ask: Callable[[AsyncNmtClient], Any], **how: Any) -> Any:
    async def scenario() -> Any:
        async with AsyncNmtClient(address, **how) as client:
            return await ask(client)

    return asyncio.run(asyncio.wait_for(scenario(), 60))


SYNC: dict[str, Callable[[NmtClient], Any]] = {
    "translate": lambda client: list(client.translate_lines(TEXTS, window=1)),
    "score": lambda client: list(client.score_pairs([("un", "one")] * 3, window=1)),
    "rerank": lambda client: client.rerank(LISTS),
    "encode": lambda client: client.encode(["un"] * 1200),
}
ASYNC: dict[str, Callable[[AsyncNmtClient], Any]] = {
    "translate": lambda client: client.translate(TEXTS, window=1),
    "stream": translated,
    "score": lambda client: client.score([("un", "one")] * 5000),
    "rerank": lambda client: client.rerank(LISTS),
    "encode": lambda client: client.encode(["un"] * 1200),
}


def answers_of(address: str, kind: str, name: str) -> list[Any]:
    if kind == "asyncio":
        return asynchronous(address, ASYNC[name])
    with NmtClient(address) as client:
        return SYNC[name](client)


@pytest.mark.parametrize(("kind", "name"), [*(("sync", one) for one in SYNC), *(("asyncio", one) for one in ASYNC)])
def test_all_answers_of_a_call_are_of_one_model(kind: str, name: str) -> None:
    with serving(named(lasts=3)) as address:
        assert len(answers_of(address, kind, name)) in (3, 1200, 5000)
    change = r"\(it was (first, now second|second, now first)\)"
    with serving(named(lasts=2)) as address, pytest.raises(ServiceError, match=f"{address}: {CHANGED} {change}"):
        answers_of(address, kind, name)


def test_another_call_may_be_of_another_model_unless_all_have_to_be_of_one() -> None:
    with serving(named(lasts=1)) as address:
        client = NmtClient(address)
        assert len(client.translate(["un"])) == len(client.translate(["un"])) == 1
    with serving(named(lasts=1)) as address:
        client = NmtClient(address, one_model=OneModel())
        client.translate(["un"])
        with pytest.raises(ServiceError, match=CHANGED):
            client.score([("un", "one")])


def test_a_scorer_is_the_model_that_it_described_to_the_end() -> None:
    pairs = [SentencePair("un", "one")] * 2
    with serving(named(lasts=1)) as address:
        scorer = RemotePairScorer(address)
        assert len(scorer.score(pairs)) == 2
        with pytest.raises(ServiceError, match=CHANGED):
            scorer.score(pairs)
        scorer.close()
    with serving(named(lasts=0)) as address, pytest.raises(ServiceError, match=CHANGED):
        RemotePairScorer(address).score(pairs)  # exchanged after it was described


@pytest.mark.parametrize("other", [{"fingerprint": "other"}, {"signature": "other"}])
def test_an_address_that_was_away_at_the_start_is_compared_when_it_answers(other: dict[str, str]) -> None:
    """One that comes back with another model, or on another processor, does not share the work."""
    late = named(**other)
    with serving(named()) as first:
        with serving(late) as second, pytest.raises(ServiceError, match="the servers differ in model or arithmetic"):
            RemotePairScorer(f"{first},{second}")
        scorer = RemotePairScorer(f"{first},{second}", first_wait=0.01)
        assert len(scorer.score([SentencePair("un", "one")] * 4)) == 4
        with serving(late, address=second), pytest.raises(ServiceError, match=rf"{second}: {CHANGED}"):
            scorer.score([SentencePair("un", "one")] * 4000)


class Down(nmt_pb2_grpc.NmtServiceServicer):
    """A server that is away for the first ``failures`` attempts at a text."""

    def __init__(self, failures: float) -> None:
        self.failures, self.asked = failures, collections.Counter[str]()

    def Translate(self, request, context):
        (text,) = request.texts
        self.asked[text] += 1
        if self.asked[text] <= self.failures:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the device cpu has failed")
        return pb.TranslateResponse(sentences=[pb.Translations()])


@pytest.mark.parametrize("count", [3, 100])
def test_a_stream_that_brings_no_answers_ends_after_the_tries_of_a_call(count: int) -> None:
    down = Down(float("inf"))
    with serving(down) as address, pytest.raises(Unavailable, match="the device cpu has failed"):
        asynchronous(address, lambda client: translated(client, map(str, range(count))), first_wait=0.01)
    assert max(down.asked.values()) == 5 and len(down.asked) <= 2  # as many as are in progress at once


def test_no_text_is_lost_where_a_server_is_away_for_a_while() -> None:
    """Nor is the place of one that is asked again, while more come."""
    down = Down(2)

    async def slow() -> AsyncIterator[str]:
        for number in range(9):
            yield str(number)
            while down.asked[str(number)] < 2:
                await asyncio.sleep(0.01)

    with serving(down) as address:
        found = asynchronous(address, lambda client: translated(client, slow()), first_wait=0.01)
    assert sorted(found) == list(range(9))
    assert set(down.asked.values()) == {3}


def test_what_is_wrong_with_texts_or_options_ends_the_stream() -> None:
    """Texts that were sent before are answered first."""

    def broken() -> Iterator[str]:
        yield "un"
        raise OSError("the texts end here")

    async def broken_later() -> AsyncIterator[str]:
        for text in broken():
            yield text

    with serving(named()) as address:
        for texts in (broken, broken_later):
            with pytest.raises(OSError, match="the texts end here"):
                asynchronous(address, lambda client: translated(client, texts()))  # noqa: B023 (called at once)
        with pytest.raises(ConfigError, match="bogus"):
            asynchronous(address, lambda client: translated(client, bogus=3))
