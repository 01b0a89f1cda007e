"""The layers the models are made of.

Names of tensors end in the letters of their dimensions, in order: ``states_NH`` is (N, H); ``2H`` is two of H side by
side, ``1`` a dimension of size 1. This is the legend for models, layers, training and search. A module whose letters
mean something else, or that has others, says so in its docstring.

    A   sentences in a search; in attention the size of a key
    B   sentences of a batch
    C   some words, or candidates; as the last of several letters behind B, S or N the size of an annotation or context
    D   numbers of a vector, such as what the output matrix is multiplied with
    E   numbers of a word vector
    G   gates side by side, 3H or 4H; in a search blocks of words
    H   hidden units
    K   hypotheses of a sentence, or the places of its beam; of an n-gram model the words of its context
    L   padded positions of either side (as in BL); behind N, T or V the units of the readout
    M   chosen or distinct ones of something: pairs of a row and a word, words, states
    N   rows: hypotheses, or anything else that goes through a layer side by side
    P   positions of all sentences (B * S), sequences of a prefix tree, places that have scores
    R   some of the rows, such as a run of them
    S   source positions, ``</s>`` among them
    T   target positions, ``</s>`` among them; steps
    U   a state: H, or 2H with the memory cells of an LSTM; also that of all layers side by side
    V   words of a vocabulary
"""
