r"""A limit on the words of a line: what has no line ends is a message, and does not take all memory or time.

Words are those between spaces and tabs. Pieces of a long line end, if they can, where a sentence may end.

>>> cut_words("a b . c d e", 4)
['a b .', 'c d e']
>>> count_words("a  b\\tc ")
3
"""

from __future__ import annotations

from nmt_core.errors import InputError

MOST_WORDS = 1000
_SENTENCE_ENDS = (".", "!", "?", ";", ":", "\N{HORIZONTAL ELLIPSIS}", "\N{IDEOGRAPHIC FULL STOP}")


def count_words(text: str) -> int:
    """How many words a text has, without a list of them where single spaces divide them, as in most texts."""
    if "  " in text or "\t" in text or not text or text != text.strip(" "):
        return len(_words(text))
    return text.count(" ") + 1


def check_words(text: str, most: int, *, path: str, line: int, remedy: str = "") -> None:
    """Raise InputError for line ``line`` of the file ``path`` where it has more than ``most`` words.

    ``remedy`` is what can be done beside allowing more.
    """
    if text.count(" ") + text.count("\t") < most:  # hardly any line is looked at twice
        return
    words = count_words(text)
    if words > most:
        problem = f"has {words:,} words; up to {most:,} are taken: divide the line, or allow more with --max-words"
        raise InputError(path, problem + remedy, line=line)


def cut_words(text: str, most: int) -> list[str]:
    """The text if it has at most ``most`` words, or pieces of its words that have.

    A piece ends behind a word that ends in ``. ! ? ; :`` and the like, where one is in its second half.
    """
    words = _words(text)
    if len(words) <= most:
        return [text]
    pieces = []
    while words:
        end = _end_of_piece(words, most)
        pieces.append(" ".join(words[:end]))
        words = words[end:]
    return pieces


def _end_of_piece(words: list[str], most: int) -> int:
    if len(words) <= most:
        return len(words)
    ends = (place for place in range(most, most // 2, -1) if words[place - 1].endswith(_SENTENCE_ENDS))
    return next(ends, most)


def _words(text: str) -> list[str]:
    """As ``nmt_core.text.vocabulary`` has them."""
    return [word for word in text.replace("\t", " ").split(" ") if word]
