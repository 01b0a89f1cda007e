"""Annotation of unknown words, and words again of it, against what the thesis says of it, written once more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import ConfigError
from nmt_core.text.copying import Copying, CopyScheme, weight_of, with_tokens
from nmt_core.text.lexicon import Candidate, Lexicon
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

KNOWN = ["the", "a", "in", "de", "gate"]
RARE = [f"R{number}" for number in range(6)]


def copying(scheme: str, *, source: list[str] = KNOWN, target: list[str] = KNOWN, lexicon=None) -> Copying:
    kind = CopyScheme(scheme)
    sides = (with_tokens(Vocabulary([*SPECIAL_WORDS, *words]), ()) for words in (source, target))
    found = Copying(
        kind, *(with_tokens(v, t) for v, t in zip(sides, (kind.source_tokens, kind.target_tokens), strict=True))
    )
    found.check()
    if lexicon is None:
        return found
    entries = {word: tuple(Candidate(*one) for one in ones.items()) for word, ones in lexicon.items()}
    return Copying(kind, found.source, found.target, weight_of(Lexicon(entries)))


def text_of(scheme: Copying, words: list[str], source: list[str]) -> list[str]:
    return [piece.word if piece.source is None else source[piece.source] for piece in scheme.restored(words, source)]


# --- Luong's thesis, section 3.1: one sentence in three schemes (figures 3.3 to 3.5), signs as its samples have them

SOURCE = ["the", "TOLL", "gate", "in", "PONT"]
TARGET = ["the", "GATTER", "TOLLE", "de", "PONTE"]
POINTS = [(0, 0), (1, 2), (2, 1), (4, 4)]


@pytest.mark.parametrize(
    ("scheme", "source", "target"),
    [
        ("copyable", "the <unk_1> gate in <unk_2>", "the <unk_n> <unk_1> de <unk_2>"),
        (
            "posall",
            "the <unk> gate in <unk>",
            "the <p_0> <unk> <p_-1> <unk> <p_1> de <p_n> <unk> <p_0>",
        ),
        ("posunk", "the <unk> gate in <unk>", "the <unkpos_-1> <unkpos_1> de <unkpos_0>"),
    ],
)
def test_the_schemes_of_the_thesis(scheme: str, source: str, target: str) -> None:
    kind = copying(scheme)
    assert " ".join(kind.read_source(SOURCE)) == source
    assert " ".join(kind.read_target(SOURCE, TARGET, POINTS)) == target
    expected = "the TOLL de PONT" if scheme == "copyable" else "the gate TOLL de PONT"
    assert " ".join(text_of(kind, target.split(), SOURCE)) == expected


@pytest.mark.parametrize(
    ("place", "distance", "source"),
    # the pointers of the sample translations (table 3.3): target place, d, and the source word they were restored from
    [
        *[(3, 1, 2), (10, 5, 5), (13, 6, 7), (1, 0, 1), (4, 0, 4)],
        *[(8, 1, 7), (35, 5, 30), (9, 3, 6), (14, 3, 11), (15, 3, 12)],
    ],
)
def test_the_pointers_of_its_samples(place: int, distance: int, source: int) -> None:
    words = ["the"] * place + [f"<unkpos_{distance}>"]
    assert copying("posunk").restored(words, ["w"] * 40)[-1].source == source
    pairs = [token for word in ["the"] * place + ["<unk>"] for token in (word, f"<p_{distance}>")]
    assert copying("posall").restored(pairs, ["w"] * 40)[-1].source == source
    links = copying("posunk").read_target(["w"] * 40, ["the"] * place + ["X"], [(source, place)])
    assert links == words


# --- properties

sentences = st.lists(st.sampled_from([*KNOWN, *RARE, "<unk>"]), max_size=12)
schemes = st.sampled_from(list(CopyScheme))


@given(schemes, sentences, sentences, st.data())
def test_annotation_is_what_the_definition_says(scheme, source, target, data) -> None:
    """Plain loops over the table of the thesis, with at most one link a word."""
    links = {
        place: data.draw(st.none() | st.integers(0, len(source) - 1)) if source else None
        for place in range(len(target))
    }
    points = [(one, place) for place, one in links.items() if one is not None]
    rare = [word for word in dict.fromkeys(source) if word in RARE]
    expected = []
    for place, word in enumerate(target):
        link = links[place]
        near = link is not None and -7 <= place - link <= 7
        position = str(place - link) if near else "n"
        if scheme is CopyScheme.POSALL:
            expected += [word if word in KNOWN else "<unk>", f"<p_{position}>"]
        elif word in KNOWN or word == "<unk>":
            expected.append(word)
        elif scheme is CopyScheme.POSUNK:
            expected.append(f"<unkpos_{position}>")
        else:
            aligned = None if link is None else source[link]
            expected.append(f"<unk_{rare.index(aligned) + 1}>" if aligned in RARE else "<unk_n>")
    kind = copying(scheme)
    assert kind.read_target(source, target, points) == expected
    numbered = [f"<unk_{rare.index(word) + 1}>" if word in RARE else word for word in source]
    plain = ["<unk>" if word in RARE else word for word in source]
    assert kind.read_source(source) == (numbered if scheme is CopyScheme.COPYABLE else plain)


@given(schemes, st.lists(st.sampled_from([*KNOWN, *RARE]), max_size=12), st.data())
def test_a_text_of_equal_unknown_words_is_restored(scheme, source, data) -> None:
    if not source:
        return
    places = data.draw(st.lists(st.integers(0, len(source) - 1), max_size=12))
    points, target = [], []
    for place, found in enumerate(places):
        near = abs(place - found) <= 7 or scheme is CopyScheme.COPYABLE
        target.append(source[found] if near else "the")
        points.append((found, place))
    kind = copying(scheme)
    annotated = kind.read_target(source, target, points)
    assert text_of(kind, annotated, source) == target
    if scheme is not CopyScheme.POSALL:  # a guess without links finds an equal word too, if it is near
        near = all(
            any(source[i] == word for i in range(max(0, n - 7), min(len(source), n + 8)))
            for n, word in enumerate(target)
            if word in RARE
        )
        if near or scheme is CopyScheme.COPYABLE:
            assert text_of(kind, kind.read_target(source, target), source) == target


@given(schemes, sentences, sentences)
def test_annotated_text_is_annotated_to_itself(scheme, source, target) -> None:
    kind = copying(scheme)
    read, written = kind.read_source(source), kind.read_target(source, target, [])
    assert kind.read_source(read) == read
    assert kind.read_target(read, written) == written


@given(
    schemes,
    sentences,
    st.lists(st.sampled_from([*KNOWN, "<unk>", *CopyScheme.POSALL.target_tokens, "<unkpos_3>", "<unk_2>"])),
)
def test_whatever_a_model_writes_is_words_of_the_text(scheme, source, written) -> None:
    kind = copying(scheme)
    pieces = kind.restored(written, source)
    assert [piece.place for piece in pieces] == sorted({piece.place for piece in pieces})
    assert all(piece.source is None or 0 <= piece.source < len(source) for piece in pieces)
    assert not {piece.word for piece in pieces} & {"<unk>", *scheme.target_tokens}


# --- the cases of the table


def test_pointers_beyond_the_sentence_are_left_out_and_no_other_moves() -> None:
    source = ["A", "B", "C"]
    words = ["<unkpos_3>", "the", "<unkpos_n>", "<unkpos_-7>", "<unkpos_2>"]
    assert text_of(copying("posunk"), words, source) == ["the", "C"]
    pairs = [token for word in words for token in (("<unk>" if "unk" in word else word), "<p_0>")]
    pairs[1], pairs[5], pairs[7], pairs[9] = "<p_3>", "<p_n>", "<p_-7>", "<p_2>"
    assert text_of(copying("posall"), pairs, source) == ["the", "C"]
    assert text_of(copying("copyable"), ["<unk_4>", "the", "<unk_n>", "<unk_3>"], source) == ["the", "C"]


def test_types_beyond_the_last_number_are_unknown() -> None:
    kind, source = copying("copyable"), [f"X{number}" for number in range(1, 23)]
    assert kind.read_source(source)[-3:] == ["<unk_20>", "<unk>", "<unk>"]
    assert kind.read_target(source, ["A", "B"], [(19, 0), (20, 1)]) == ["<unk_20>", "<unk>"]
    assert text_of(kind, ["<unk_20>", "the", "<unk>"], source) == ["X20", "the", "X21"]


def test_words_that_are_all_before_their_tokens_are_needed_for_some() -> None:
    """A pair without alignment of scheme ``posall``: with tokens it is read as it is, without them not at all."""
    kind = copying("posall")
    assert kind.read_target(["a"], ["the", "<p_0>"]) == ["the", "<p_0>"]
    problem = (
        "copying: posall: a pair without its word alignment cannot be scored; "
        "give 'nmt-core score' the --word-alignment of its text, or use a model of scheme posunk"
    )
    for target in (["the"], ["<p_0>", "the"], ["the", "<p_0>", "the"]):
        with pytest.raises(ConfigError) as raised:
            kind.read_target(["a"], target)
        assert str(raised.value) == problem


def test_of_several_links_that_of_largest_weight_is_taken_and_of_equals_the_first() -> None:
    kind = copying("posunk", lexicon={"B": {"X": 0.2}, "C": {"X": 0.5}})
    assert kind.read_target(["A", "B", "C"], ["X"], [(0, 0), (1, 0), (2, 0)]) == ["<unkpos_-2>"]
    assert copying("posunk").read_target(["A", "B", "C"], ["X"], [(2, 0), (1, 0)]) == ["<unkpos_-1>"]


def test_a_guess_takes_the_lexicon_before_equal_words_within_reach() -> None:
    source = ["X", "B", *["the"] * 8, "C"]
    kind = copying("posunk", lexicon={"B": {"X": 0.2}, "C": {"X": 0.9}})
    assert kind.read_target(source, ["X"]) == ["<unkpos_-1>"]  # C is ten places away
    assert copying("posunk").read_target(source, ["the", "X"]) == ["the", "<unkpos_1>"]
    assert copying("posunk").read_target(source, ["Y"]) == ["<unkpos_n>"]
    assert copying("posunk").read_target(["X", "X", "X"], ["the", "X"]) == ["the", "<unkpos_0>"]  # the nearest
    assert copying("posunk").read_target(["X", "a", "X"], ["the", "X"]) == ["the", "<unkpos_1>"]  # of two the first
    far = [*["the"] * 7, "X", *["the"] * 6]
    assert copying("posunk").read_target(far, ["X", *["the"] * 13, "X"])[::14] == ["<unkpos_-7>", "<unkpos_7>"]
    assert copying("posunk").read_target(["the", *far], ["X"]) == ["<unkpos_n>"]


def test_tokens_stand_behind_the_special_words_with_counts() -> None:
    tokens = CopyScheme.POSUNK.target_tokens
    found = with_tokens(Vocabulary([*SPECIAL_WORDS, "the", tokens[3]], [3, 4, 5, 6]), tokens)
    assert found.words == (*SPECIAL_WORDS, *tokens, "the")
    assert found.counts == (3, 4, *[0] * len(tokens), 5)
    with pytest.raises(ConfigError) as raised:
        Copying(CopyScheme.POSUNK, found, Vocabulary([*SPECIAL_WORDS, "the"])).check()
    expected = "give the vocabularies that 'nmt-core annotate --scheme posunk' wrote"
    assert str(raised.value) == f"copying: posunk: the target vocabulary lacks <unkpos_-7>; {expected}"
    with pytest.raises(ConfigError, match="copying: copyable: the source vocabulary lacks <unk_1>; "):
        Copying(CopyScheme.COPYABLE, found, found).check()
