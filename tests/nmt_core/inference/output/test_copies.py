"""Models of annotated text score plain pairs and write plain text; twins of their weights see the annotation itself."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmt_core.base.errors import ConfigError, ModelError
from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.inference.output.lm import combined_score
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import load_model
from smt_bridge.models import open_model
from tests.annotated_models import WORDS, make_annotated
from tests.model_files import open_pair_scorer
from tests.searching import open_translator

SOURCES = ["w1 Rot w2 Blau w3", "w0", "Rot Rot w5 w6", "Gelb w7 w7 w1 Blau w2 w0"]
PLAIN = {  # a pair, and what the models read of it: the lexicon first, then equal words, within seven places
    ("w1 Rot w2", "w1 Rouge Deux Neu"): {
        "posunk": ("w1 <unk> w2", "w1 <unkpos_0> <unkpos_0> <unkpos_n>"),
        "copyable": ("w1 <unk_1> w2", "w1 <unk_1> <unk_n> <unk_n>"),
    },
    ("Blau w1 Rot Blau", "w3 w1 Blau Rot"): {
        "posunk": ("<unk> w1 <unk> <unk>", "w3 w1 <unkpos_-1> <unkpos_1>"),
        "copyable": ("<unk_1> w1 <unk_2> <unk_1>", "w3 w1 <unk_1> <unk_2>"),
    },
    ("w1 w2", "w3 w4"): {"posunk": ("w1 w2", "w3 w4"), "copyable": ("w1 w2", "w3 w4")},
    ("w1 w2", "w3 w5"): {"posunk": ("w1 w2", "w3 w5"), "copyable": ("w1 w2", "w3 w5")},
    ("", "Rot"): {"posunk": ("", "<unkpos_n>"), "copyable": ("", "<unk_n>")},
    ("Rot", ""): {"posunk": ("<unk>", ""), "copyable": ("<unk_1>", "")},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module", params=["posunk", "copyable"])
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folders(place: Path, scheme: str) -> tuple[str, str]:
    return make_annotated(place, scheme, scheme)


def test_plain_pairs_have_the_scores_of_their_annotation(folders: tuple[str, str], scheme: str) -> None:
    own, twin = (open_pair_scorer([folder]) for folder in folders)
    pairs = [SentencePair(*pair) for pair in PLAIN]
    read = [SentencePair(*forms[scheme]) for forms in PLAIN.values()]
    expected = twin.score(read, per_word=True)
    for scores in (
        own.score(pairs, per_word=True),
        own.score(read, per_word=True),
        *zip(*(own.score([pair], per_word=True) for pair in pairs), strict=True),
    ):
        for score, other in zip(scores, expected, strict=True):
            assert score.word_log_probs == pytest.approx(other.word_log_probs, abs=1e-6)
            assert score.log_prob == pytest.approx(math.fsum(other.word_log_probs or ()), abs=1e-5)
    unknown = [(score.unknown_source, score.unknown_target) for score in own.score(pairs)]
    assert unknown == [(1, 3), (3, 2), (0, 0), (0, 0), (0, 1), (1, 0)]
    assert f"|copy:{scheme}|" in own.signature
    for spec in (folders[0], f"{folders[0]},{folders[0]}"):  # as tables and lists are scored
        found = open_model(spec).score(pairs)
        assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in expected], abs=1e-5)


def test_translations_are_the_models_words_restored(folders: tuple[str, str], scheme: str) -> None:
    config = DecodingConfig(beam=4, nbest=4)
    own, twin = (open_translator([folder], config=config) for folder in folders)
    read = [" ".join(load_model(folders[0]).copying.read_source(line.split())) for line in SOURCES]
    changed = 0
    for line, found, written in zip(SOURCES, own.translate(SOURCES), twin.translate(read), strict=True):
        assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in written], abs=1e-5)
        for translation, other in zip(found, written, strict=True):
            expected, numbers = by_hand(scheme, list(other.words), line.split(), list(other.word_log_probs))
            assert list(translation.words) == expected
            assert translation.word_log_probs == pytest.approx(numbers, abs=1e-5)
            assert math.fsum(translation.word_log_probs) == pytest.approx(translation.log_prob, abs=1e-5)
            changed += translation.words != other.words
            assert translation.unknown.copied + translation.unknown.translated <= len(expected)
    assert changed


def by_hand(scheme: str, words: list[str], source: list[str], numbers: list[float]) -> tuple[list[str], list[float]]:
    """Word by word; the number of a word that is left out is the next one's."""
    types = [word for word in dict.fromkeys(source) if word not in WORDS]
    text, kept, waiting = [], [], 0.0
    for place, word in enumerate(words):
        waiting += numbers[place]
        if word == "<unk>":
            continue
        if word.startswith(("<unk_", "<unkpos_")):
            value = word.rpartition("_")[2][:-1]
            if value == "n":
                continue
            wanted = place - int(value) if scheme == "posunk" else int(value) - 1
            options = source if scheme == "posunk" else types
            if not 0 <= wanted < len(options):
                continue
            word = {"Rot": "Rouge", "w2": "Deux"}.get(options[wanted], options[wanted])
        text.append(word)
        kept.append(waiting)
        waiting = 0.0
    return text, [*kept, waiting + numbers[-1]]


