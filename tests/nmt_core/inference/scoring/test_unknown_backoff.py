"""Unknown target words share the probability of ``<unk>``: by hand, as a distribution, and what is refused."""

from __future__ import annotations

import dataclasses
import gzip
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import pad_pairs
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.scoring.unknown_backoff import BackedOffScorer, read_unigrams
from nmt_core.model_directory.loaded_model import LoadedModel
from tests.nmt_core.arpa import ARPA
from tests.spelling_models import spelling_model

Load = Callable[..., LoadedModel]
OUTSIDE = ARPA.replace("-1.1\thommes\t-0.25\n", "-1.1\thommes\t-0.25\n-1.2\tchiens\t0\n-1.4\tchats\t0\n")
# of the words of OUTSIDE the model lacks chiens and chats; <unk> is one more
SHARES = dict(zip(("chiens", "chats", "<unk>"), np.power(10.0, [-1.2, -1.4, -1.5]), strict=True))
TOTAL = sum(SHARES.values())


@pytest.fixture
def arpa(tmp_path: Path) -> str:
    (tmp_path / "lm.arpa").write_text(OUTSIDE)
    return str(tmp_path / "lm.arpa")


@pytest.mark.parametrize("kind", ["rnnsearch", "rnnencdec"])
def test_the_numbers_are_those_of_the_equation(load_tiny: Load, arpa: str, kind: str) -> None:
    loaded = load_tiny(kind)
    scorer = BackedOffScorer([loaded], ModelPairScorer([loaded]), read_unigrams(arpa))
    targets = ["un chiens .", "chats chats un", "un groupe .", "zebre", "", "un <unk> </s> <s> chiens"]
    for text in targets:
        [score] = scorer.score([SentencePair("a group", text)], per_word=True)
        ids = loaded.target.encode(text)
        with torch.no_grad():
            plain = loaded.model(pad_pairs([(loaded.source.encode("a group"), ids)]))[0].double().numpy()
        expected = plain.copy()
        for place, word in enumerate(text.split()):
            if word not in loaded.target.words[2:]:
                expected[place] += np.log(SHARES.get(word, SHARES["<unk>"]) / TOTAL)
        assert score.word_log_probs == pytest.approx(expected, abs=1e-10)
        assert score.log_prob == pytest.approx(expected.sum(), abs=1e-10)
        assert score.unknown_target == ids.count(1)


def test_the_words_of_a_place_have_probabilities_that_sum_to_one(load_tiny: Load, arpa: str) -> None:
    loaded = load_tiny("rnnsearch")
    scorer = BackedOffScorer([loaded], ModelPairScorer([loaded]), read_unigrams(arpa))
    words = [*loaded.target.words[2:], "chiens", "chats", "zebre"]
    after = scorer.score([SentencePair("a of", f"un chiens {word}") for word in words], per_word=True)
    [end] = scorer.score([SentencePair("a of", "un chiens")], per_word=True)
    assert end.word_log_probs is not None
    third = [score.word_log_probs[2] for score in after if score.word_log_probs is not None]
    assert math.fsum(map(math.exp, [*third, end.word_log_probs[2]])) == pytest.approx(1.0, abs=1e-10)


def test_known_words_keep_their_scores_and_one_unknown_word_is_all_of_them(
    load_tiny: Load, arpa: str, tmp_path: Path
) -> None:
    loaded = load_tiny("rnnencdec")
    plain = ModelPairScorer([loaded])
    known = [SentencePair("a group", "un groupe ."), SentencePair("what is that", "un")]
    assert BackedOffScorer([loaded], plain, read_unigrams(arpa)).score(known) == plain.score(known)
    (tmp_path / "same.arpa.gz").write_bytes(gzip.compress(ARPA.encode()))  # every word of it is in the shortlist
    pairs = [SentencePair("a group", "un chiens")]
    alone = BackedOffScorer([loaded], plain, read_unigrams(str(tmp_path / "same.arpa.gz")))
    assert alone.score(pairs)[0].log_prob == pytest.approx(plain.score(pairs)[0].log_prob, abs=1e-12)


def test_the_signature_tells_the_unigrams(load_tiny: Load, arpa: str, tmp_path: Path) -> None:
    loaded = load_tiny("rnnsearch")
    plain, first = ModelPairScorer([loaded]), read_unigrams(arpa)
    (tmp_path / "other.arpa").write_text(OUTSIDE.replace("-1.4\tchats", "-1.3\tchats"))
    signatures = {
        BackedOffScorer([loaded], plain, unigrams).signature
        for unigrams in (first, read_unigrams(str(tmp_path / "other.arpa")))
    }
    assert len(signatures) == 2
    assert f"|backoff:{first.fingerprint}|version:" in min(signatures) + max(signatures)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("mmap lm http://kheafield.com/code format version 5\n", "expected an ARPA file, with a line \\1-grams:"),
        (OUTSIDE.replace("-1.5\t<unk>\t0\n", ""), "has no <unk>"),
        (OUTSIDE.replace("-1.1\thommes\t-0.25", "-1.1"), ":11: expected log10 of a probability, a word"),
        (OUTSIDE.replace("-1.1\thommes", "0.5\thommes"), ":11: expected log10 of a probability, a word"),
        (OUTSIDE.replace("-1.1\thommes", "nan\thommes"), ":11: expected log10 of a probability, a word"),
        (OUTSIDE.partition("\\2-grams")[0], "ends within the unigrams"),
    ],
)
def test_what_is_no_model_with_unigrams_is_refused(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "lm").write_text(content)
    with pytest.raises(InputError) as caught:
        read_unigrams(str(tmp_path / "lm"))
    assert said in str(caught.value)


def test_blanks_within_words_and_line_ends_of_windows_are_read_as_by_the_language_model(tmp_path: Path) -> None:
    content = OUTSIDE.replace("chiens\t0", "10\u00a0000").replace("chats", "a\u2028b\u0085")
    (tmp_path / "lm").write_bytes(content.replace("\n", "\r\n").encode())
    found = read_unigrams(str(tmp_path / "lm")).words
    assert found["10\u00a0000"] == -1.2 * math.log(10) and found["a\u2028b\u0085"] == -1.4 * math.log(10)
    assert "10" not in found and "a" not in found


def test_the_least_probability_is_one_that_can_be_shared(load_tiny: Load, tmp_path: Path) -> None:
    (tmp_path / "lm").write_text(ARPA.replace("-1.5\t<unk>", "-400\t<unk>"))
    shares = read_unigrams(str(tmp_path / "lm")).shares(load_tiny("rnnencdec").target)
    assert shares.unknown == 0.0


def test_a_file_that_is_not_there_or_a_pipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such n-gram model"):
        read_unigrams(str(tmp_path / "nowhere"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: is a pipe; expected an ordinary file"):
        read_unigrams(str(tmp_path / "pipe"))


def test_models_that_annotate_or_spell_unknown_words_have_nothing_to_back_off(load_tiny: Load, arpa: str) -> None:
    loaded = load_tiny("rnnsearch")
    copying = dataclasses.replace(loaded, config=loaded.config.model_copy(update={"copying": "posunk"}))
    for other, why in ((copying, "annotates unknown words"), (spelling_model(), "spells unknown words")):
        with pytest.raises(ConfigError, match=f"{why}; there is nothing to back off"):
            BackedOffScorer([other], ModelPairScorer([loaded]), read_unigrams(arpa))
