"""Models that read factors beside source words: the equations, one probability everywhere, folders and training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt_core.base.errors import ConfigError, ModelError
from nmt_core.base.interfaces import SentencePair
from nmt_core.base.words import split_factors
from nmt_core.batches.padding import FactoredWords
from nmt_core.commands.main import main
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel, load_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import AnyConfig, new_model
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.serving.models.search import RunningSearch, SearchItem
from nmt_core.text.sentence import TargetOrder
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from nmt_core.training.data.corpus import encode_corpus, make_batch
from tests.nmt_core.arpa import ARPA
from tests.nmt_core.models import luong_reference, reference
from tests.nmt_core.models.runs import train

SMALL: dict[str, Any] = {"embedding": 4, "hidden": 5, "maxout": 3, "initialisation": "glorot"}
CONFIGS: dict[str, AnyConfig] = {
    "concat": RNNsearchConfig(alignment=3, source_factors=[2, 3], **SMALL),
    "shared": RNNsearchConfig(alignment=3, source_factors=[2, 3], shared_embeddings=True, **SMALL),
    "rnnencdec": RNNencdecConfig(source_factors=[1, 2], **SMALL),
    "deep-lstm": DeepLSTMConfig(
        embedding=4, hidden=5, depth=2, attention="general", feeding=True, source_factors=[3, 2], init_range=0.7
    ),
}
WORDS = Vocabulary([*SPECIAL_WORDS, *"abcde"])
TAGS = Vocabulary([*SPECIAL_WORDS, "N", "V"])
CASES = Vocabulary([*SPECIAL_WORDS, "low", "up", "mixed"])
PAIRS = [
    SentencePair("a|N|low b|V|up c|N|mixed", "b c"),
    SentencePair("a|V|low b|V|up c|N|mixed", "b c"),
    SentencePair("", "d"),
    SentencePair("e|N|up a|X|low", "a b c d"),
    SentencePair("unseen|N|other", ""),
    SentencePair("a|N|low b|V|up c|N|mixed", "e"),
]


def made(kind: str, *, seed: int = 3, order: TargetOrder = TargetOrder.LEFT_TO_RIGHT) -> LoadedModel:
    config = CONFIGS[kind]
    model = new_model(config, len(WORDS), len(WORDS), [len(TAGS), len(CASES)], seed=seed).double().eval()
    with torch.no_grad():  # biases too must matter
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.uniform_(-0.5, 0.5, generator=torch.Generator().manual_seed(len(parameter)))
    settings = FolderConfig(model=config, target_order=order)
    return LoadedModel(model.requires_grad_(False), WORDS, WORDS, settings, "0" * 12, kind, factors=(TAGS, CASES))


def vectors(loaded: LoadedModel, text: str) -> np.ndarray:
    """Equation 3 of Sennrich and Haddow 2016 in NumPy: a row for each word and the end."""
    p = {name: value.numpy() for name, value in loaded.model.named_parameters() if "source_embedding" in name}
    tables = [p[f"source_embedding.{name}"] for name in ("weight", "factors.0.weight", "factors.1.weight")]
    words = [word.split("|") for word in text.split(" ") if word]
    columns = [
        [[*one.words].index(word[place]) if word[place] in one.words else 1 for word in words] + [0]
        for place, one in enumerate((WORDS, TAGS, CASES))
    ]
    parts = [table[column] for table, column in zip(tables, columns, strict=True)]
    return np.concatenate(parts, axis=1)


def by_the_equations(loaded: LoadedModel, pair: SentencePair) -> float:
    """With a source vocabulary of the positions of this sentence."""
    p = {name: value.numpy() for name, value in loaded.model.named_parameters()}
    shared = p["source_embedding.weight"]
    read = vectors(loaded, pair.source)
    source, target = list(range(len(read))), [*WORDS.encode(pair.target), 0]
    p["source_embedding.weight"] = read
    config = loaded.config.model
    if isinstance(config, DeepLSTMConfig):
        found = (
            luong_reference.deep_lstm(
                p, source[:-1], target, attention_kind="general", feeding=True, window="global", radius=1, reverse=True
            )
            if source[:-1]
            else None
        )
        return float("nan") if found is None else sum(found)
    if isinstance(config, RNNsearchConfig):
        if config.shared_embeddings:
            p |= {"target_embedding.weight": shared, "output.weight": shared}
        return sum(reference.rnnsearch(p, source, target, order=config.order))
    assert isinstance(config, RNNencdecConfig)
    return sum(reference.rnnencdec(p, source, target, order=config.order, summary="last", reset="state"))


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_vectors_of_words_and_factors_are_those_of_the_equations_everywhere(kind: str) -> None:
    loaded = made(kind)
    texts = [(pair.source, pair.target) for pair in PAIRS]
    corpus = encode_corpus(texts, loaded.encode_text, lambda text: WORDS.encode(text) or [1], monolingual=True)
    batch = make_batch(corpus, range(len(PAIRS)))
    assert isinstance(batch.source, FactoredWords)
    embedded = loaded.model.get_submodule("source_embedding").of(batch.source)
    for row, pair in zip(embedded.numpy(), PAIRS, strict=True):
        expected = vectors(loaded, pair.source)
        np.testing.assert_allclose(row[: len(expected)], expected, rtol=0, atol=1e-12)
    scores = [score.log_prob for score in ModelPairScorer([loaded]).score(PAIRS)]
    for pair, score in zip(PAIRS, scores, strict=True):
        goal = by_the_equations(loaded, pair)
        assert np.isnan(goal) or score == pytest.approx(goal, abs=1e-9)
    targets = encode_corpus(texts[:1], loaded.encode_text, WORDS.encode)
    with torch.enable_grad():  # all positions at once
        trained = loaded.model(make_batch(targets, [0])).sum().item()
    assert trained == pytest.approx(scores[0], abs=1e-9)
    assert abs(scores[0] - scores[1]) > 1e-4  # they differ in a tag alone


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("config", [DecodingConfig(beam=3, nbest=2), SamplingConfig(samples=2)])
def test_search_samples_and_server_say_what_the_scorer_says(kind: str, config) -> None:
    loaded = made(kind, order=TargetOrder.RIGHT_TO_LEFT)
    lines = [pair.source for pair in PAIRS]
    found = Translator([loaded], config=config).translate(lines)
    pairs = [SentencePair(line, one.text) for line, nbest in zip(lines, found, strict=True) for one in nbest if line]
    expected = [score.log_prob for score in ModelPairScorer([loaded]).score(pairs)]
    assert [one.log_prob for line, nbest in zip(lines, found, strict=True) for one in nbest if line] == pytest.approx(
        expected, abs=1e-9
    )
    assert found[0][0].source_words == ("a", "b", "c")
    if isinstance(config, SamplingConfig):
        return
    search = RunningSearch([loaded], attention=False)
    search.admit([(key, SearchItem(line, config)) for key, line in enumerate(lines)])
    served: dict[int, float] = {}
    while len(served) < len(lines):
        served.update((key, nbest[0].log_prob) for key, nbest in search.step())
    assert [served[key] for key in range(len(lines))] == pytest.approx([nbest[0].log_prob for nbest in found], abs=1e-9)


def test_an_ensemble_averages_members_that_read_the_same_factors() -> None:
    members = [made("concat"), made("deep-lstm", seed=4)]
    alone = [ModelPairScorer([member]).score(PAIRS) for member in members]
    together = ModelPairScorer(members).score(PAIRS)
    for mean, one, other in zip(together, *alone, strict=True):
        assert mean.log_prob == pytest.approx((one.log_prob + other.log_prob) / 2, abs=1e-9)
    plain = new_model(RNNsearchConfig(alignment=3, **SMALL), len(WORDS), len(WORDS), seed=1)
    other = LoadedModel(plain, WORDS, WORDS, FolderConfig(model=RNNsearchConfig()), "0" * 12, "plain")
    problem = (
        "concat reads 2 factors beside each source word and plain 0; the models of an ensemble read the same text$"
    )
    with pytest.raises(ConfigError, match=problem):
        ModelPairScorer([members[0], other])


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_folder_holds_the_vocabularies_of_factors(kind: str, tmp_path: Path) -> None:
    loaded = made(kind)
    loaded.save(str(tmp_path / "m"))
    again = load_model(str(tmp_path / "m"), dtype=torch.float64)
    assert [one.words for one in again.factors] == [TAGS.words, CASES.words]
    found, expected = (ModelPairScorer([one]).score(PAIRS) for one in (again, loaded))
    assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in expected], abs=1e-5)
    (tmp_path / "m" / "source.factor2.vocab").write_text("</s>\n<unk>\nup\nlow\nmixed\n")
    assert load_model(str(tmp_path / "m")).fingerprint != again.fingerprint
    (tmp_path / "m" / "source.factor2.vocab").unlink()
    with pytest.raises(
        ModelError, match=r"source\.factor2\.vocab: .*; copy the model directory again, the whole of it$"
    ):
        load_model(str(tmp_path / "m"))


# --- commands


def _meant(word: str) -> str:
    """The factor alone says which of two words is meant: a noun stays, a verb becomes x."""
    letter, tag = word.split("|")
    return letter if tag == "N" else "x"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("factors")
    words = [f"{word}|{tag}" for tag in "NV" for word in "abcd"]
    pairs = [(f"{one} {other}\n", f"{_meant(one)} {_meant(other)}\n") for one in words for other in words]
    source, target = map("".join, zip(*pairs, strict=True))
    sizes = {"hidden": 16, "embedding": 8, "alignment": 8, "maxout": 8, "initialisation": "glorot"}
    model = {"type": "rnnsearch", "source_factors": [3], **sizes}
    data = {"dev_source": str(place / "s"), "dev_target": str(place / "t")}
    how = {"optimizer": "adam", "learning_rate": 0.02, "gradient": "word", "batch_sentences": 16}
    how |= {"max_updates": 60, "validate_every": 60, "dev_beam": 1, "select_by": "bleu"}
    assert train(place, "run", source=source, target=target, model=model, data=data, **how) == 0
    return place


def test_training_learns_what_the_factor_alone_says(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "--model", str(trained / "run"), "--input", str(trained / "s"), "--quiet"]) == 0
    assert capsys.readouterr().out == (trained / "t").read_text()
    tags = (trained / "run" / "source.factor1.vocab").read_text()
    assert tags == "</s>\t64\n<unk>\t0\nN\t64\nV\t64\n"


def test_other_commands_carry_factors_on(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, source, target = (str(trained / name) for name in ("run", "s", "t"))
    assert main(["average", run, run, "--output", f"{run}.mean"]) == 0
    assert main(["prune", "--model", run, "--fraction", "0", "--output", f"{run}.whole"]) == 0
    capsys.readouterr()
    lines = []
    for folder in (run, f"{run}.mean", f"{run}.whole"):
        assert main(["score", "--model", folder, "--quiet", source, target]) == 0
        lines.append(capsys.readouterr().out)
    assert lines[0] == lines[1] == lines[2]
    assert main(["embed", "--model", run, source, "--output", str(trained / "v.npy")]) == 0
    assert len(np.load(trained / "v.npy")) == 64


def test_going_on_and_starting_from_a_model_need_its_factors(trained: Path, error_line: Callable[..., str]) -> None:
    settings = str(trained / "run.yaml")
    base = ["train", settings, "--quiet", "--device", "cpu", "--set"]
    again = [*base, "training.max_updates=62", "--set", "training.validate_every=2"]
    started = [*again, "--set", f"folder={trained / 'second'}", "--set", f"training.start_from={trained / 'run'}"]
    assert main(started) == 0
    other = ["training.max_updates=61", "--resume", "--set", "data.source_factor_vocabularies=[1]"]
    assert "data.source_factor_vocabularies was not given and is [1]" in error_line(main, [*base, *other])


COMMANDS = ["decode", "score", "tab", "embed", "train", "dev", "tune-lm"]
BAD_TEXT = ["a|N b", "a|N b|N|x", "a|N |N", "a|N b|"]


@pytest.mark.parametrize(
    ("command", "line"),
    list(zip(COMMANDS, BAD_TEXT * 2, strict=False)),
)
def test_a_wrong_number_of_factors_is_one_line(
    trained: Path, tmp_path: Path, line: str, command: str, error_line: Callable[..., str]
) -> None:
    if command == "tune-lm":
        pytest.importorskip("kenlm")
    bad, run, lm = tmp_path / "bad", str(trained / "run"), str(tmp_path / "lm")
    Path(lm).write_text(ARPA)
    bad.write_text(f"a|N b|V\n{line}\n")
    (tmp_path / "t").write_text("a\nb\n")
    (tmp_path / "tab").write_text(f"a|N\tb\n{line}\tc\n")
    train = ["train", str(trained / "run.yaml"), "--quiet", "--set", f"folder={tmp_path / 'm'}", "--set"]
    arguments = {
        "decode": ["decode", "--model", run, "--input", str(bad), "--output", str(tmp_path / "out")],
        "score": ["score", "--model", run, str(bad), str(tmp_path / "t")],
        "tab": ["score", "--model", run, str(tmp_path / "tab")],
        "embed": ["embed", "--model", run, str(bad)],
        "tune-lm": ["tune-lm", "--model", run, "--lm", lm, "--source", str(bad), "--reference", str(tmp_path / "t")],
        "train": [*train, f"data.source={bad}", "--set", f"data.target={tmp_path / 't'}"],
        "dev": [*train, f"data.dev_source={bad}", "--set", f"data.dev_target={tmp_path / 't'}"],
    }
    name = "tab" if command == "tab" else "bad"
    message = error_line(main, arguments[command])
    assert f"{tmp_path / name}:2: the word '" in message and "factor" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["data.source_factor_vocabularies=[10, 10]"], "has 2 entries and model.source_factors 1; give one for each"),
        (["model.source_factors=[0]"], "source_factors"),
        (["data.preparation=x.json"], "data.preparation is of words without factors"),
        (["model.source_factors=[1,1,1,1,1,1,1,1,1]"], "source_factors"),
    ],
)
def test_settings_that_do_not_go_together_are_one_line(
    trained: Path, changes: list[str], message: str, error_line: Callable[..., str]
) -> None:
    settings = [part for change in changes for part in ("--set", change)]
    said = error_line(
        main, ["train", str(trained / "run.yaml"), "--quiet", "--set", f"folder={trained / 'no'}", *settings]
    )
    assert message in said


def test_raw_text_has_no_factors(trained: Path, error_line: Callable[..., str]) -> None:
    line = error_line(main, ["decode", "--model", str(trained / "run"), "--raw", "--input", str(trained / "t")])
    problem = "reads words with factors (word|factor), which raw text does not have"
    assert line.endswith(f"{problem}; give text whose words have them, without --raw")


def test_text_is_split_at_bars_where_factors_are_read_alone() -> None:
    assert split_factors("a|b c", 0) == [["a|b", "c"]]
    assert split_factors("", 2) == [[], [], []]
