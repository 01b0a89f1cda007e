"""What the methods of the service work with, and what is the same at the beginning and the end of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmt_core.serving.call import charge
from nmt_core.serving.checks import check_cost
from nmt_core.serving.errors import Refusal
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.costs import Cost, count_words_of_all
from nmt_core.serving.models.devices import Devices
from nmt_core.serving.text_processing import TextProcessing

if TYPE_CHECKING:
    from nmt_core.serving.telemetry import Metrics


@dataclass(frozen=True)
class Backend:
    """Devices with their models, text processing, limits, and where words are counted."""

    devices: Devices
    texts: TextProcessing
    limits: Limits
    metrics: Metrics | None

    def accept(self, cost: Cost) -> None:
        """Raises Refusal for a request that costs too much, before anything of it is done."""
        check_cost(self.limits, answer=cost.answer, steps=cost.steps)
        charge(cost.memory, answer=cost.answer)

    def checked(self, response: bytes) -> bytes:
        """The response, if it can be sent: words may be longer than their mean length."""
        check_cost(self.limits, answer=len(response), steps=0)
        return response

    def count_words(self, model: str, kind: str, words: Iterable[int]) -> None:
        """Count the words of some texts."""
        if self.metrics is not None:
            self.metrics.count_words(model, kind, sum(words))

    def count_errors(self, model: str, answers: Iterable[object]) -> None:
        """Count those of the answers that are errors of their items."""
        if self.metrics is not None:
            for reason, count in Counter(one.reason for one in answers if isinstance(one, Refusal)).items():
                self.metrics.item_errors.labels(model, reason).inc(count)


def words_of(texts: Sequence[str | Refusal]) -> list[int]:
    """How many words each text has; one that was refused has none."""
    return count_words_of_all(["" if isinstance(text, Refusal) else text for text in texts])
