"""The characters that words are spelled with, and their ids.

Id 0 is the end of a word; the characters follow, from 1 on. A word with another character, one that is too long, and
``<unk>`` itself have no spelling: such words are unknown and nothing else.

>>> characters = Characters("etaoin", longest=4)
>>> characters.spell("neat"), characters.spell("oaten"), characters.word((6, 1, 3, 2))
((6, 1, 3, 2), None, 'neat')
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nmt_core.text.vocabulary import SPECIAL_WORDS, UNKNOWN

END_OF_WORD = 0
Spelling = tuple[int, ...]


class Characters:
    """A fixed list of characters; words of at most ``longest`` of them have a spelling."""

    def __init__(self, characters: str, *, longest: int) -> None:
        self.characters, self.longest = characters, longest
        self._ids = {character: number for number, character in enumerate(characters, start=1)}

    def __len__(self) -> int:
        """The number of ids, that of the end of a word among them."""
        return len(self.characters) + 1

    def spell(self, word: str) -> Spelling | None:
        """The ids of the characters of a word, without the end; None where it cannot be spelled."""
        if not 0 < len(word) <= self.longest or word == UNKNOWN:
            return None
        found = tuple(self._ids.get(character, END_OF_WORD) for character in word)
        return None if END_OF_WORD in found else found

    def word(self, spelling: Sequence[int]) -> str:
        """The word that is spelled so."""
        return "".join(self.characters[number - 1] for number in spelling)


def first_characters(words: Iterable[str], *, most: int) -> str:
    """The first ``most`` different characters in words that come in falling frequency.

    So the characters of frequent words come first (Luong and Manning 2016, with their code). Special words, and bytes
    that are no text, have no characters.
    """
    found: dict[str, None] = {}
    for word in words:
        if word not in SPECIAL_WORDS:
            found.update((character, None) for character in word if not "\ud800" <= character <= "\udfff")
        if len(found) >= most:
            break
    return "".join(list(found)[:most])
