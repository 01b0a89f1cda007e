"""Made-up models and texts, of the papers' sizes on a GPU and small on a CPU."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import Batch
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import AnyConfig, build_model
from nmt_core.models.presets import preset
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

WORDS = {"cuda": 30_000, "cpu": 200}
_SMALL = {"embedding": 8, "hidden": 12, "maxout": 6, "alignment": 7, "output_rank": 5, "init_range": 0.3}
_SPELLED = {"source_characters": "w0123456789", "target_characters": "w0123456789"}


def settings(name: str, device: str, **changes: object) -> AnyConfig:
    """A preset; small where there is no GPU."""
    config = preset(name)
    known = config.to_mapping()
    sizes = {**_SMALL, "hidden": (12, 8)} if name == "cslm-cho2014" else _SMALL
    wanted = {**(sizes if device == "cpu" else {}), **_SPELLED, **changes}
    return type(config).model_validate({**known, **{key: value for key, value in wanted.items() if key in known}})


def made_up_model(
    name: str, device: str, dtype: torch.dtype, *, words: int | None = None, **changes: object
) -> LoadedModel:
    """A model with weights at random on a device, which likes some words better than others."""
    config = settings(name, device, **changes)
    vocabulary = Vocabulary([*SPECIAL_WORDS, *(f"w{number}" for number in range((words or WORDS[device]) - 2))])
    model = build_model(config, len(vocabulary), len(vocabulary)).to(device).eval().requires_grad_(False)
    torch.manual_seed(1)
    for parameter in model.parameters():
        parameter.normal_(std=parameter.shape[-1] ** -0.5)
    model.to(dtype)
    return LoadedModel(model, vocabulary, vocabulary, FolderConfig(model=config), "0" * 12, name)


class Text:
    """Sentences of made-up words, frequent ones as often as in a language (Zipf's law)."""

    def __init__(self, words: int, seed: int = 1) -> None:
        self.words, self.random = words - len(SPECIAL_WORDS), random.Random(seed)

    def sentence(self, length: int) -> list[str]:
        """So many words."""
        return [f"w{int(self.words ** self.random.random()) - 1}" for _ in range(length)]

    def table(self, pairs: int) -> list[SentencePair]:
        """A phrase table: phrases of one to five words, each with eight translations that begin alike."""
        found: list[SentencePair] = []
        while len(found) < pairs:
            source, stem = (self.sentence(self.random.randint(1, 5)) for _ in range(2))
            for _ in range(8):
                target = [*stem[: self.random.randint(0, len(stem))], *self.sentence(self.random.randint(1, 2))]
                found.append(SentencePair(" ".join(source), " ".join(target)))
        return found[:pairs]

    def lists(self, pairs: int) -> list[SentencePair]:
        """Lists of 100 hypotheses of about 13 words, which differ in one to three places."""
        found: list[SentencePair] = []
        while len(found) < pairs:
            source, best = (self.sentence(self.random.randint(8, 18)) for _ in range(2))
            for _ in range(100):
                target = list(best)
                for place in self.random.sample(range(len(best)), self.random.randint(1, 3)):
                    target[place : place + 1] = self.sentence(1)
                found.append(SentencePair(" ".join(source), " ".join(target)))
        return found[:pairs]

    def parallel(self, pairs: int) -> list[SentencePair]:
        """Sentences of about 13 words and their translations."""
        lengths = [self.random.randint(8, 18) for _ in range(pairs)]
        return [
            SentencePair(" ".join(self.sentence(length)), " ".join(self.sentence(length + 1))) for length in lengths
        ]


def batch_of(one: LoadedModel, pairs: Sequence[SentencePair]) -> Batch:
    """Sentence pairs as the model reads them, on its device."""
    model = one.model
    sources = [Sentence(one.source.encode(pair.source), pair.source) for pair in pairs]
    targets = [Sentence(one.target.encode(pair.target), pair.target) for pair in pairs]
    return Batch(model.collate(sources), model.collate_targets(targets)).to(model.device)
