"""What both kinds of Transformers have in common, with a model whose numbers are made up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.interfaces import SentencePair
from nmt_core.transformer.hf import _batches
from nmt_core.transformer.model import Transformer, open_transformer
from nmt_core.transformer.text import PiecesOfSide, TextOfModel, WordsOfSide

LIKELY = {"best": -1.0, "good": -2.0, "as good": -2.0, "bad": -3.0}


class Made(Transformer):
    """It finds the texts of ``LIKELY``, the worst first and each twice, and knows no piece."""

    signature, fingerprint = "", ""

    def __init__(self) -> None:
        super().__init__("ct2:/made")
        self.scored, self.searched = list[Sequence[list[str]]](), list[tuple[int, int, int]]()

    def size(self, side: int) -> int:
        return 0

    def _cut(self, side: int, texts: Sequence[str]) -> list[list[str]]:
        return [text.split() for text in texts]

    def _unknown(self, side: int, pieces: list[str]) -> int:
        return len(pieces)

    def _log_probs(self, sources: Sequence[list[str]], targets: Sequence[list[str]]) -> list[float]:
        self.scored.append(targets)
        return [LIKELY[" ".join(target)] for target in targets]

    def _search(
        self, sources: Sequence[list[str]], *, beam: int, longest: int, forbid_unknown: bool
    ) -> list[list[str]]:
        self.searched.append((len(sources), beam, longest))
        return [[*reversed(LIKELY), *LIKELY] for _ in sources]


def test_equal_pairs_are_scored_once() -> None:
    model = Made()
    asked = [SentencePair("a b", text) for text in ("bad", "best", "bad", "as good")]
    assert [score.log_prob for score in model.score(asked)] == [-3.0, -1.0, -3.0, -2.0]
    assert model.scored == [[["bad"], ["best"], ["as", "good"]]]
    assert {(score.unknown_source, score.unknown_target) for score in model.score(asked)} == {(2, 1), (2, 2)}


@pytest.mark.parametrize(("beam", "nbest", "held"), [(4, 2, 4), (2, 3, 3)])
def test_a_list_is_the_best_of_all_that_the_search_has(beam: int, nbest: int, held: int) -> None:
    """A translation has at most twice as many pieces as the source and 20, but not more than 256 or the source's."""
    model, lengths = Made(), [1, 117, 118, 119, 300]
    texts = ["", *(" ".join(["x"] * length) for length in lengths), "y"]
    empty, *lists = model.nbest(texts, beam=beam, nbest=nbest, forbid_unknown=False)
    assert empty == []
    best = [("best", -1.0), ("as good", -2.0), ("good", -2.0)][:nbest]
    assert all([(one.text, one.log_prob) for one in found] == best for found in lists)
    bounds = {1: 22, 117: 254, 118: 256, 119: 256, 300: 300}
    assert model.searched == [(2 if length == 1 else 1, held, bounds[length]) for length in lengths]


def test_pairs_are_computed_together_up_to_1024_pieces_of_the_longer_side() -> None:
    def cut(*lengths: tuple[int, int]) -> list[slice]:
        return list(_batches(*([[0] * length for length in side] for side in zip(*lengths, strict=True))))

    assert cut((512, 1), (1, 512)) == [slice(0, 2)]
    assert cut((512, 1), (1, 513), (1, 1)) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert cut((1, 2000), (1, 1), (2, 2)) == [slice(0, 1), slice(1, 3)]


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("opus-mt-en-fr", ("en", "fr")),
        ("x.eng-fra", ("eng", "fra")),
        ("x_de-cs", ("de", "cs")),
        ("en-fr", ("en", "fr")),
    ],
)
def test_a_directory_may_name_its_languages(tmp_path: Path, name: str, languages: tuple[str, str]) -> None:
    (tmp_path / name).mkdir()
    text = TextOfModel.read(f"{tmp_path / name}/")
    assert (text.source_language, text.target_language) == languages
    for other in (f"{name}-x", "longen-fr", "en-french"):
        found = TextOfModel.read(str(tmp_path / other))
        assert (found.source_language, found.target_language) == (None, None)


@pytest.mark.parametrize(
    ("settings", "running"),
    [
        ("{}", False),
        ("source_subwords: s.spm", True),
        ("source_subwords: s.model", True),
        ("source_subwords: codes", False),
        ("{source_subwords: s.spm, text: tokenised}", False),
        ("text: running", True),
    ],
)
def test_a_model_with_sentence_pieces_reads_running_text(tmp_path: Path, settings: str, running: bool) -> None:
    (tmp_path / "hybridmt.yaml").write_text(settings)
    assert TextOfModel.read(str(tmp_path)).is_running == running


def test_words_stay_as_they_are_unless_the_model_reads_running_text() -> None:
    tokenised, running = (WordsOfSide("m", "fr", is_running=is_running) for is_running in (False, True))
    for side, text, words in ((tokenised, "l&apos; a .", "l'a. b"), (running, "l'a.", "l&apos; a. b")):
        assert (side.text_of("l&apos; a ."), side.words_of("l'a.\nb")) == (text, words)


def test_what_is_missing_is_one_line(tmp_path: Path) -> None:
    place, settings = str(tmp_path), tmp_path / "hybridmt.yaml"
    remedy = f"name the directory …-en-fr, or write source_language and target_language into {settings}"
    for needed, work in (
        ("raw text needs", lambda: TextOfModel.read(place).open_raw_text(place)),
        ("detokenisation needs", lambda: PiecesOfSide(place, None, None, is_running=True)),
    ):
        with pytest.raises(ConfigError) as raised:
            work()
        assert str(raised.value) == f"{place}: its languages are not known, which {needed}; {remedy}"
    settings.write_text("source_language: EN\n")
    with pytest.raises(ConfigError, match="'source_language'"):
        TextOfModel.read(place)
    with pytest.raises(InputError, match=r"codes: cannot be read"):
        PiecesOfSide(place, "codes", None, is_running=False)
    for spec, start in (("hf:a,ct2:b", "hf:"), ("ct2:a,hf:b", "ct2:")):
        with pytest.raises(ConfigError, match=f"^{spec}: Transformers make no ensembles; give one {start}DIR$"):
            open_transformer(spec)
