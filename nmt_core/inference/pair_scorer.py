"""log p(target | source) for many pairs, with one model or an ensemble.

Equal pairs are scored once; the others are sorted by length, so that little is padded, and scored in
batches. What goes into a batch depends on the pairs given alone, so the same call gives the same
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt_core.data.batching import Batch, group_by_tokens, pad
from nmt_core.errors import ConfigError
from nmt_core.interfaces import PairScore, SentencePair
from nmt_core.models.checkpoint import LoadedModel, load_model
from nmt_core.text.vocabulary import UNKNOWN_ID
from nmt_core.version import VERSION

BATCH_TOKENS = 4000  # padded words of the longer side


class ModelPairScorer:
    """A ``PairScorer`` made of loaded models; several are an ensemble.

    An ensemble's log-probability is the mean of its members' for every word (Jean et al. 2015b,
    section 3.2), as in the beam search. Members share the target vocabulary; sources may differ.
    """

    def __init__(self, models: Sequence[LoadedModel], *, batch_tokens: int = BATCH_TOKENS) -> None:
        if not models:
            raise ConfigError("no model was given")
        for other in models[1:]:
            if other.target.words != models[0].target.words:
                raise ConfigError(f"{models[0].folder} and {other.folder} have different target vocabularies")
        self.models = tuple(models)
        self.batch_tokens = batch_tokens

    @property
    def signature(self) -> str:
        """Architecture and fingerprint of every model, precision, and version."""
        names = "+".join(loaded.config.model.type for loaded in self.models)
        prints = "+".join(loaded.fingerprint for loaded in self.models)
        precision = str(next(self.models[0].model.parameters()).dtype).removeprefix("torch.")
        return f"nmt:{names}|model:{prints}|log:e|norm:none|dtype:{precision}|version:{VERSION}"

    @torch.inference_mode()
    def score(self, pairs: Sequence[SentencePair], *, per_word: bool = False) -> list[PairScore]:
        """Score every pair; one answer per pair, in order."""
        distinct = list(dict.fromkeys(pairs))
        targets = [self.models[0].target.encode(pair.target) for pair in distinct]
        sources = [[loaded.source.encode(pair.source) for pair in distinct] for loaded in self.models]
        order = sorted(range(len(distinct)), key=lambda index: (len(targets[index]), len(sources[0][index]), index))
        answers: dict[SentencePair, PairScore] = {}
        lengths = [max(len(targets[index]), len(sources[0][index])) + 1 for index in order]
        for group in group_by_tokens(lengths, limit=self.batch_tokens):
            indices = [order[place] for place in group]
            word_log_probs_BT = self._word_log_probs(
                [[side[index] for index in indices] for side in sources], [targets[index] for index in indices]
            )
            totals = word_log_probs_BT.sum(dim=1).tolist()
            rows = word_log_probs_BT.tolist() if per_word else []
            for place, index in enumerate(indices):
                words = tuple(rows[place][: len(targets[index]) + 1]) if per_word else None
                unknown = (sources[0][index].count(UNKNOWN_ID), targets[index].count(UNKNOWN_ID))
                answers[distinct[index]] = PairScore(totals[place], *unknown, words)
        return [answers[pair] for pair in pairs]

    def _word_log_probs(self, sources: Sequence[list[list[int]]], targets: list[list[int]]) -> Tensor:
        """The mean over the models of log p of every word, (B, T) in float64, 0 at padding."""
        target = pad(targets)
        total = torch.zeros(target.words_BL.shape, dtype=torch.float64)
        for loaded, source in zip(self.models, sources, strict=True):
            log_probs_BT: Tensor = loaded.model(Batch(pad(source), target).to(loaded.model.device))
            total += log_probs_BT.double().cpu()
        return total / len(self.models)


def open_pair_scorer(
    folders: Sequence[str], *, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32
) -> ModelPairScorer:
    """Load the models of ``folders`` and make their scorer. Raises ModelError or ConfigError."""
    return ModelPairScorer([load_model(folder, device=device, dtype=dtype) for folder in folders])
