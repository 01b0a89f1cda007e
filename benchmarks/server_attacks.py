"""Requests that ask a server for much, by their names: what ``serving.py`` sends beside another client's sentences."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from google.protobuf.message import Message
from grpc_health.v1 import health_pb2

from nmt_core.v1 import nmt_pb2 as pb

Requests = Sequence[tuple[str, Message]]
"""Methods of the service, or whole paths, and their messages."""

_INTERACTIVE = pb.PRIORITY_INTERACTIVE
_HEALTH = "/grpc.health.v1.Health/Check"
_CALLS = 200


def hostile_requests(texts: Sequence[str]) -> dict[str, Requests]:
    """Small ones that ask for much, and large ones that are refused."""
    long = " ".join(["a"] * 1000)
    longer = f"{long} {long}"
    blank = pb.SourceGroup(source=" " * 20_000, targets=[" " * 380 + "a"] * 20_000)
    large = pb.SourceGroup(source=long, targets=[long] * 120)
    score = {
        "4 M empty pairs": pb.ScoreRequest(pairs=[pb.Pair()] * 4_000_000),
        "a blank source, 20,000 targets": pb.ScoreRequest(groups=[blank]),
        "attention of 120 x 1,000 x 1,000": pb.ScoreRequest(groups=[large], with_attention=True),
        "a pair of 2,000 x 2,000 words": pb.ScoreRequest(pairs=[pb.Pair(source=longer, target=longer)]),
    }
    translate = {
        "2,000 words, 200-best, attention": pb.TranslateRequest(
            texts=[longer], beam=200, nbest=200, with_attention=True
        ),
        "1,000 words, beam 200": pb.TranslateRequest(texts=[long], beam=200),
        "8 MiB that cost too much": pb.TranslateRequest(texts=[long[:1750]] * 4_700),
        "25 MiB": pb.TranslateRequest(texts=[long[:1750]] * 15_000),
        "400 queued sentences": pb.TranslateRequest(texts=[*texts, *texts], priority=_INTERACTIVE),
    }
    return {
        **{name: [("Score", request)] for name, request in score.items()},
        **{name: [("Translate", request)] for name, request in translate.items()},
    }


def floods() -> dict[str, Requests]:
    """Cheap calls, of which many are open at once."""
    return {
        f"{_CALLS} calls of GetModel": [("GetModel", pb.GetModelRequest(name="m"))] * _CALLS,
        f"{_CALLS} calls of health": [(_HEALTH, health_pb2.HealthCheckRequest())] * _CALLS,
    }


def interactive_requests(texts: Sequence[str]) -> dict[str, Requests]:
    """Ordinary ones with the priority of another client's sentence, and many kinds of them at once."""
    targets = texts[:50]
    pairs = [pb.Pair(source=source, target=target) for source in texts for target in targets]
    hypotheses = [pb.Hypothesis(target=target, values=[0.1] * 14) for target in targets]
    rerank = pb.RerankRequest(
        columns=[pb.FeatureColumn(name=f"F{number}", weight=0.1) for number in range(14)],
        model_weight=1.0,
        lists=[pb.NbestList(source=source, hypotheses=hypotheses) for source in texts],
        priority=_INTERACTIVE,
    )
    nbest = pb.TranslateRequest(texts=texts[:100], nbest=12, with_attention=True, priority=_INTERACTIVE)
    wide = pb.TranslateRequest(texts=[" ".join(["a"] * 60)] * 40, beam=200, nbest=200, priority=_INTERACTIVE)
    kinds: list[tuple[str, Message]] = []
    for option, attention in itertools.product([False, True], repeat=2):
        score = pb.ScoreRequest(pairs=pairs, per_word=option, with_attention=attention, priority=_INTERACTIVE)
        translate = pb.TranslateRequest(
            texts=texts, nbest=12 if option else 1, with_attention=attention, priority=_INTERACTIVE
        )
        kinds += [("Score", score), ("Translate", translate)]
    return {
        f"{len(texts)} lists of {len(targets)}": [("Rerank", rerank)],
        "100 sentences, 12-best, attention": [("Translate", nbest)],
        "40 sentences of 60 words, 200-best": [("Translate", wide)],
        "eight kinds at once": kinds,
    }
