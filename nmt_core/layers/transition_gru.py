"""Gated units that reset behind their product, with several transitions a step, as Nematus and Marian have them.

One transition is h' = u h + (1 - u) tanh(x + r (N(U h + b)) + d), with r and u = sigmoid(x + N(U h + b) + d): the reset
gate r scales what comes of the state, and u weights the *old* state (Nematus, ``theano`` branch, ``layers.py``:
``gru_layer`` and ``gru_cond_layer``; Marian, ``rnn/cells.h`` and ``GRUFastForward``). Only the first transition of a
step reads an input x (Miceli Barone et al. 2017, "deep transition"). N is the normalisation.

Normalisations (Ba et al. 2016): ``none``; ``parts``, Nematus': s LN(product + b) + t, the candidate and both gates
each by itself; ``whole``, Marian's own: s LN(product) + b, all three parts together.

Shapes: N rows, H hidden units; an input has 3H numbers: candidate, update gate, reset gate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.layers.attention import AdditiveAttention
from nmt_core.layers.cells import Cell, GateInputs, Recurrence, between
from nmt_core.layers.init import Initialiser, Layer
from nmt_core.layers.products import Linear, Product, shared_matrix
from nmt_core.layers.reader import Encoded

Normalisation = Literal["none", "parts", "whole"]
Bias = Literal["none", "reset", "free"]
"""The bias of a transition: none (its input has one), b, which the reset gate scales too, or d, which it does not."""
_WHOLE_EPSILON = 1e-9


class PartsNorm(Layer):
    """Layer normalisation (Ba et al. 2016) of parts of so many numbers that stand side by side, each by itself."""

    def __init__(self, *sizes: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.sizes, self.epsilon = sizes, epsilon
        self.gain = nn.Parameter(torch.empty(sum(sizes)))
        self.shift = nn.Parameter(torch.empty(sum(sizes)))

    def initialise(self, initialiser: Initialiser) -> None:
        """Gains of 1, shifts of 0."""
        initialiser.constant(self.gain, 1.0)
        initialiser.constant(self.shift, 0.0)

    def forward(self, product: Tensor) -> Tensor:
        """(..., sum of the sizes) -> the same shape."""
        parts = [F.layer_norm(part, part.shape[-1:], eps=self.epsilon) for part in product.split(self.sizes, dim=-1)]
        return torch.cat(parts, dim=-1) * self.gain + self.shift


class Finish(Layer):
    """What follows a product of parts of these sizes: its bias, and its normalisation."""

    def __init__(self, *sizes: int, bias: bool, normalisation: Normalisation) -> None:
        super().__init__()
        # with "whole" the bias stands behind the normalisation, which is where its shift is
        self.bias = nn.Parameter(torch.empty(sum(sizes))) if bias and normalisation != "whole" else None
        self.norm = _norm(normalisation, sizes)

    def initialise(self, initialiser: Initialiser) -> None:
        """0."""
        if self.bias is not None:
            initialiser.constant(self.bias, 0.0)

    def forward(self, product: Tensor) -> Tensor:
        """(..., sum of the sizes) -> the same shape."""
        if self.bias is not None:
            product = product + self.bias
        return product if self.norm is None else self.norm(product)


def _norm(normalisation: Normalisation, sizes: Sequence[int]) -> PartsNorm | None:
    match normalisation:
        case "none":
            return None
        case "parts":
            return PartsNorm(*sizes)
        case "whole":
            return PartsNorm(sum(sizes), epsilon=_WHOLE_EPSILON)


class FinishedProduct(Linear):
    """A product with an input, and its ``Finish``."""

    def __init__(self, size: int, *parts: int, bias: bool, normalisation: Normalisation) -> None:
        super().__init__(size, sum(parts), biases=0)
        self.after = Finish(*parts, bias=bias, normalisation=normalisation)

    def finish(self, product: Tensor) -> Tensor:
        """From the product with ``weight``."""
        finished: Tensor = self.after(product)
        return finished


class FinishedGateInputs(FinishedProduct, GateInputs):
    """What an input adds to the gates, normalised."""


class Transition(Layer):
    """One transition."""

    def __init__(self, hidden: int, *, bias: Bias, normalisation: Normalisation) -> None:
        super().__init__()
        self.recurrent = nn.Parameter(torch.empty(3 * hidden, hidden))
        self.after = Finish(hidden, 2 * hidden, bias=bias == "reset", normalisation=normalisation)
        self.free = nn.Parameter(torch.empty(3 * hidden)) if bias == "free" else None

    def initialise(self, initialiser: Initialiser) -> None:
        """Orthogonal; the bias 0."""
        initialiser.recurrent(self.recurrent)
        if self.free is not None:
            initialiser.constant(self.free, 0.0)

    def stepper(self) -> Callable[[Tensor, Tensor | None], Tensor]:
        """(state (N, H), what its input adds (N, 3H) or None) -> (N, H), for one loop."""
        product, hidden = shared_matrix(self.recurrent), self.recurrent.shape[1]

        def step(state_NH: Tensor, inputs_N3H: Tensor | None) -> Tensor:
            recurrent_NH, gates_N2H = self.after(product(state_NH)).split((hidden, 2 * hidden), dim=1)
            added_N3H = inputs_N3H if self.free is None else self.free.expand(len(state_NH), -1)
            if added_N3H is None:
                update_NH, reset_NH = torch.sigmoid(gates_N2H).chunk(2, dim=1)
                return between(torch.tanh(reset_NH * recurrent_NH), state_NH, update_NH)
            input_NH, input_gates_N2H = added_N3H.split((hidden, 2 * hidden), dim=1)
            update_NH, reset_NH = torch.sigmoid(gates_N2H + input_gates_N2H).chunk(2, dim=1)
            return between(torch.tanh(input_NH + reset_NH * recurrent_NH), state_NH, update_NH)

        return step


class TransitionGRU(Cell):
    """Several transitions a step, one for each of ``biases``; the first reads the input and the context."""

    biased_parts = 3

    def __init__(self, hidden: int, biases: Sequence[Bias], normalisation: Normalisation) -> None:
        super().__init__(hidden)
        self.normalisation = normalisation
        self.transitions = nn.ModuleList(Transition(hidden, bias=bias, normalisation=normalisation) for bias in biases)

    def inputs(self, size: int, *, bias: bool = True) -> GateInputs:
        """The product with inputs of ``size``, with its bias for all gates, and its normalisation."""
        return FinishedGateInputs(size, self.hidden, 2 * self.hidden, bias=bias, normalisation=self.normalisation)

    def recurrence(self) -> Recurrence:
        """The cell for the steps of one loop."""
        first, *further = [one.stepper() for one in self.transitions if isinstance(one, Transition)]

        def step(word_N3H: Tensor, state_NH: Tensor, context_N3H: Tensor | None) -> Tensor:
            state_NH = first(state_NH, word_N3H if context_N3H is None else word_N3H + context_N3H)
            for transition in further:
                state_NH = transition(state_NH, None)
            return state_NH

        return step


class FinishedAttention(AdditiveAttention):
    """e_ij = v . tanh(N(W s) + N(U h_j + b)); the bias of the energies that Nematus stores changes no weight."""

    def __init__(self, hidden: int, annotation: int, alignment: int, normalisation: Normalisation) -> None:
        super().__init__(hidden, annotation, alignment)
        self.after_query = Finish(alignment, bias=False, normalisation=normalisation)
        self.after_key = Finish(alignment, bias=True, normalisation=normalisation)

    def queries(self) -> Product:
        """N(W s)."""
        product = super().queries()
        return lambda states: self.after_query(product(states))

    def keys(self, encoded: Encoded) -> Tensor:
        """N(U h + b)."""
        keys: Tensor = self.after_key(super().keys(encoded))
        return keys
