"""A Transformer of another library as a server uses it.

Nothing can enter, leave or interrupt a search of the library. So it runs beside the device's thread, one sentence after
the other, and requests for other models do not wait for it. By the speed of the last sentences a longer one is rejected
before it begins (``methods.plan``).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from nmt_core.inference.output.finish import Translation
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.transformer import TransformerTranslator, transformer_scorer
from nmt_core.serving.engine.work import BatchSpeed
from nmt_core.serving.models.search import SearchItem
from nmt_core.serving.models.served import Proportions, ServedModel
from nmt_core.transformer.model import open_transformer
from nmt_core.v1 import nmt_pb2 as pb

_LOOK_AGAIN = 0.003  # seconds
_PIECES_OF_A_WORD = 3  # what costs are reckoned with


def open_served_transformer(spec: str, defaults: DecodingConfig, *, device: str, dtype: str) -> ServedModel:
    """Load ``ct2:DIR`` or ``hf:DIR``. Raises ConfigError and ModelError."""
    model = open_transformer(spec, device=device, dtype=dtype, threads=torch.get_num_threads())
    translator = TransformerTranslator(model)
    thread = ThreadPoolExecutor(1, thread_name_prefix="transformer")  # of all its searches; ends with the model
    speed = BatchSpeed()
    return ServedModel(
        scorer=model,
        scorers=functools.partial(transformer_scorer, model),
        decoder=lambda attention: TransformerSearch(translator, thread, speed),
        processor=lambda: model.raw_text,
        defaults=defaults,
        proportions=Proportions(tokens_of_a_word=_PIECES_OF_A_WORD),
        speed=speed,
        description=pb.Model(
            kind=pb.MODEL_KIND_NEURAL,
            version=model.fingerprint,
            source_language=model.text.source_language or "",
            target_language=model.text.target_language or "",
            source_words=model.size(0),
            target_words=model.size(1),
        ),
    )


class TransformerSearch:
    """A ``StepDecoder`` of searches that run as a whole, in a ``thread`` and with a ``speed`` that they share."""

    def __init__(self, translator: TransformerTranslator, thread: ThreadPoolExecutor, speed: BatchSpeed) -> None:
        self._translator, self._thread, self._speed = translator, thread, speed
        self._live: dict[int, tuple[int, Future[list[Translation] | Exception]]] = {}

    @property
    def tokens(self) -> float:
        """Of all sentences that are not answered."""
        return sum(tokens for tokens, _ in self._live.values())

    @property
    def waits(self) -> float:
        """Until a sentence is translated."""
        return 0.0 if any(future.done() for _, future in self._live.values()) else _LOOK_AGAIN

    def admit(self, requests: Sequence[tuple[int, Any]]) -> None:
        """Let sentences in."""
        for key, item in requests:
            tokens = (item.text.count(" ") + 3) * item.config.beam
            self._live[key] = tokens, self._thread.submit(self._translate, item, tokens)

    def step(self) -> list[tuple[int, Any]]:
        """The sentences that are translated; an answer is the list of one, or why it has none."""
        done = [key for key, (_, future) in self._live.items() if future.done()]
        return [(key, self._live.pop(key)[1].result()) for key in done]

    def cancel(self, keys: Sequence[int]) -> None:
        """Drop sentences. The one that is being translated ends by itself."""
        for key in keys:
            if key in self._live:
                self._live.pop(key)[1].cancel()

    def _translate(self, item: SearchItem, tokens: int) -> list[Translation] | Exception:
        begin, worked = time.monotonic(), time.process_time()
        try:
            found = self._translator.translate([item.text], item.config)[0]
        except Exception as error:  # belongs to this sentence: the others go on
            return error
        # a machine with other work, or a process with other threads, makes no sentence longer
        self._speed.note(tokens, min(time.monotonic() - begin, time.process_time() - worked))
        return found
