"""The settings files of the three models, by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from smt_bridge.new.given import Given
from smt_bridge.new.machine import Machine

VOCABULARY = 30_000  # most words of a side
_HELD_OUT = 2000  # phrase pairs that select the phrase model


class Size(NamedTuple):
    """Sizes of layers as in the papers (n, m, n', l), dropouts, Adam's learning rate, sentences of an update.

    There are about ``validations``. The mean of the models of half of them is tried at the end; the learning rate is
    halved after a fifth of them without a better one.
    """

    hidden: int
    embedding: int
    alignment: int
    maxout: int
    dropout: float
    embedding_dropout: float
    rate: float
    sentences: int
    validations: int


SENTENCES = {
    "small": Size(192, 96, 96, 96, 0.2, 0.0, 0.002, 64, 5),
    "medium": Size(384, 256, 256, 256, 0.3, 0.3, 0.001, 80, 10),
    "paper": Size(1000, 620, 1000, 500, 0.2, 0.2, 0.0005, 80, 10),
}
"""RNNsearch. ``small`` learns the example system in minutes, ``medium`` 29,000 captions in half an hour on one core;
``paper`` has the sizes of Bahdanau et al. 2015, appendix A.2."""
PHRASES = {
    "small": Size(128, 64, 64, 64, 0.0, 0.0, 0.002, 128, 5),
    "medium": Size(384, 128, 128, 192, 0.1, 0.0, 0.001, 256, 5),
    "paper": Size(1000, 100, 100, 500, 0.1, 0.0, 0.001, 256, 5),
}
"""RNNencdec of Cho et al. 2014: the output matrix is factored by the size of the word vectors."""


def parameters(size: Size, source_words: int, target_words: int) -> int:
    """About how many parameters an RNNsearch has (Bahdanau et al. 2015, appendix A.1)."""
    n, m, a, k = size.hidden, size.embedding, size.alignment, size.maxout
    encoder = 2 * 3 * (n * m + n * n)
    decoder = 3 * (n * m + n * n + 2 * n * n) + a * 3 * n + 2 * k * (n + m + 2 * n)
    return min(source_words, VOCABULARY) * m + min(target_words, VOCABULARY) * (m + k) + encoder + decoder


def sentence_settings(
    name: str, given: Given, machine: Machine, *, size: Size, updates: int, comment: str, reverse: bool = False
) -> str:
    """The YAML file of an RNNsearch; of the other direction with ``reverse``."""
    languages, train, dev = given.languages, given.corpus.text, given.dev
    sides = (train.source, train.target, dev.source, dev.target)
    if reverse:
        languages, sides = (languages[1], languages[0]), (sides[1], sides[0], sides[3], sides[2])
    return f"""\
{comment}
folder: {name}
model: {{type: rnnsearch, hidden: {size.hidden}, embedding: {size.embedding}, alignment: {size.alignment},
        maxout: {size.maxout}, dropout: {size.dropout}, embedding_dropout: {size.embedding_dropout},
        initialisation: glorot}}
{_text(given, languages)}
data:
  source: {quoted(sides[0])}
  target: {quoted(sides[1])}
  dev_source: {quoted(sides[2])}
  dev_target: {quoted(sides[3])}
  {_vocabulary(given)}{_preparation(given)}
training:
  {{optimizer: adam, learning_rate: {size.rate}, gradient: word, batch_sentences: {size.sentences},
   label_smoothing: 0.1, max_updates: {updates}, validate_every: {_every(size, updates)}, dev_beam: 1,
   decay_patience: {size.validations // 5}, average: {(size.validations + 1) // 2}, precision: {_precision(machine)}}}
"""


def phrase_settings(name: str, given: Given, machine: Machine, *, size: Size, updates: int, comment: str) -> str:
    """The YAML file of the RNNencdec that is trained on the phrase pairs, each once (Cho et al. 2014, section 3.1)."""
    held_out = min(_HELD_OUT, max(1, given.system.pairs // 20))
    return f"""\
{comment}
folder: {name}
model: {{preset: rnnencdec-cho2014, hidden: {size.hidden}, maxout: {size.maxout}, embedding: {size.embedding},
        output_rank: {size.embedding}, dropout: {size.dropout}, initialisation: glorot}}
{_text(given, given.languages)}
data:
  phrase_table: {quoted(given.system.table)}
  hold_out: {held_out}
  max_length: 30
training:
  {{optimizer: adam, learning_rate: {size.rate}, gradient: word, batch_sentences: {size.sentences}, window: 20,
   max_updates: {updates}, validate_every: {_every(size, updates)}, select_by: nll, decay_patience: 1,
   precision: {_precision(machine)}}}
"""


def _text(given: Given, languages: Sequence[str]) -> str:
    """The languages, and what of the tokeniser is not as Moses has it by default."""
    tokenization = given.corpus.tokenization
    hyphens = ", aggressive_hyphens: true" if tokenization.aggressive_hyphens else ""
    escape = "" if tokenization.escape else ", escape: false"
    return f"text: {{source_language: {languages[0]}, target_language: {languages[1]}{hyphens}{escape}}}"


def _preparation(given: Given) -> str:
    """With truecasers, what the models carry to take running text."""
    return "\n  preparation: preparation.json" if given.truecasers else ""


def _vocabulary(given: Given) -> str:
    """Words seen once are left out; of large corpora, all but the most frequent."""
    largest = max(given.corpus.source_words, given.corpus.target_words)
    if largest <= VOCABULARY:
        return "minimum_count: 2"
    return f"source_vocabulary: {VOCABULARY}\n  target_vocabulary: {VOCABULARY}"


def _every(size: Size, updates: int) -> int:
    """Updates from one validation to the next."""
    return max(20, -(-updates // size.validations))


def _precision(machine: Machine) -> str:
    return "bfloat16" if machine.bfloat16 else "float32"


def quoted(path: str) -> str:
    """A path as a YAML string."""
    return "'" + path.replace("'", "''") + "'"
