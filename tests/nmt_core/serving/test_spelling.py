"""A model that spells, over gRPC and on the command line: translations, samples and scores of the same text agree."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from nmt_core.commands.main import main
from nmt_core.inference.pair_scorer import ModelPairScorer
from nmt_core.interfaces import SentencePair
from nmt_core.models.checkpoint import load_model, save_model
from nmt_core.serving.client import NmtClient, RemotePairScorer
from smt_bridge.commands.main import main as bridge
from tests.spelling_models import TARGET, spelling_model

LINES = ["the axolotl is", "the quokka is of", "of"]
TABLE = """\
of ||| abba de ||| 0.5 0.1 0.5 0.1 ||| ||| 1 1 1
of ||| dad ||| 0.5 0.1 0.5 0.1 ||| ||| 1 1 1
the axolotl ||| abba la ||| 0.5 0.1 0.5 0.1 ||| ||| 1 1 1
the quokka ||| abba la ||| 0.5 0.1 0.5 0.1 ||| ||| 1 1 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("models") / "spells")
    loaded = spelling_model()
    save_model(folder, loaded.model, loaded.source, loaded.target, loaded.config)
    return folder


def scores(folder: str, pairs: list[SentencePair]) -> list[float]:
    return [score.log_prob for score in ModelPairScorer([load_model(folder)]).score(pairs)]


def test_a_client_is_told_the_words_and_the_score_of_their_text(start, folder: str) -> None:
    server = start("--model", f"m={folder}")
    with NmtClient(server.address) as client:
        for options in ({"beam": 4, "nbest": 3}, {"samples": 3}):
            found = client.translate(LINES, **options)
            written = [(line, one) for line, nbest in zip(LINES, found, strict=True) for one in nbest.translations]
            pairs = [SentencePair(line, one.text) for line, one in written]
            assert [one.log_prob for _, one in written] == pytest.approx(scores(folder, pairs), abs=1e-4)
            words = [word for _, one in written for word in one.words]
            assert any(word not in TARGET for word in words)
            assert "<unk>" not in words
        with pytest.raises(Exception, match="replace_unknown is for models that write <unk>; 'm' spells unknown words"):
            client.translate(LINES, replace_unknown=True)
    remote = [score.log_prob for score in RemotePairScorer(server.address).score(pairs)]
    assert remote == pytest.approx(scores(folder, pairs), abs=1e-5)


def test_lists_have_the_score_of_the_text(
    folder: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "source").write_text("".join(f"{line}\n" for line in LINES))
    common = ["--model", folder, "--device", "cpu", "--quiet", "--input", str(tmp_path / "source")]
    assert main(["decode", *common, "--beam", "4", "--nbest", "3"]) == 0
    fields = [line.split(" ||| ") for line in capfdbinary.readouterr().out.decode().splitlines()]
    pairs = [SentencePair(LINES[int(number)], text) for number, text, *_ in fields]
    log_probs = [float(features.split()[1]) for _, _, features, _ in fields]
    assert log_probs == pytest.approx(scores(folder, pairs), abs=1e-4)
    assert main(["decode", *common, "--replace-unk", "copy"]) == 2
    assert b"spells unknown words" in capfdbinary.readouterr().err


def test_tables_have_the_score_of_the_text(folder: str, tmp_path: Path) -> None:
    (tmp_path / "table").write_text(TABLE)
    options = ["--scorer", folder, "--device", "cpu", "--quiet", "--output", str(tmp_path / "new")]
    assert bridge(["rescore-table", str(tmp_path / "table"), *options]) == 0
    lines = [line.split(" ||| ") for line in (tmp_path / "new").read_text().splitlines()]
    expected = scores(folder, [SentencePair(source, target) for source, target, *_ in lines])
    assert len({round(score, 5) for score in expected}) == len(expected)
    assert [math.log(float(line[2].split()[-1])) for line in lines] == pytest.approx(expected, abs=1e-3)


def test_a_lexicon_is_of_no_use_to_it(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lexicon").write_text("la the 0.9\n")
    assert (
        main(["serve", "--model", f"m={folder}", "--lexicon", f"m={tmp_path / 'lexicon'},lexicon", "--port", "0"]) == 2
    )
    assert "spells unknown words" in capsys.readouterr().err
