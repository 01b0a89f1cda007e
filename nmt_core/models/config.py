"""The settings that models of recurrent layers have in common, and what is made of them alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import MOST_FACTORS
from nmt_core.config import Config
from nmt_core.layers.cells import CELLS
from nmt_core.layers.embedding import Combination, WordEmbedding
from nmt_core.layers.generator import LinearGenerator
from nmt_core.layers.init import RANGE, Initialisation
from nmt_core.layers.recurrent import MOST_LAYERS, Layers
from nmt_core.models.encoder_decoder import Order

Size = Annotated[int, Field(gt=0)]


def _in_cells(name: str) -> str:
    if name not in CELLS:
        raise ValueError(f"expected {', '.join(CELLS)}, found {name[:40]!r}")
    return name


CellName = Annotated[str, AfterValidator(_in_cells)]


class RecurrentConfig(Config):
    """Sizes of Bahdanau et al. 2015 (appendix A.2.3) unless set otherwise.

    ``cell`` is the recurrent cell; with ``gate_biases`` all its gates have biases. With ``residual`` layers add what
    they give out to what they read, from the second on. ``dropout`` is that of annotations and readout,
    ``embedding_dropout`` of word vectors, ``layer_dropout`` between layers (Zaremba et al. 2014),
    ``variational_dropout`` of the inputs and states of every layer, the same units at all positions (Gal and Ghahramani
    2016), ``word_dropout`` of whole words (Sennrich et al. 2016b). ``tied`` takes the word embeddings as output matrix
    (Press and Wolf 2017). ``uniform`` first values are between -``init_range`` and ``init_range``.
    """

    type: str
    cell: CellName = "gru"
    embedding: int = Field(default=620, gt=0)
    hidden: int = Field(default=1000, gt=0)
    output_rank: int | None = Field(default=None, gt=0)
    residual: bool = False
    gate_biases: bool = False
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    embedding_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    layer_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    variational_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    word_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    tied: bool = False
    initialisation: Initialisation = "paper"
    init_range: float = Field(default=RANGE, gt=0, allow_inf_nan=False)

    def layers(self, depth: int) -> Layers:
        """So many layers."""
        return Layers(
            CELLS[self.cell],
            depth=depth,
            residual=self.residual,
            dropout=self.layer_dropout,
            variational=self.variational_dropout,
            gate_biases=self.gate_biases,
        )

    def new_embedding(self, words: int) -> WordEmbedding:
        """Word vectors of the model's size."""
        return WordEmbedding(words, self.embedding, dropout=self.embedding_dropout, word_dropout=self.word_dropout)

    def new_generator(self, units: int, embedding: WordEmbedding, *, tied: bool) -> LinearGenerator:
        """The output layer for readouts of so many units and the words of ``embedding``."""
        rank = self.embedding if tied else self.output_rank
        return LinearGenerator(units, len(embedding.weight), rank=rank, tied=embedding if tied else None)


class SourceFactorsConfig(Config):
    """Models of sources whose words have factors (Sennrich and Haddow 2016).

    ``source_factors`` has the size of the vectors of each factor beside the word, ``source_factors_combine`` says
    whether they are concatenated with the word's vector or added to it.
    """

    embedding: int = Field(default=620, gt=0)
    source_factors: Annotated[tuple[Size, ...], Field(max_length=MOST_FACTORS)] = ()
    source_factors_combine: Combination = "concat"

    @model_validator(mode="after")
    def _factors_can_be_added(self) -> Self:
        if self.source_factors_combine == "concat":
            return self
        if not self.source_factors:
            raise ValueError("source_factors_combine: there are no factors; give source_factors, or leave it out")
        if set(self.source_factors) != {self.embedding}:
            raise ValueError(
                f"source_factors: with source_factors_combine: {self.source_factors_combine} all have the size of "
                f"the word vectors, embedding {self.embedding}"
            )
        return self


class TranslationConfig(SourceFactorsConfig, RecurrentConfig):
    """With a source. ``shared_embeddings``: source, target and output have one matrix of words, of one vocabulary."""

    maxout: int = Field(default=500, gt=0)
    order: Order = "look-generate-update"
    encoder_depth: int = Field(default=1, ge=1, le=MOST_LAYERS)
    decoder_depth: int = Field(default=1, ge=1, le=MOST_LAYERS)
    shared_embeddings: bool = False

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.residual and self.encoder_depth == self.decoder_depth == 1:
            raise ValueError("residual: the first layer adds to nothing; give encoder_depth or decoder_depth 2 or more")
        if self.shared_embeddings and self.output_rank is not None:
            raise ValueError("output_rank: with shared_embeddings the output matrix is that of the word vectors")
        return self

    def new_embeddings(
        self, source_words: int, target_words: int, factor_words: Sequence[int]
    ) -> tuple[WordEmbedding, WordEmbedding]:
        """Those of source and target. Raises ConfigError where they are to be one and the vocabularies are not."""
        source = WordEmbedding(
            source_words,
            self.embedding,
            list(zip(factor_words, self.source_factors, strict=True)),
            combine=self.source_factors_combine,
            dropout=self.embedding_dropout,
            word_dropout=self.word_dropout,
        )
        if not self.shared_embeddings:
            return source, self.new_embedding(target_words)
        check_shared(source_words, target_words)
        return source, source


def check_shared(source_words: int, target_words: int) -> None:
    """Raise ConfigError where source and target cannot have one table of words."""
    if source_words != target_words:
        raise ConfigError(
            f"model.shared_embeddings: source and target need one vocabulary, found {source_words:,} and "
            f"{target_words:,} words"
        )
