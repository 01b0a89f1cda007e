"""How long a batch takes: a part that every batch takes, and a part for each token, as the last batches had them."""

from __future__ import annotations

_NEW = 0.2  # the weight of the newest batch among the last ones
_VARIED = 0.1  # standard deviation over mean of the sizes: with less, they do not tell the two parts apart
_UNKNOWN = 20  # times the seconds by the given rate that a first batch may take
_MOST_START = 0.75  # of a batch's time: so that one wrong estimate does not make the next batch very large


class BatchSpeed:
    """A line through the sizes and times of batches, by least squares with weights that fall exponentially.

    The time of a batch is ``start + each * tokens``: a search or a scorer takes as many steps for one sentence as for
    twenty, and a step has costs that do not depend on its rows. ``rate`` (tokens a second) is believed until the first
    batch is done.
    """

    def __init__(self, rate: float) -> None:
        self._start, self._each = 0.0, 1 / rate
        self._tokens = self._seconds = 0.0  # means
        self._variance = self._covariance = 0.0  # of tokens; of tokens and seconds

    def note(self, tokens: int, seconds: float) -> None:
        """A batch of so many tokens took so long."""
        seconds = max(seconds, 1e-4)
        new = _NEW if self._tokens else 1.0
        more_tokens, more_seconds = tokens - self._tokens, seconds - self._seconds
        self._tokens += new * more_tokens
        self._seconds += new * more_seconds
        self._variance = (1 - new) * (self._variance + new * more_tokens**2)
        self._covariance = (1 - new) * (self._covariance + new * more_tokens * more_seconds)
        if self._variance > (_VARIED * self._tokens) ** 2:
            self._start = self._seconds - self._covariance / self._variance * self._tokens
        self._start = min(max(self._start, 0.0), _MOST_START * self._seconds)
        self._each = (self._seconds - self._start) / self._tokens

    def tokens_in(self, seconds: float) -> int:
        """Of a batch that takes so long, or twice as long as the start, which no batch can do without."""
        return int(max(seconds - self._start, self._start) / self._each)

    def seconds_for(self, tokens: int) -> float:
        """How long a batch takes; of the first one, whose speed was not measured, how long it may take."""
        return self._start + self._each * tokens * (1 if self._tokens else _UNKNOWN)
