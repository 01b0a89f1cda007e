"""Hard and soft alignments, and pictures of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.inference.output.alignment import (
    AlignedPair,
    hard_alignment_line,
    hard_points,
    line_writer,
    soft_alignment_line,
)

# Two target words and </s>, three source words and </s>; the first looks at </s> most.
WEIGHTS = np.array([[0.1, 0.0, 0.3, 0.6], [0.5, 0.4, 0.1, 0.0], [0.0, 0.0, 0.1, 0.9]], dtype=np.float32)


def pair(attention: np.ndarray | None = WEIGHTS) -> AlignedPair:
    return AlignedPair(("$a_1$", "<b>", "c"), ("un", "&amp;"), attention)


def test_words_are_linked_to_words_only() -> None:
    assert hard_points(WEIGHTS) == [(2, 0), (0, 1)]
    assert hard_alignment_line(pair()) == "0-1 2-0"


def test_the_row_of_a_word_that_was_read_is_the_next() -> None:
    assert hard_points(WEIGHTS, "read") == [(0, 0), (2, 1)]
    assert hard_points(WEIGHTS[2:], "read") == []


def test_an_empty_translation_has_no_points() -> None:
    empty = AlignedPair((), (), None)
    assert hard_alignment_line(empty) == ""
    assert json.loads(soft_alignment_line(empty)) == {"source": ["</s>"], "target": ["</s>"], "attention": []}
    assert hard_points(WEIGHTS[2:]) == []
    assert hard_points(WEIGHTS[:, 3:]) == []


def test_soft_alignments_have_all_weights() -> None:
    read = json.loads(soft_alignment_line(pair()))
    assert read["source"] == ["$a_1$", "<b>", "c", "</s>"]
    assert read["target"] == ["un", "&amp;", "</s>"]
    np.testing.assert_allclose(read["attention"], WEIGHTS, atol=1e-5)
    line = soft_alignment_line(AlignedPair(("\u00e9", "b", "c"), (), WEIGHTS[:1] / 3))
    assert (
        line == '{"source": ["\u00e9", "b", "c", "</s>"], "target": ["</s>"], "attention": [[0.03333, 0.0, 0.1, 0.2]]}'
    )


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zst"])
def test_the_name_of_a_file_says_what_is_written(ending: str) -> None:
    assert line_writer(f"a.jsonl{ending}") is soft_alignment_line
    assert line_writer(f"a.json{ending}") is hard_alignment_line


def test_models_without_attention_are_named_as_the_reason() -> None:
    for refused in (hard_alignment_line, soft_alignment_line, AlignedPair.svg):
        with pytest.raises(ConfigError) as caught:
            refused(pair(None))
        assert str(caught.value) == "alignments need a model with attention (such as rnnsearch); this one has none"


def test_pictures_of_long_sentences_stay_small() -> None:
    words = tuple(f"w{number}" for number in range(800))
    weights = np.full((801, 801), 1 / 801, dtype=np.float32)
    assert len(AlignedPair(words, words, weights).svg()) < 1_000_000
