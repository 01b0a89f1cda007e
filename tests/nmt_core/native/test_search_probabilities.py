"""In a search no word is likelier than 1 however large scores are, of one model, of ensembles and with fusion."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
from torch import Tensor

from nmt_core.batches.layout import Layout
from nmt_core.inference.search.predictor import Ensemble, ModelPredictor, Prediction, Predictor
from nmt_core.models.interface import TranslationModel
from tests.nmt_core.native.test_probabilities import AT_MOST, ROWS, SUM, device, with_logits_of

__all__ = ["device"]


class Member:
    """A predictor whose readouts are given."""

    aligns = None

    def __init__(self, largest: float, dtype: torch.dtype, where: torch.device | None) -> None:
        output, readout_NL = with_logits_of(largest, dtype)
        readout_NL = readout_NL[:1] * torch.linspace(0.5, 1.0, ROWS, dtype=dtype).unsqueeze(1)  # one word is likely
        self.generator, self.readout_NL = output.to(where or "cpu"), readout_NL.to(where or "cpu")
        self.attends, self.device = False, self.readout_NL.device
        self._predictor = ModelPredictor(cast(TranslationModel, self))

    def advance(self, previous_N: Tensor, state: Any, memory: Any, layout: Layout | None = None) -> Prediction:
        return Prediction(*self._predictor._scores(self.readout_NL), state, None)


def step_of(predictor: Predictor, members: int) -> Prediction:
    class Members:
        members = (None,) * 3

    state: Any = Members()
    state.members = (None,) * members
    return predictor.advance(torch.zeros(1), state, state)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("largest", [17.0, 39.0, 50.0, 100.0])
@pytest.mark.parametrize("form", ["one", "mean"])
def test_words(device: torch.device | None, dtype: torch.dtype, largest: float, form: str) -> None:
    one, other, third = (cast(Predictor, Member(size, dtype, device)) for size in (largest, 0.77 * largest, largest))
    forms = {
        "one": (one, 1),
        "mean": (Ensemble([one, other, third]), 3),
    }
    log_probs_NV = step_of(*forms[form]).log_probs_NV.cpu().double()
    assert float(log_probs_NV.max()) <= AT_MOST
    assert form != "one" or float((log_probs_NV.logsumexp(dim=1)).abs().max()) <= SUM * max(1.0, largest)
