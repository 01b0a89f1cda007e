"""Sentences for a model of CTranslate2, whose search is not left before its end, are begun one at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.translate import translate
from nmt_core.serving.models.device import Route
from nmt_core.serving.models.opening import open_served_model
from nmt_core.serving.models.served import Key
from nmt_core.v1 import nmt_pb2 as pb
from tests.numpy_transformer import NumpyTransformer

pytest.importorskip("ctranslate2")


def test_the_shortest_sentence_fills_the_room(tmp_path: Path) -> None:
    folder = NumpyTransformer(["the"]).write(tmp_path / "model")
    served = open_served_model([f"ct2:{folder}"], DecodingConfig(), device="cpu", dtype="float32")
    ((item,),) = translate(pb.TranslateRequest(texts=["the"]), Route("t", served), Limits()).parts.values()
    assert served.work(Key(served, "translate")).room(3600.0) < item.tokens
