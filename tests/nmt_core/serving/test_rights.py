"""Tokens that are for some of the models."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import grpc
import pytest

from nmt_core.base.errors import ServiceError
from nmt_core.serving.client.client import NmtClient
from nmt_core.serving.client.connection import Access
from nmt_core.v1 import nmt_pb2 as pb
from tests.nmt_core.serving.support import eventually, refusal_of

ALL, ONE, TWO, GONE = (f"{name}-of-many-letters" for name in ("all", "one", "two", "gone"))


def write_tokens(path: Path, alice: str) -> None:
    lines = f"admin {ALL}\nalice {ONE} {alice}\nbob {TWO} search,phrases\ncarol {GONE} fr-en\n"
    path.with_suffix(".new").write_text(lines)
    os.replace(path.with_suffix(".new"), path)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("rights") / "tokens"
    write_tokens(path, "search")
    return path


@pytest.fixture(scope="module")
def limited(start_here, models: Path, tokens: Path):
    """A server of the models ``search`` and ``phrases``."""
    return start_here("--models", str(models), "--token-file", str(tokens), "--beam", "2", "--access-log")


def client(server, token: str, model: str = "") -> NmtClient:
    return NmtClient(server.address, model=model, access=Access(token=token), timeout=20)


def refusal(server, token: str, model: str = "") -> str:
    with client(server, token, model) as asking, pytest.raises(ServiceError) as caught:
        asking.translate(["un"])
    return str(caught.value)


def test_a_token_is_for_the_models_in_its_line(limited) -> None:
    assert client(limited, ONE, "search").translate(["un"])[0].translations
    assert client(limited, TWO, "phrases").translate(["un"])[0].translations
    assert client(limited, ALL, "phrases").translate(["un"])[0].translations
    told = refusal(limited, ONE, "phrases")
    assert "this token is not for the model 'phrases'; it is for search" in told
    assert "PERMISSION_DENIED" in told


def test_a_client_does_not_learn_of_other_models(limited) -> None:
    assert [model.name for model in client(limited, ONE).models()] == ["search"]
    assert len(client(limited, ALL).models()) == len(client(limited, TWO).models()) == 2
    assert refusal(limited, ONE, "nosuch").replace("nosuch", "phrases") == refusal(limited, ONE, "phrases")
    assert client(limited, GONE).models() == []
    assert "it is for none that is here" in refusal(limited, GONE, "search")
    assert "none that you may use" in refusal(limited, GONE)


def test_the_only_model_of_a_token_has_no_need_to_be_named(limited) -> None:
    assert client(limited, ONE).translate(["un"])[0].translations
    assert "the request names no model; models here: phrases, search" in refusal(limited, TWO)


@pytest.mark.parametrize(
    ("method", "request_"),
    [
        ("Translate", pb.TranslateRequest(model="phrases", texts=["un"])),
        ("Score", pb.ScoreRequest(model="phrases", pairs=[pb.Pair(source="un", target="one")])),
        ("Rerank", pb.RerankRequest(model="phrases")),
        ("Encode", pb.EncodeRequest(model="phrases", texts=["un"])),
        ("GetModel", pb.GetModelRequest(name="phrases")),
    ],
)
def test_every_method_looks_at_the_rights(limited, method: str, request_) -> None:
    call = getattr(limited.stub, method)
    assert call(request_, metadata=Access(token=TWO).metadata)
    rejected = refusal_of(lambda: call(request_, metadata=Access(token=ONE).metadata))
    assert rejected == (grpc.StatusCode.PERMISSION_DENIED, "MODEL_NOT_ALLOWED")


def test_rights_that_change_hold_for_the_next_request_of_an_open_stream(limited, tokens: Path) -> None:
    request = pb.TranslateStreamRequest(request=pb.TranslateRequest(model="search", texts=["un"]))
    first = threading.Event()

    def requests():
        yield request
        assert first.wait(60)
        write_tokens(tokens, "phrases")
        limited.hang_up()
        eventually(lambda: [model.name for model in client(limited, ONE).models()] == ["phrases"])
        yield request

    stream = limited.stub.TranslateStream(requests(), metadata=Access(token=ONE).metadata)
    assert next(stream).response.sentences[0].translations
    first.set()
    assert next(stream).error.reason == "MODEL_NOT_ALLOWED"
    assert list(stream) == []


def test_a_token_is_revoked_at_once_and_the_log_follows_its_name(limited, tokens: Path) -> None:
    """Token files that cannot be used are reported, and the tokens stay."""
    before = tokens.read_text()
    assert client(limited, GONE).models() == []
    eventually(lambda: any(line.get("user") == "carol" for line in limited.calls))
    tokens.write_text(f"dave {ALL}\n")
    limited.hang_up()

    def revoked() -> bool:
        try:
            client(limited, GONE).models()
        except ServiceError as error:
            return "UNAUTHENTICATED" in str(error)
        return False

    eventually(revoked)
    assert client(limited, ALL).models()
    eventually(lambda: any(line.get("user") == "dave" for line in limited.calls))

    def make_fifo() -> None:
        tokens.unlink()
        os.mkfifo(tokens)  # nobody writes to it

    for break_tokens, problem in (
        (lambda: tokens.write_text("no tokens\n"), "expected NAME TOKEN"),
        (make_fifo, "is a pipe"),
    ):
        break_tokens()
        limited.hang_up()
        stay = "; the tokens there were stay"
        eventually(lambda: any(problem in line and line.endswith(stay) for line in limited.lines))  # noqa: B023
        assert client(limited, ALL).models()
    tokens.unlink()
    tokens.write_text(before)
    limited.hang_up()
