"""What a request may ask for at most, and the checks."""

from __future__ import annotations

from dataclasses import dataclass

from nmt_core.serving.refusal import Refusal, invalid
from nmt_core.text.vocabulary import split_words


@dataclass(frozen=True)
class Limits:
    """Bounds of one request, and of what is open at once.

    ``items`` bounds texts, pairs and hypotheses, and texts times n-best; ``characters`` and ``words``
    one text; ``message_bytes`` a message either way; ``calls`` and ``streams`` what all clients have
    open; ``stream_requests`` what one stream has under way.
    """

    items: int = 20_000
    characters: int = 20_000
    words: int = 2_000
    beam: int = 200
    nbest: int = 200
    length_ratio: float = 20.0
    message_bytes: int = 32 << 20
    calls: int = 10_000
    streams: int = 256
    stream_requests: int = 64

    def check_items(self, count: int, field: str, *, answers: int = 1) -> None:
        """Raises Refusal for too many of them."""
        if count * answers > self.items:
            asked = f"{count} items" if answers == 1 else f"{answers} translations of each of {count} items"
            problem = f"{asked} in one request; at most {self.items}, send several requests"
            raise invalid(field, problem, reason="TOO_MANY_ITEMS")

    def text_problem(self, text: str, field: str) -> Refusal | None:
        """What is wrong with a text, before and after it was tokenised."""
        if len(text) > self.characters:
            problem = f"the text has {len(text)} characters; at most {self.characters}"
            return invalid(field, problem, reason="TEXT_TOO_LONG")
        if text.count(" ") >= self.words and (words := len(split_words(text))) > self.words:
            return invalid(field, f"the text has {words} words; at most {self.words}", reason="TEXT_TOO_LONG")
        return None
