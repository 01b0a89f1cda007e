"""Which text a training run reads: ``data`` and ``tasks`` of the YAML file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nmt_core.base.messages import counted
from nmt_core.config import Config

AUTOMATIC = "auto"
Files = tuple[str, ...]


def _several(value: Any) -> Any:
    """One file is a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _some_words(value: str | int) -> str | int:
    if isinstance(value, int) and value < 1:
        raise ValueError("expected a file, or a size of at least 1 word")
    return value


FileOrSize = Annotated[str | int, AfterValidator(_some_words)]
OneOrMore = Annotated[Files, BeforeValidator(_several), Field(min_length=1)]
Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class DataConfig(Config):
    """Where the text is.

    Training text is either ``source`` and ``target``, or the distinct pairs of ``phrase_table``, each
    taken once whatever its counts (Cho et al. 2014, section 3.1), or, for a language model, ``text``: its
    sources are empty. Several files are one text, or with ``weights`` texts of which updates are drawn in
    this proportion. Text is tokenised. Without ``dev_source`` and
    ``dev_target`` (or ``dev_text``), ``hold_out`` pairs are taken out of the first training text for
    validation. Of several development sets the first decides. A vocabulary is a file, a size, or null for
    every word; words seen less than ``minimum_count`` times are left out of a vocabulary that is made here.
    ``source_factor_vocabularies`` has one for each of ``model.source_factors`` (None: all have every factor seen).

    With ``copying`` text is what ``nmt-core annotate`` wrote, and development sets are plain, with ``dev_alignment``
    annotated by that; ``lexicon`` is for the model to carry.

    ``preparation`` is the ``preparation.json`` that the text was prepared with, for the model to carry; ``auto`` takes
    the one beside the text that speaks of it, null none.
    """

    source: OneOrMore | None = None
    target: OneOrMore | None = None
    phrase_table: str | None = None
    text: OneOrMore | None = None
    weights: Annotated[tuple[Weight, ...], Field(min_length=2)] | None = None
    dev_source: OneOrMore | None = None
    dev_target: OneOrMore | None = None
    dev_text: OneOrMore | None = None
    dev_alignment: OneOrMore | None = None
    lexicon: str | None = None
    hold_out: int = Field(default=1000, ge=1)
    preparation: str | None = AUTOMATIC
    source_vocabulary: FileOrSize | None = None
    target_vocabulary: FileOrSize | None = None
    source_factor_vocabularies: tuple[FileOrSize | None, ...] | None = None
    minimum_count: int = Field(default=1, ge=1)
    max_length: int | None = Field(default=50, ge=1)

    @model_validator(mode="after")
    def _one_kind_of_text(self) -> DataConfig:
        pairs = self.source is not None and self.target is not None
        kinds = (pairs, self.phrase_table is not None, self.text is not None)
        if (self.source is None) != (self.target is None) or sum(kinds) != 1:
            raise ValueError("give either source and target, or phrase_table, or for a language model text")
        if (self.dev_text if self.text is None else self.dev_source) is not None:
            raise ValueError("dev_text goes with text, dev_source and dev_target go with the others")
        if (self.dev_source is None) != (self.dev_target is None):
            raise ValueError("give both dev_source and dev_target, or neither")
        return self

    @model_validator(mode="after")
    def _files_in_pairs(self) -> DataConfig:
        pairs: list[tuple[str, Sequence[object] | None, str, Sequence[object] | None]] = [
            ("source", self.source, "target", self.target),
            ("dev_source", self.dev_source, "dev_target", self.dev_target),
        ]
        if self.dev_alignment is not None:
            pairs.append(("dev_source", self.dev_source, "dev_alignment", self.dev_alignment))
        if self.weights is not None:
            texts = self.text or self.source or (self.phrase_table,)
            pairs.append(("text" if self.text else "source", texts, "weights", self.weights))
        for first, ones, second, others in pairs:
            if len(ones or ()) != len(others or ()):
                raise ValueError(
                    f"{first} has {counted(len(ones or ()), 'entry', 'entries')} and {second} {len(others or ())}"
                )
        return self


class TaskConfig(Config):
    """A task beside the reference, whose ratio is 1 (Luong et al. 2016, sections 3 and 4.2).

    ``kind`` ``pairs`` has ``source`` and ``target``; an ``autoencoder`` predicts the sentences of ``source``,
    ``halves`` their second half from the first. Development sets are alike. A side that is not shared has a vocabulary
    of its own.
    """

    name: str = Field(pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=100)
    kind: Literal["pairs", "autoencoder", "halves"] = "pairs"
    share: Literal["encoder", "decoder", "both"]
    ratio: float = Field(gt=0, allow_inf_nan=False)
    source: OneOrMore
    target: OneOrMore | None = None
    dev_source: OneOrMore | None = None
    dev_target: OneOrMore | None = None
    source_vocabulary: FileOrSize | None = None
    target_vocabulary: FileOrSize | None = None
    metric: Literal["nll", "bleu"] = "nll"

    def shares(self, side: Literal["encoder", "decoder"]) -> bool:
        """Whether this part is that of the reference."""
        return self.share in (side, "both")

    @model_validator(mode="after")
    def _sides_are_there(self) -> TaskConfig:
        if (self.kind == "pairs") != (self.target is not None):
            raise ValueError(f"kind: {self.kind} has {'source and target' if self.kind == 'pairs' else 'source alone'}")
        wanted = self.dev_source is not None and self.kind == "pairs"
        if wanted != (self.dev_target is not None):
            raise ValueError("dev_source and dev_target are as source and target are, or both left out")
        for key, other in (("source", "target"), ("dev_source", "dev_target")):
            mine, theirs = getattr(self, key), getattr(self, other)
            if theirs is not None and len(mine) != len(theirs):
                raise ValueError(f"{key} has {counted(len(mine), 'entry', 'entries')} and {other} {len(theirs)}")
        for key, side in (("source_vocabulary", "encoder"), ("target_vocabulary", "decoder")):
            if getattr(self, key) is not None and self.share in (side, "both"):
                raise ValueError(f"{key}: the {side} is shared with its words, which are those of data; leave it out")
        return self
