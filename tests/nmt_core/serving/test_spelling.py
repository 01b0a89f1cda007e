"""A model that spells, over gRPC and on the command line: translations, samples and scores of the same text agree."""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import load_model, save_model
from nmt_core.serving.engine.engine import Engine
from nmt_core.serving.models.opening import open_served_model
from nmt_core.serving.models.search import SearchItem
from nmt_core.serving.models.served import Key, ServedModel
from smt_bridge.commands.main import main as bridge
from tests.nmt_core.serving.support import until
from tests.nmt_core.serving.test_engine import submit
from tests.spelling_models import spelling_model

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


def test_lists_have_the_score_of_the_text(
    folder: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], error_line: Callable[..., str]
) -> None:
    (tmp_path / "source").write_text("".join(f"{line}\n" for line in LINES))
    common = ["--model", folder, "--device", "cpu", "--quiet", "--input", str(tmp_path / "source")]
    assert main(["decode", *common, "--beam", "4", "--nbest", "3"]) == 0
    fields = [line.split(" ||| ") for line in capfd.readouterr().out.splitlines()]
    pairs = [SentencePair(LINES[int(number)], text) for number, text, *_ in fields]
    log_probs = [float(features.split()[1]) for _, _, features, _ in fields]
    assert log_probs == pytest.approx(scores(folder, pairs), abs=1e-4)
    assert "spells unknown words" in error_line(main, ["decode", *common, "--replace-unk", "copy"])


def test_tables_have_the_score_of_the_text(folder: str, tmp_path: Path) -> None:
    (tmp_path / "table").write_text(TABLE)
    options = ["--scorer", folder, "--device", "cpu", "--quiet", "--output", str(tmp_path / "new")]
    assert bridge(["rescore-table", str(tmp_path / "table"), *options]) == 0
    lines = [line.split(" ||| ") for line in (tmp_path / "new").read_text().splitlines()]
    expected = scores(folder, [SentencePair(source, target) for source, target, *_ in lines])
    assert len({round(score, 5) for score in expected}) == len(expected)
    assert [math.log(float(line[2].split()[-1])) for line in lines] == pytest.approx(expected, abs=1e-3)


def test_a_lexicon_is_of_no_use_to_it(folder: str, tmp_path: Path, error_line: Callable[..., str]) -> None:
    (tmp_path / "lexicon").write_text("la the 0.9\n")
    lexicon = ["--lexicon", f"m={tmp_path / 'lexicon'},lexicon"]
    assert "spells unknown words" in error_line(main, ["serve", "--model", f"m={folder}", *lexicon, "--port", "0"])


def test_words_that_are_read_by_their_characters_are_no_reason_for_a_warning(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Every third is outside the small vocabulary; text of other words altogether is noticed all the same."""
    names = ["".join(letters) for letters in itertools.product("abcd", repeat=4)]  # all different
    common = ["--device", "cpu", "--quiet"]
    for kind, source, target, warnings in (
        ("usual", "the axolotl is", "la {} de", 0),
        ("other", "tux quux lax", "abba dad {}", 1),
    ):
        path = {name: str(tmp_path / f"{kind}.{name}") for name in ("few", "source", "target", "nbest", "rich")}
        targets = [target.format(name) for name in names]
        lists = [f"{number} ||| {text} ||| A= 1 ||| -1" for number, text in enumerate(targets)]
        lines = {"few": [source] * 34, "source": [source] * len(names), "target": targets, "nbest": lists}
        for name, content in lines.items():
            Path(path[name]).write_text("".join(f"{line}\n" for line in content))
        decode = ["decode", "--model", folder, *common, "--input", path["few"]]
        assert main([*decode, "--beam", "1", "--search=max_length_ratio=0"]) == 0
        assert main(["score", "--model", folder, *common, path["source"], path["target"]]) == 0
        files = ["--source", path["source"], "--nbest", path["nbest"], "--output", path["rich"]]
        assert bridge(["add-features", *files, "--scorer", folder, *common, "--jobs", "1"]) == 0
        message = capsys.readouterr().err
        assert message.count("unknown to the model") == 3 * warnings, message
        search = open_served_model([folder], DecodingConfig(beam=1), device="cpu", dtype="float32").decoder(False)
        search.admit([(number, SearchItem(source, DecodingConfig(beam=1))) for number in range(350)])
        assert caplog.text.count("unknown to the model") == warnings


SHORT = DecodingConfig(beam=1, max_length_ratio=0.0, max_length_extra=1)
LONG = DecodingConfig(beam=4, nbest=4)


@pytest.fixture(scope="module")
def served(folder: str) -> ServedModel:
    return open_served_model([folder], DecodingConfig(), device="cpu", dtype="float32")


def spelled(served: ServedModel, lines: list[str], configs: list[DecodingConfig], gone: int | None = None) -> list[Any]:
    """The answers of an engine to sentences of two clients that are asked for together, in the order of their ends."""

    async def scenario() -> list[Any]:
        engine = Engine(lambda key: key.model.work(key))
        ended: list[Any] = []

        async def ask(number: int) -> None:
            item = SearchItem(lines[number], configs[number])
            priority = ["long", "interactive"][number]
            [nbest] = await submit(
                engine, Key(served, "translate"), [item], tokens=[10], priority=priority, client=str(number)
            )
            ended.append((number, nbest))

        asked = [asyncio.create_task(ask(number)) for number in range(len(lines))]
        if gone is not None:
            await until(lambda: any(one.name == "sliced" for one in threading.enumerate()))
            asked[gone].cancel()
        await asyncio.wait(asked)
        await engine.close()
        return ended

    return asyncio.run(scenario())


def test_answers_are_those_of_a_translator_and_short_ones_do_not_wait_for_the_spelling_of_long_ones(
    served: ServedModel,
) -> None:
    """The many searches over characters are a second job, and no step of others."""
    lines, configs = ["the axolotl quokka is of tux", "of"], [LONG, SHORT]
    ended = spelled(served, lines, configs)
    assert [number for number, _ in ended] == [1, 0]
    for number, nbest in ended:
        (expected,) = Translator([spelling_model()], config=configs[number]).translate([lines[number]])
        assert [one.text for one in nbest] == [one.text for one in expected]
        assert [one.log_prob for one in nbest] == pytest.approx([one.log_prob for one in expected], abs=1e-5)


def test_a_sentence_that_nobody_waits_for_is_spelled_no_further(served: ServedModel) -> None:
    ended = spelled(served, ["the axolotl quokka is of tux", "of"], [LONG, SHORT], gone=0)
    assert [number for number, _ in ended] == [1]
    assert not any(one.name == "sliced" for one in threading.enumerate())
