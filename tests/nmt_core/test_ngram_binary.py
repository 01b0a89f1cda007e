"""Binary n-gram models whose header is damaged: KenLM would end the program, and is not asked."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.base.errors import InputError
from nmt_core.kenlm import NgramModel
from smt_bridge.doctor.configuration import examine_model
from tests.nmt_core.arpa import ARPA
from tests.nmt_core.kenlm_binaries import HASH_TABLES, TRIE

KINDS = {"hash tables": HASH_TABLES, "trie": TRIE}


def put(form: str, place: int, value: float) -> Callable[[bytes], bytes]:
    def harm(content: bytes) -> bytes:
        changed = bytearray(content)
        struct.pack_into(form, changed, place, value)
        return bytes(changed)

    return harm


HARMS: dict[str, Callable[[bytes], bytes]] = {
    "order 0": put("<B", 88, 0),
    "order 1": put("<B", 88, 1),
    "order 255": put("<B", 88, 255),
    "no number of buckets": put("<f", 92, float("nan")),
    "endless buckets": put("<f", 92, float("inf")),
    "few buckets": put("<f", 92, 0.5),
    "many buckets": put("<f", 92, 1001.0),
    "2^64 - 1 words": put("<Q", 108, (1 << 64) - 1),
    "2^63 bigrams": put("<Q", 116, 1 << 63),
    "bigrams whose bytes are 2^64": put("<Q", 116, (1 << 62) // 3),
    "cut off in the header": lambda content: content[:110],
    "cut off behind it": lambda content: content[:130],
    "2^31 words in the vocabulary": put("<I", 132, 1 << 31),
}


SAID = {
    "order 0": "is of order 0",
    "order 1": "is of order 1",
    "no number of buckets": "has nan buckets for an entry",
    "endless buckets": "has inf buckets for an entry",
    "few buckets": "has 0.5 buckets for an entry",
    "many buckets": "has 1001 buckets for an entry",
    **dict.fromkeys(("order 255", "cut off in the header", "cut off behind it"), "ends in its header"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_one_has_the_numbers_of_the_text(tmp_path: Path, kind: str) -> None:
    (tmp_path / "arpa").write_text(ARPA)
    path = tmp_path / os.fsdecode(b"na\xefve model")
    path.write_bytes(KINDS[kind])
    expected, found = NgramModel(str(tmp_path / "arpa")), NgramModel(str(path))
    for text in (["un", "groupe"], ["hommes", ".", "none"], []):
        assert found.log_prob(text) == pytest.approx(expected.log_prob(text), abs=1e-6)
    assert list(examine_model(str(path), None, ini="")) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_header_is_one_line(tmp_path: Path, kind: str, harm: str) -> None:
    path = tmp_path / "model"
    path.write_bytes(HARMS[harm](KINDS[kind]))
    child = os.fork()
    if child == 0:
        os.dup2(os.open(tmp_path / "said", os.O_WRONLY | os.O_CREAT), 1)
        try:
            NgramModel(str(path)).log_prob(["un"])
        except InputError as error:
            os.write(1, str(error).encode())
            os._exit(2)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    problem = SAID.get(harm, "has more n-grams, or words, than it has room for")
    remedy = "copy it again, or build it from the ARPA file with build_binary"
    assert (tmp_path / "said").read_text() == f"{path}: the binary n-gram model is damaged ({problem}); {remedy}"
    assert any(finding.level == "error" for finding in examine_model(str(path), None, ini=""))
