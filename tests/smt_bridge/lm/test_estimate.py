"""The estimator against lmplz's own file, KenLM's query, and the axioms of probability."""

from __future__ import annotations

import gzip
import io
import itertools
import math
import random
from pathlib import Path

import kenlm
import numpy as np
import pytest

from nmt_core.files import read_lines
from smt_bridge.commands.main import main
from smt_bridge.errors import BridgeError
from smt_bridge.lm import estimate, read_text, write_arpa

Model = dict[bytes, tuple[float, float]]


def parse_arpa(lines) -> Model:
    entries = (line.split(b"\t") for line in lines if b"\t" in line)
    return {entry[1]: (float(entry[0]), float(entry[2]) if len(entry) > 2 else 0.0) for entry in entries}


def build(lines: list[bytes], order: int, fallback=None) -> bytes:
    stream = io.BytesIO()
    text = read_text(line.split() for line in lines)
    write_arpa(stream, text.words, estimate(text, order, fallback=fallback))
    return stream.getvalue()


def random_text(sentences: int = 3000) -> list[bytes]:
    generator = random.Random(5)
    words = [b"w%d" % number for number in range(900)]
    weights = [1 / (number + 1) for number in range(900)]
    return [b" ".join(generator.choices(words, weights, k=generator.randint(1, 9))) for _ in range(sentences)]


def test_every_number_equals_lmplzs(shared: Path) -> None:
    expected = parse_arpa(read_lines(str(shared / "moses" / "en-fr" / "lm.fr.arpa.gz")))
    text = list(read_lines(str(shared / "data" / "multi30k" / "train.tok.fr.gz")))
    found = parse_arpa(build(text, 5).split(b"\n"))
    assert found.keys() == expected.keys()
    assert len(found) == 784_046
    ours, theirs = (np.array([model[ngram] for ngram in expected]) for model in (found, expected))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_a_unigram_model_worked_out_by_hand() -> None:
    # counts: a 4, b 3, c 2, d 1, e 1, </s> 5; t1 = 2, t2 = 1, t3 = 1, t4 = 1: y = 1/2, D = 1/2, 1/2, 1
    content = build([b"a a a", b"a b b", b"b c", b"c d", b"e"], 1)
    found = parse_arpa(content.split(b"\n"))
    uniform = (0.5 * 2 + 0.5 * 1 + 1 * 3) / 16 / 7  # 7 words: those six and <unk>
    for word, numerator in {b"a": 3, b"b": 2, b"c": 1.5, b"d": 0.5, b"e": 0.5, b"</s>": 4, b"<unk>": 0}.items():
        assert 10 ** found[word][0] == pytest.approx(numerator / 16 + uniform, rel=1e-5), word
    assert found[b"<s>"][0] == 0.0
    assert content.startswith(b"\\data\\\nngram 1=8\n\n\\1-grams:\n") and content.endswith(b"\n\n\\end\\\n")
    assert f"\n{math.log10(3 / 16 + uniform):.7g}\ta\n".encode() in content


@pytest.mark.parametrize("order", [2, 3, 5])
def test_probabilities_sum_to_one_in_every_context(tmp_path: Path, order: int) -> None:
    path = tmp_path / "lm.arpa"
    path.write_bytes(build(random_text(), order, fallback=[0.5, 1.0, 1.5]))
    model = kenlm.Model(str(path))
    assert model.order == order
    words = [*sorted({word.decode() for line in random_text() for word in line.split(b" ")}), "</s>", "<unk>"]
    contexts = [[], ["w0"], ["w3", "w1"], ["w0", "w0", "w0"], ["w39", "w38"], ["w1", "w0", "w2", "w0"]]
    for context in contexts:
        state = kenlm.State()
        model.BeginSentenceWrite(state)
        for word in context:
            following = kenlm.State()
            model.BaseScore(state, word, following)
            state = following
        total = sum(10 ** model.BaseScore(state, word, kenlm.State()) for word in words)
        assert total == pytest.approx(1.0, abs=1e-4), context