def test_rules_and_samples(folders: tuple[str, str], scheme: str) -> None:
    """A rule that is given takes the place of the model's own; what is drawn is restored as well."""
    loaded = [load_model(folders[0])]
    config = SamplingConfig(samples=8)
    own = Translator(loaded, config=config).translate(SOURCES)
    copied = Translator(loaded, config=config, unknowns=UnknownReplacement("copy")).translate(SOURCES)
    texts = {word for found in copied for one in found for word in one.words}
    assert {"Rot", "Blau"} <= texts <= {*WORDS, "Rot", "Blau", "Gelb"}
    assert "Rouge" in {word for found in own for one in found for word in one.words}
    assert all(one.unknown.translated == 0 for found in copied for one in found)


def test_places_are_always_candidates(
    folders: tuple[str, str], scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However short the list is: whatever else would be written is ``<unk>``, which is no word of the text."""
    (tmp_path / "s").write_text("Rot Blau Gelb Rot Blau Gelb\n")
    files = ["--model", folders[0], "--device", "cpu", "--input", str(tmp_path / "s"), "--quiet"]
    wide = ["--search=min_length=6", "--beam", "30", "--nbest", "30"]
    assert main(["decode", *files, "--search=candidates=2", *wide]) == 0
    words = {word for line in capsys.readouterr().out.splitlines() for word in line.split(" ||| ")[1].split()}
    assert words & {"Rouge", "Blau", "Gelb"}
    assert words <= {"Rouge", "Blau", "Gelb", "w0", "w1"}


@pytest.mark.parametrize("aligns", ["written", "read"])
def test_attention_is_of_the_words_that_are_written(place: Path, aligns: str) -> None:
    folders = make_annotated(place, f"attends.{aligns}", "posunk", attention="dot", aligns=aligns)
    config = DecodingConfig(beam=3)
    own, twin = (open_translator([folder], config=config, attention=True) for folder in folders)
    for found, written in zip(own.translate(SOURCES), twin.translate(SOURCES), strict=True):
        for one, other in zip(found, written, strict=True):
            assert one.aligns == "written"
            assert one.attention is not None
            assert other.attention is not None
            assert one.attention.shape == (len(one.words) + 1, other.attention.shape[1])
            if len(one.words) == len(other.words):
                rows = other.attention[:-1] if aligns == "written" else other.attention[1:]
                np.testing.assert_allclose(one.attention[:-1], rows, atol=1e-6)


def test_ensembles_agree_on_the_scheme(place: Path, scheme: str, folders: tuple[str, str]) -> None:
    problem = (
        r"were trained on text annotated in different ways \(copying: SCHEME and none\); use each of them by itself, "
    )
    with pytest.raises(ConfigError, match=problem.replace("SCHEME", scheme)):
        open_pair_scorer(list(folders))
    other, _ = make_annotated(place, f"{scheme}.other", scheme, words=[*WORDS, "Rot"])
    if scheme == "copyable":
        problem = (
            r"number unknown words by different source vocabularies \(copying: copyable\); train the models of an "
        )
        with pytest.raises(ConfigError, match=problem):
            open_translator([folders[0], other])
    else:
        assert open_translator([folders[0], other]).translate(SOURCES)


@pytest.fixture(scope="module")
def posall(place: Path) -> tuple[str, str]:
    return make_annotated(place, "posall", "posall", attention="general")


class TestPosall:
    """Two tokens a word; pairs need their alignment."""

    def test_scores_with_an_alignment(self, posall, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        files = {"s": "w1 Rot w2\nw3\n", "t": "Rouge w5\n\n", "a": "1-0 2-0 0-1\n\n"}
        files |= {"read.t": "<unk> <p_-1> w5 <p_1>\n\n"}
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        source, target, alignment, read = (str(tmp_path / name) for name in files)
        arguments = ["score", "--per-word", "--quiet", "--device", "cpu", "--model"]
        annotated = ["--word-alignment", alignment, "--alignments", str(tmp_path / "looked.jsonl"), source, target]
        numbers = []
        for more in ([posall[0], *annotated], [posall[1], source, read]):
            assert main([*arguments, *more]) == 0
            lines = capsys.readouterr().out.splitlines()
            numbers.append([[float(number) for number in line.split()] for line in lines])
        own, twin = numbers
        first, second = twin
        assert own[0] == pytest.approx([first[0] + first[1], first[2] + first[3], first[4]], abs=2e-6)
        assert own[1] == pytest.approx(second, abs=2e-6)
        looked = [json.loads(line) for line in (tmp_path / "looked.jsonl").read_text().splitlines()]
        assert [line["target"] for line in looked] == [["Rouge", "w5", "</s>"], ["</s>"]]
        assert [len(line["attention"]) for line in looked] == [3, 1]

    def test_plain_pairs_are_refused(self, posall, tmp_path: Path, error_line: Callable[..., str]) -> None:
        (tmp_path / "pairs").write_text("w1\tw2\n")
        line = error_line(main, ["score", "--model", posall[0], str(tmp_path / "pairs")])
        assert "without its word alignment" in line
        with pytest.raises(ConfigError, match="without its word alignment"):
            open_model(posall[0]).score([SentencePair("w1", "w2")])

    def test_translations_have_half_the_words(self, posall) -> None:
        config = DecodingConfig(beam=2, max_length_ratio=1, max_length_extra=0, min_length=1)
        twice = DecodingConfig(beam=2, max_length_ratio=2, max_length_extra=0, min_length=2)
        own = open_translator([posall[0]], config=config, attention=True).translate(SOURCES)
        twin = open_translator([posall[1]], config=twice, attention=True).translate(SOURCES)
        for (one,), (other,) in zip(own, twin, strict=True):
            assert one.log_prob == pytest.approx(other.log_prob, abs=1e-5)
            assert math.fsum(one.word_log_probs) == pytest.approx(one.log_prob, abs=1e-5)
            assert len(one.words) + 1 == len(one.word_log_probs) == len(one.attention)
            assert not any(word.startswith("<p_") for word in one.words)
            judged = combined_score(replace(one, lm_log_prob=-9.0), weight=0.5, config=config)  # one length for both
            assert judged == pytest.approx((one.log_prob - 4.5) / len(other.word_log_probs), abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["decode", "--search=forbid_unknown"], "of which it can leave out none"),
        (["score", "--word-alignment", "{f}/a", "--surface", "{f}/s", "{f}/s"], "leave out --raw and --surface"),
        (
            ["score", "--word-alignment", "{f}/a", "{f}/s", "{f}/s"],
            "a:1: point 0-4, but the sentences have 2 words and",
        ),
        (["score", "--word-alignment", "{f}/short", "{f}/s", "{f}/s"], "short:2: has 1 line but"),
    ],
)
def test_what_does_not_go_is_one_line(folders, tmp_path: Path, error_line, arguments: list[str], message: str) -> None:
    for name, content in {"s": "w1 Rot\nw2 w3\n", "a": "0-4\n\n", "short": "0-0\n"}.items():
        (tmp_path / name).write_text(content)
    command, *rest = (part.format(f=tmp_path) for part in arguments)
    if command == "decode":
        rest += ["--input", str(tmp_path / "s")]
    assert message in error_line(main, [command, "--model", folders[0], "--device", "cpu", "--quiet", *rest])


def test_a_directory_carries_its_lexicon(folders: tuple[str, str]) -> None:
    assert load_model(folders[0]).fingerprint != load_model(folders[1]).fingerprint
    settings = Path(folders[1]) / "config.yaml"
    before = settings.read_bytes()
    settings.write_bytes(before.replace(b"copying: null", b"copying: posall"))
    with pytest.raises(ModelError, match=r"the target vocabulary lacks <p_-7>"):
        load_model(folders[1])
    settings.write_bytes(before)


def test_unknown_words_are_usual_where_they_are_pointed_to(
    place: Path, folders: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 150 words a third, or all: the warning is for text that the models cannot have been trained on."""
    own, _ = folders
    source, target = str(place / "some.s"), str(place / "some.t")
    for words, warnings in ((("w1 w2 Rot", "w3 w4 w1"), 0), (("Rot Rot Blau", "Rouge Neu Rouge"), 1)):
        for path, line in zip((source, target), words, strict=True):
            Path(path).write_text(f"{line}\n" * 50)
        for command in (["decode", "--input", source], ["score", source, target]):
            assert main([command[0], "--quiet", "--model", own, *command[1:]]) == 0
            assert capsys.readouterr().err.count("are unknown to the model") == warnings, command
