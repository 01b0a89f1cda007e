"""From what search found to translations: unknown words are replaced, and those that a model points to are written."""

from __future__ import annotations

from nmt_core.base.interfaces import Aligns
from nmt_core.inference.output.copies import replacement_of, restore
from nmt_core.inference.output.spelling import Found
from nmt_core.inference.output.translation import Translation
from nmt_core.inference.output.unknowns import NOTHING_REPLACED, UnknownReplacement
from nmt_core.models.checkpoint import LoadedModel


class TranslationMaker:
    """Makes translations of what models like ``loaded`` have found.

    ``unknowns`` says what is written instead of ``<unk>``, which stays where it is None or there is no attention.
    Models of annotated text point to source words instead: what is written for these is what ``unknowns`` says, or else
    their own lexicon. ``aligns`` says which words the rows of attention are of.
    """

    def __init__(self, loaded: LoadedModel, aligns: Aligns, unknowns: UnknownReplacement | None = None) -> None:
        self._copying, self._aligns, self._unknowns = loaded.copying, aligns, unknowns
        self._pointed = unknowns or replacement_of(loaded)

    def make(self, found: Found, source: tuple[str, ...]) -> Translation:
        """The translation, tokenised, of a source of these words."""
        hypothesis, words = found
        numbers, attention, aligns = hypothesis.word_log_probs, hypothesis.attention, self._aligns
        counts = NOTHING_REPLACED
        if self._copying is not None:
            words, numbers, attention, counts = restore(
                self._copying, self._pointed, words, source, word_log_probs=numbers, attention=attention, aligns=aligns
            )
            aligns = "written"
        elif self._unknowns is not None and attention is not None:
            words, counts = self._unknowns.replace(words, source, attention, aligns)
        return Translation(
            text=" ".join(words),
            words=words,
            log_prob=hypothesis.log_prob,
            score=hypothesis.score,
            word_log_probs=numbers,
            source_words=source,
            attention=attention,
            unknown=counts,
            aligns=aligns,
        )
