"""Candidate lists in a server: sentences that are searched together share a list, and lose nothing by waiting."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nmt_core.commands.main import main
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel, load_model
from nmt_core.serving.client.client import NmtClient
from nmt_core.serving.models.search import RunningSearch, SearchItem
from nmt_core.text.lexicon import Candidate, Lexicon

TEXTS = ["un deux", "deux deux un", "un", "deux un un deux"]
CONFIG = DecodingConfig(beam=4, nbest=2)


@pytest.fixture(scope="module")
def loaded(folder: str) -> LoadedModel:
    return load_model(folder)


def lists(loaded: LoadedModel, frequent: int) -> CandidateLists:
    lexicon = Lexicon({"un": (Candidate("one", 1.0),), "deux": (Candidate("two", 1.0),)})
    return CandidateLists(loaded.target, frequent=frequent, lexicon=lexicon)


@torch.inference_mode()
def run(search: RunningSearch, arrivals: dict[int, list[int]], cancelled: dict[int, list[int]]) -> dict[int, list]:
    """What comes of the texts that arrive, and are cancelled, before the steps of these numbers."""
    found: dict[int, list] = {}
    for step in range(200):
        search.admit([(key, SearchItem(TEXTS[key], CONFIG)) for key in arrivals.get(step, [])])
        search.cancel(cancelled.get(step, []))
        found |= dict(search.step())
    assert search.tokens == 0
    return found


def test_late_sentences_wait_for_a_list_of_their_own_and_cancelled_ones_are_gone(loaded: LoadedModel) -> None:
    search = RunningSearch([loaded], lists=lists(loaded, 2), attention=False)
    found = run(search, {0: [0], 1: [1, 2], 2: [3]}, {1: [2], 3: [0]})
    assert set(found) == {1, 3}
    together = Translator([loaded], config=CONFIG, candidates=lists(loaded, 2)).translate([TEXTS[1], TEXTS[3]])
    for key, expected in zip((1, 3), together, strict=True):
        assert [one.text for one in found[key]] == [one.text for one in expected]
        assert [one.log_prob for one in found[key]] == pytest.approx([one.log_prob for one in expected], abs=1e-5)


def test_with_all_words_as_candidates_nothing_changes(loaded: LoadedModel) -> None:
    found, expected = (
        run(search, {0: [0, 1], 3: [2, 3]}, {})
        for search in (
            RunningSearch([loaded], lists=lists(loaded, len(loaded.target)), attention=True),
            RunningSearch([loaded], attention=True),
        )
    )
    for key, nbest in expected.items():
        assert [one.text for one in found[key]] == [one.text for one in nbest]
        assert [one.log_prob for one in found[key]] == pytest.approx([one.log_prob for one in nbest], abs=1e-6)


def test_a_server_searches_with_the_candidates_of_its_model(start, folder: str, tmp_path: Path) -> None:
    lexicon = tmp_path / "lexicon"
    lexicon.write_text("two deux 1.0\n")
    models = ["--model", f"m={folder}", "--model", f"plain={folder}", "--beam", "4"]
    server = start(*models, "--lexicon", f"m={lexicon}", "--candidates", "m=2")
    found = {
        name: NmtClient(server.address, model=name).translate(["deux"], nbest=4)[0].translations
        for name in ("m", "plain")
    }
    words = {name: {word for one in nbest for word in one.words} for name, nbest in found.items()}
    assert words["m"] <= {"<unk>", "two"}
    assert not words["plain"] <= {"<unk>", "two"}


@pytest.mark.parametrize("option", ["m", "m=", "m=0", "m=5,6,7", "m=five", "=5", "x=5"])
def test_bad_candidates_end_the_server(folder: str, capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert main(["serve", "--model", f"m={folder}", "--port", "0", "--device", "cpu", "--candidates", option]) == 2
    message = capsys.readouterr().err
    assert ("is none of m" if option == "x=5" else "expected NAME=K or NAME=K,L") in message
