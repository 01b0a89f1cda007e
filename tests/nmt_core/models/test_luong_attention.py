"""The predicted position of ``local-p``."""

from __future__ import annotations

import pytest
import torch

from nmt_core.models.luong_attention import PredictiveWindow

HIDDEN, STATES, WORDS = 64, 50, 900


@pytest.mark.parametrize("grad", [False, True])
def test_under_autocast_the_position_is_not_rounded(grad: bool) -> None:
    """Bfloat16 has steps of four words in a sentence of 900."""
    torch.manual_seed(1)
    window = PredictiveWindow(HIDDEN, radius=10)
    torch.nn.init.normal_(window.position.weight)
    torch.nn.init.normal_(window.energy)
    hidden, words = torch.randn(STATES, HIDDEN), torch.full((STATES,), WORDS)
    with torch.set_grad_enabled(grad):
        with torch.autocast("cpu", torch.bfloat16):
            state = torch.tanh(window.position(hidden))
            found = window.focusing()(hidden, words, None).point_N
        expected = WORDS * torch.sigmoid(state.float() @ window.energy)
    assert found is not None
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-3)
