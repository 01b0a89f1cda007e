"""`smt-bridge graph search`: neural search in Moses' graphs, against scores of all their translations."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.text.sentence import TargetOrder
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from smt_bridge.commands.main import main
from smt_bridge.nbest.entry import NbestEntry
from smt_bridge.nbest.formats import read_entries
from tests.model_files import open_pair_scorer
from tests.small_graphs import INI, random_graph

GRAPHS = [random_graph(number, nodes=7, arcs=20, words="abcd", sentence=number) for number in range(4)]
SOURCES = ["x y", "y z x", "z", "x x unknown"]


def save(folder: str, seed: int, words: Sequence[str] = ("a", "b", "c"), **fields: object) -> str:
    """A random model of these target words."""
    source, target = Vocabulary([*SPECIAL_WORDS, "x", "y", "z"]), Vocabulary([*SPECIAL_WORDS, *words])
    config = DeepLSTMConfig(depth=1, hidden=8, embedding=6, init_range=2.0)
    model = new_model(config, len(source), len(target), seed=seed)
    save_model(folder, model, source, target, FolderConfig(model=config, **fields))
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("moses.ini").write_text(INI)
    Path("graphs.gz").write_bytes(gzip.compress("".join(graph.text() for graph in GRAPHS).encode()))
    Path("source").write_bytes("".join(f"{line}\r\n" for line in SOURCES).encode())
    Path("reference").write_text("a b c\n" * len(GRAPHS))
    Path("quarter").write_text("LM0= 0.5\nWordPenalty0= -0.3\nTranslationModel0= 0.2 0.7\nNMT0= 0.25\n")
    Path("own").write_text(Path("quarter").read_text().replace("NMT0= 0.25\n", ""))
    save("model", 1)
    save("other", 2)
    return tmp_path


def search(capsysbinary: pytest.CaptureFixture[bytes], *options: str, model: str = "model") -> list[NbestEntry]:
    files = ["graphs.gz", "--ini", "moses.ini", "--source", "source", "--model", model]
    assert main(["graph", "search", *files, *options]) == 0
    Path("list").write_bytes(capsysbinary.readouterr().out)
    return list(read_entries("list"))


def by_hand(model: str, *, graph: float = 1.0, nmt: float = 1.0) -> list[dict[str, tuple[float, float]]]:
    """For every sentence its translations with log p and the total."""
    scorer, found = open_pair_scorer(model.split(",")), []
    for source, made in zip(SOURCES, GRAPHS, strict=True):
        strings = {" ".join(words): score for words, score in made.best_strings().items()}
        scores = [one.log_prob for one in scorer.score([SentencePair(source, text) for text in strings])]
        totals = zip(strings.items(), scores, strict=True)
        found.append({text: (log_prob, graph * score + nmt * log_prob) for (text, score), log_prob in totals})
    return found


@pytest.mark.parametrize("model", ["model", "model,other"])
@pytest.mark.parametrize(
    ("options", "weights"),
    [
        ([], {}),
        (["--weights", "quarter"], {"nmt": 0.25}),
        (["--weights", "own"], {}),
        (["--graph-weight", "0"], {"graph": 0.0}),
    ],
)
def test_all_translations_of_the_graphs_are_ranked(
    folder: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    model: str,
    options: list[str],
    weights: dict[str, float],
) -> None:
    found = search(capsysbinary, "--beam", "3000", "--nbest", "3000", "--gap", "1e308", *options, model=model)
    for sentence, wanted in enumerate(by_hand(model, **weights)):
        entries = [entry for entry in found if entry.sentence == sentence]
        assert {entry.text: entry.total for entry in entries} == {
            text: pytest.approx(total, abs=1e-4) for text, (_, total) in wanted.items()
        }
        assert {entry.text: entry.features["NMT0"][0] for entry in entries} == {
            text: pytest.approx(log_prob, abs=1e-5) for text, (log_prob, _) in wanted.items()
        }
        totals = [entry.total for entry in entries]
        assert totals == sorted(totals, reverse=True)


@pytest.mark.parametrize("window", [1, 16])
def test_a_gap_leaves_the_best_derivations(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes], window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smt_bridge.graphs.command.WINDOW", window)
    found = search(capsysbinary, "--beam", "3000", "--gap", "0")
    bests = [max(graph.best_strings().items(), key=lambda one: one[1])[0] for graph in GRAPHS]
    assert [entry.text for entry in found] == [" ".join(words) for words in bests]
    assert search(capsysbinary, "--nbest", "12") == search(capsysbinary, "--nbest", "12", "--gap", "1")


def test_the_derivation_is_the_best_of_its_string(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    found = search(capsysbinary, "--nbest", "10")
    assert main(["graph", "nbest", "graphs.gz", "--ini", "moses.ini", "--nbest", "3000"]) == 0
    Path("nbest").write_bytes(capsysbinary.readouterr().out)
    known = {(entry.sentence, entry.hypothesis): entry.features for entry in read_entries("nbest")}
    for entry in found:
        features = {name: values for name, values in entry.features.items() if name != "NMT0"}
        assert features == known[entry.sentence, entry.hypothesis]


def test_a_sentence_without_translation_is_a_gap(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    text = GRAPHS[0].text() + "1 hyp=0 stack=0 forward=1 fscore=-1.5\n" + GRAPHS[3].text()
    Path("graphs.gz").write_bytes(gzip.compress(text.encode()))
    assert [entry.sentence for entry in search(capsysbinary)] == [0, 3]


def test_a_model_of_subwords_searches_among_the_words(
    folder: Path, pieces: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    words = {"a": "Aktionsplan", "b": "&apos;s", "c": "Hunde", "d": "\u0416\u0416", " e": " gut"}
    text = GRAPHS[0].text()
    lines = []
    for line in text.splitlines():
        before, bar, out = line.partition("|")
        for short, word in words.items():
            out = " ".join(word if part == short else part for part in out.removesuffix('"').split(" "))
        lines.append(f'{before}{bar}{out}"\n' if bar else f"{line}\n")
    Path("graphs.gz").write_bytes(gzip.compress("".join(lines).encode()))
    Path("source").write_text("the plan &apos;s good .\n")
    found = search(capsysbinary, "--beam", "3000", "--nbest", "3000", "--gap", "1e9", model=str(pieces))
    assert len(found) == len(GRAPHS[0].best_strings())
    files = ["--source", "source", "--nbest", "list", "--output", "rich"]
    assert main(["add-features", *files, "--feature", f"nmtnorm:{pieces}", "--jobs", "1", "--quiet"]) == 0
    for entry in read_entries("rich"):
        length = len(entry.text.split(" ")) + 1 if entry.text else 1
        assert entry.features["NMT0"][0] == pytest.approx(entry.features["NMTnorm0"][0] * length, abs=1e-4)


def test_real_graphs(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    place = shared / "moses" / "en-fr"
    ini, source = str(place / "moses.ini"), str(place / "graphs" / "source.en")
    monkeypatch.chdir(tmp_path)
    save("model", 3, sorted(set((place / "graphs" / "1best").read_text().split())))
    graphs = gzip.decompress((place / "graphs" / "extended.gz").read_bytes())
    Path("five").write_bytes(graphs[: graphs.index(b"\n5 hyp=0 stack=0") + 1])
    files = ["five", "--ini", ini, "--source", source, "--model", "model"]
    assert main(["graph", "search", *files, "--beam", "5000", "--gap", "0.1"]) == 0
    Path("list").write_bytes(capsysbinary.readouterr().out)
    assert main(["graph", "nbest", "five", "--ini", ini, "--nbest", "1000"]) == 0
    Path("every").write_bytes(capsysbinary.readouterr().out)
    scorer = open_pair_scorer(["model"])
    sources = Path(source).read_text().splitlines()
    every = list(read_entries("every"))
    scores = scorer.score([SentencePair(sources[entry.sentence], entry.text) for entry in every])
    for found in read_entries("list"):
        own = [(entry, score) for entry, score in zip(every, scores, strict=True) if entry.sentence == found.sentence]
        totals = {entry.text: (entry.total or 0.0) + score.log_prob for entry, score in own}
        assert found.total == pytest.approx(totals[found.text], abs=1e-3)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--graph-weight", "-1"], "--graph-weight must be a number from 0 on"),
        (["--nbest", "13"], "13 best translations need a beam of at least 13"),
        (["--beam", "0"], "--beam: expected a whole number from 1 up"),
        (["--beam", "10001"], "beam"),
        (["--gap", "-1"], "--gap must be a number from 0 on"),
        (["--model", "absent"], "'absent' is not a model folder"),
        (["--model", "grpc:localhost:1"], "guidance and graphs need a model of nmt-core, not grpc:localhost:1"),
        (["--model", "backwards"], "backwards writes right-to-left"),
        (["--source", "short"], "id 2 is beyond short, which has 2 lines (ids begin at 0)"),
        (["--source", "blank"], "sentence 1, but that line of blank has no words"),
        (["--source", "missing"], "missing: "),
        (["--source", "long"], "long:2: has 1,001 words; up to 1,000 are taken"),
        (["--max-words", "2"], "source:2: has 3 words; up to 2 are taken"),
        (["--weights", "weights"], "weights: NMT0 must be a number above 0"),
        (["--weights", "zero"], "zero: NMT0 must be a number above 0; without a neural model take `smt-bridge graph"),
    ],
)
def test_bad_input_is_one_line(folder: Path, options: list[str], problem: str, error_line: Callable[..., str]) -> None:
    save("backwards", 1, target_order=TargetOrder.RIGHT_TO_LEFT)
    Path("short").write_text("a\nb\n")
    Path("blank").write_text("a\n \nb\nc\n")
    Path("long").write_text("x\n" + "y " * 1001 + "\nz\nx\n")
    Path("weights").write_text("LM0= 1\nWordPenalty0= 1\nTranslationModel0= 1 1\nNMT0= -0.5\n")
    Path("zero").write_text(Path("weights").read_text().replace("-0.5", "0"))
    files = ["graphs.gz", "--ini", "moses.ini", "--source", "source", "--model", "model"]
    assert problem in error_line(main, ["graph", "search", *files, *options])
