"""Maps of vectors in two dimensions, and what is near to what before they are made flat.

Cho et al. 2014, section 4.4, draw the embeddings of words (Figure 4) and the vectors c of phrases (Figure 5) by
Barnes-Hut-SNE (van der Maaten 2013); perplexity and angle are his values. Vectors are centred and brought to 50
numbers by principal components first. A map proves nothing, so the shares of neighbours are counted in all numbers.

Shapes: N points, D numbers of a vector, K neighbours, P pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.errors import ConfigError
from nmt_core.inference.embed import Vectors

Floats = npt.NDArray[np.float64]
PERPLEXITY = 30.0
_COMPONENTS = 50
_ANGLE = 0.5
_NEAREST = 10
_BLOCK = 1 << 24  # cosines worked out at a time
_FEWEST = 5
_SAME = 1e-6  # of the largest number: what rounding may tell apart


class Map(NamedTuple):
    """Points with their texts; ``places_N2`` are between 0 and 1, wider than high or not, in one scale."""

    texts: Sequence[str]
    places_N2: Floats


class Shares(NamedTuple):
    """Of the nearest neighbours of all points: the shares with the same last word, first word, number of words."""

    last_word: float
    first_word: float
    length: float


def library() -> str:
    """Name and version of what makes maps; raises ModuleNotFoundError where it is not installed."""
    import sklearn

    return f"scikit-learn {sklearn.__version__}"


def check_points(points: int, perplexity: float | None, what: str) -> float:
    """The perplexity for so many points. Raises ConfigError where they are too few, or a given one too large."""
    largest = (points - 1) / 3.0
    if points < _FEWEST:
        raise ConfigError(f"a map of {what} needs at least {_FEWEST} of them; there are {points}")
    if perplexity is not None and not 1.0 <= perplexity <= largest:
        problem = f"must be between 1 and {largest:.4g}, a third of the {points:,} {what}"
        raise ConfigError(f"--perplexity {perplexity:g} {problem}")
    return min(PERPLEXITY, largest) if perplexity is None else perplexity


def project(texts: Sequence[str], vectors_ND: Vectors, *, perplexity: float, seed: int) -> Map:
    """The map; the same numbers for the same seed, version of the library, and machine.

    Raises ConfigError for vectors that are all the same, of which t-SNE makes no map.
    """
    components_NC = principal_components(vectors_ND)
    if np.abs(components_NC).max() <= _SAME * np.abs(vectors_ND).max():
        problem = f"the vectors of all {len(texts):,} are the same, such as that of {texts[0]!r:.60}"
        raise ConfigError(f"{problem}; a map needs a model that knows their words")
    from sklearn.manifold import TSNE

    plane_NC = np.pad(components_NC, ((0, 0), (0, max(0, 2 - components_NC.shape[1]))))  # of vectors of one number
    method = TSNE(method="barnes_hut", angle=_ANGLE, perplexity=perplexity, init="pca", random_state=seed, n_jobs=1)
    places_N2 = np.asarray(method.fit_transform(plane_NC), dtype=np.float64)
    low_2 = places_N2.min(axis=0)
    span = float((places_N2.max(axis=0) - low_2).max()) or 1.0
    return Map(texts, (places_N2 - low_2) / span)


def principal_components(vectors_ND: Vectors) -> Vectors:
    """The centred vectors in their first 50 principal components, or as many as there are."""
    centred_ND = vectors_ND.astype(np.float64) - vectors_ND.mean(axis=0, dtype=np.float64)
    _, directions_DD = np.linalg.eigh(centred_ND.T @ centred_ND)
    kept_DC = directions_DD[:, ::-1][:, :_COMPONENTS]
    largest_C = np.abs(kept_DC).argmax(axis=0)
    kept_DC = kept_DC * np.sign(kept_DC[largest_C, np.arange(kept_DC.shape[1])])  # a direction has no sign of its own
    components: Vectors = (centred_ND @ kept_DC).astype(np.float32)
    return components


def zoom(found: Map, text: str, *, points: int) -> Map:
    """The part of a map around a point: those nearest to it there, itself the first."""
    place_2 = found.places_N2[list(found.texts).index(text)]
    order = np.argsort(((found.places_N2 - place_2) ** 2).sum(axis=1), kind="stable")[:points]
    places_N2 = found.places_N2[order]
    low_2 = places_N2.min(axis=0)
    span = float((places_N2.max(axis=0) - low_2).max()) or 1.0
    return Map([found.texts[place] for place in order.tolist()], (places_N2 - low_2) / span)


def nearest(queries_QD: Vectors, vectors_MD: Vectors, *, neighbours: int) -> npt.NDArray[np.int64]:
    """The places of the vectors with the largest cosines, (Q, K); of equals the first.

    The mean of all M is taken off both, since states of a network have a large part in common.
    """
    mean_D = vectors_MD.mean(axis=0, dtype=np.float64).astype(np.float32)
    unit_MD, unit_QD = _units(vectors_MD - mean_D), _units(queries_QD - mean_D)
    rows = max(1, _BLOCK // len(unit_MD))
    parts = (unit_QD[first : first + rows] @ unit_MD.T for first in range(0, len(unit_QD), rows))
    return np.concatenate([np.argsort(-part_QM, axis=1, kind="stable")[:, :neighbours] for part_QM in parts])


def _units(vectors: Vectors) -> Vectors:
    """Of length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Vectors = (vectors / np.where(lengths == 0.0, 1.0, lengths)).astype(np.float32)
    return units


def shares_of_neighbours(texts: Sequence[str], vectors_ND: Vectors) -> Shares:
    """What the 10 nearest of each point (by cosine, the mean taken off) have in common with it, itself left out."""
    count = min(_NEAREST + 1, len(texts))
    near_NK = nearest(vectors_ND, vectors_ND, neighbours=count)
    others_NK = [[place for place in row if place != own][: count - 1] for own, row in enumerate(near_NK.tolist())]
    words = [text.split(" ") for text in texts]

    def share(of: Callable[[list[str]], object]) -> float:
        same = [of(words[place]) == of(words[own]) for own, row in enumerate(others_NK) for place in row]
        return sum(same) / max(len(same), 1)

    return Shares(share(lambda one: one[-1]), share(lambda one: one[0]), share(len))


def share_told_apart(first_PD: Vectors, second_PD: Vectors, others_ND: Vectors) -> float:
    """Of pairs of phrases of the same words in another order: how many are not among each other's 10 nearest.

    The second phrase of a pair is looked for among those of all pairs and ``others_ND``, from the first one.
    """
    searched = np.concatenate([second_PD, others_ND])
    near_PK = nearest(first_PD, searched, neighbours=min(_NEAREST, len(searched)))
    found = (near_PK == np.arange(len(first_PD))[:, None]).any(axis=1)
    return float(1.0 - found.mean())


def bags_of_words(texts: Sequence[str], vector_of: Callable[[str], Vectors]) -> Vectors:
    """The sums of the vectors of the words of each text, (N, D): what knows no order."""
    words = {word: vector_of(word) for text in texts for word in text.split(" ")}
    return np.stack([np.sum([words[word] for word in text.split(" ")], axis=0, dtype=np.float32) for text in texts])