def test_kenlm_finds_the_probability_of_the_estimator(tmp_path: Path) -> None:
    text = read_text(line.split(b" ") for line in random_text())
    bigrams, words = estimate(text, 3)[1], list(text.words)
    (tmp_path / "lm.arpa").write_bytes(build(random_text(), 3))
    model = kenlm.Model(str(tmp_path / "lm.arpa"))
    begin_w0 = (bigrams.prefix == words.index(b"<s>")) & (bigrams.last == words.index(b"w0"))
    assert model.score("w0", eos=False) == pytest.approx(bigrams.log10_probability[begin_w0].item(), abs=1e-5)


def test_a_long_text_is_numbered_in_blocks() -> None:
    text = read_text([[b"a"] * 600_000, [b"b"] * 600_000, [b"a"]])
    assert list(text.words) == [b"<unk>", b"<s>", b"</s>", b"a", b"b"]
    assert np.bincount(text.ids).tolist() == [0, 3, 3, 600_001, 600_000]


def test_a_text_too_small_says_what_to_do() -> None:
    problem = "the text is too small or too regular to estimate the discounts of 1-grams"
    remedy = "give more text, a lower --order, or --discount-fallback"
    with pytest.raises(BridgeError, match=f"^{problem}; {remedy}$"):
        build([b"a b"], 2)
    found = parse_arpa(build([b"a b"], 2, fallback=[0.5, 1.0, 1.5]).split(b"\n"))
    assert 10 ** found[b"a b"][0] > 10 ** found[b"<s> a"][0] * 0.9


def test_empty_lines_are_sentences_and_backoffs_of_what_nothing_follows_are_one() -> None:
    found = parse_arpa(build([*random_text(), b"", b" "], 3).split(b"\n"))
    assert b"<s> </s>" in found and found[b"</s>"][1] == 0.0
    assert all(math.isfinite(number) for numbers in found.values() for number in numbers)


def test_the_command_reads_gzip_and_writes_gzip(tmp_path: Path) -> None:
    text = tmp_path / "text.gz"
    text.write_bytes(gzip.compress(b"\n".join(random_text()) + b"\n"))
    output = tmp_path / "lm.arpa.gz"
    arguments = ["--input", str(text), "--output", str(output)]
    assert main(["build-lm", "--order", "3", *arguments]) == 0
    lines = gzip.decompress(output.read_bytes()).split(b"\n")
    assert lines[0] == b"\\data\\"
    assert lines[-2] == b"\\end\\"
    counted = [int(line.split(b"=")[1]) for line in itertools.takewhile(lambda line: line, lines[1:])]
    assert counted[0] == len({word for line in random_text() for word in line.split(b" ")}) + 3
    assert sum(counted) == len(parse_arpa(lines))


def test_words_are_cut_where_lmplz_cuts_them(tmp_path: Path) -> None:
    models = []
    for name, content in (("blanks", b"a b c\n"), ("others", b"a\0b\tc\r\n")):
        (tmp_path / name).write_bytes(content)
        files = ["--input", str(tmp_path / name), "--output", str(tmp_path / f"{name}.arpa")]
        assert main(["build-lm", "--order", "1", "--discount-fallback", *files]) == 0
        models.append((tmp_path / f"{name}.arpa").read_bytes())
    assert models[0] == models[1] == build([b"a b c"], 1, fallback=[0.5, 1.0, 1.5])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the text has no words; give tokenised text, a sentence a line, on standard input"),
        (b"\n \n", "the text has no words; give tokenised text, a sentence a line, on standard input"),
        *[
            (b"a\nb %s c\n" % word.encode(), f"text:2: the word {word} has a meaning of its own; remove it")
            for word in ("<s>", "</s>", "<unk>")
        ],
    ],
)
def test_bad_text_is_refused_in_one_line(tmp_path: Path, content: bytes, problem: str, error_line) -> None:
    text = tmp_path / "text"
    text.write_bytes(content)
    output = tmp_path / "out"
    arguments = ["--input", str(text), "--output", str(output)]
    line = error_line(main, ["build-lm", "--order", "20", *arguments])
    assert line.replace(f"{tmp_path}/", "") == f"smt-bridge build-lm: {problem}"
    for order in ("0", "21"):
        line = error_line(main, ["build-lm", "--order", order, *arguments])
        assert line == f"smt-bridge build-lm: --order {order}: expected 1 to 20"
    assert not output.exists()
