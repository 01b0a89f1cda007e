"""The ways to translations and to scores: commands, ranges, processes, Python, and a server."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import nmt_core
from nmt_core import DecodingConfig, NmtClient, SentencePair
from nmt_core.commands.main import main
from nmt_core.serving.client import requests as convert
from nmt_core.serving.client.aio import AsyncNmtClient
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc


class Found(NamedTuple):
    """A translation, its log-probability in nats, and what translations are ranked by."""

    text: str
    log_prob: float
    score: float


Lists = list[list[Found]]


def decode(folders: str, source: Path, output: Path, *options: str) -> bytes:
    """What the command writes."""
    places = ["--input", str(source), "--output", str(output)]
    assert main(["decode", "--model", folders, "--device", "cpu", "--quiet", *places, *options]) == 0
    return output.read_bytes()


def ranges(folders: str, source: Path, output: Path, *options: str) -> bytes:
    """The second part first, then all others."""
    for shards in (["--shards", "2-2"], ["--shards", "1-4"]):
        places = ["--input", str(source), "--output", str(output), "--device", "cpu", "--quiet"]
        assert main(["decode", "--model", folders, *places, *options, *shards]) == 0
    return decode(folders, source, output, *options)


def read_lists(content: bytes, lines: int) -> Lists:
    """An n-best list, as the command writes it, or lines of ``--scores``."""
    written = content.decode().splitlines()
    if "\t" in written[0]:
        pairs = (line.split("\t") for line in written)
        return [[Found(text, float(number), float(number))] for number, text in pairs]
    lists: Lists = [[] for _ in range(lines)]
    for line in written:
        number, text, features, score = line.split(" ||| ")
        lists[int(number)].append(Found(text, float(features.split()[1]), float(score)))
    return lists


def in_python(model: nmt_core.Model, texts: Sequence[str], config: DecodingConfig, *, raw: bool) -> Lists:
    """By the Python interface."""
    found = model.nbest(texts, config.nbest, config=config, raw=raw)
    return [[Found(one.text, one.log_prob, one.score) for one in each] for each in found]


def one_by_one(address: str, name: str, texts: Sequence[str], **options: Any) -> Lists:
    """A request for each text."""
    with NmtClient(address, model=name) as client:
        return [_read(one) for one in client.translate_lines(texts, window=1, **options)]


def streamed(address: str, name: str, texts: Sequence[str], **options: Any) -> Lists:
    """All in one stream."""

    async def all_of_them() -> dict[int, Any]:
        async with AsyncNmtClient(address, model=name) as client:
            return {number: found async for number, found in client.translate_stream(texts, **options)}

    found = asyncio.run(all_of_them())
    return [_read(found[number]) for number in range(len(texts))]


def _read(sentence: Any) -> list[Found]:
    assert not sentence.error.message, sentence.error.message
    return [Found(one.text, one.log_prob, one.score) for one in sentence.translations]


def score(folders: str, place: Path, pairs: Sequence[SentencePair], *options: str) -> list[list[float]]:
    """What the command prints."""
    for side, texts in (("pairs.s", [pair.source for pair in pairs]), ("pairs.t", [pair.target for pair in pairs])):
        (place / side).write_text("".join(f"{text}\n" for text in texts))
    files = [str(place / "pairs.s"), str(place / "pairs.t")]
    written = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(written)) as output:
        assert main(["score", "--model", folders, "--device", "cpu", "--quiet", *files, *options]) == 0
        output.flush()
        return [[float(number) for number in line.split()] for line in written.getvalue().splitlines()]


def scored_in_python(model: nmt_core.Model, pairs: Sequence[SentencePair], form: Any) -> list[list[float]]:
    """By the Python interface, every pair by itself."""
    return [list(one.word_log_probs or ()) for pair in pairs for one in model.score([pair], per_word=True, form=form)]


FORMS = {"prepared": pb.TEXT_FORM_UNSPECIFIED, "surface": pb.TEXT_FORM_SURFACE, "raw": pb.TEXT_FORM_RAW}


def scored_one_by_one(address: str, name: str, pairs: Sequence[SentencePair], form: str) -> list[list[float]]:
    """A request for each pair."""
    with NmtClient(address, model=name) as client:
        found = client.score_pairs(pairs, window=1, per_word=True, form=FORMS[form])
        return [list(one.word_log_probs) for one in found]


def scored_streamed(address: str, name: str, pairs: Sequence[SentencePair], form: str) -> list[list[float]]:
    """All in one stream, three pairs a request."""
    import grpc

    parts = convert.score_requests(pairs, 3, model=name, per_word=True, form=FORMS[form])
    requests = [pb.ScoreStreamRequest(id=str(number), request=part) for number, part in enumerate(parts)]
    with grpc.insecure_channel(address) as channel:
        answers = nmt_pb2_grpc.NmtServiceStub(channel).ScoreStream(iter(requests))
        found = {int(answer.id): answer.response.scores for answer in answers}
    return [list(one.word_log_probs) for number in range(len(requests)) for one in found[number]]
