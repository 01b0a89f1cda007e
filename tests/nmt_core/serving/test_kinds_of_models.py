"""Models of every kind behind one server: numbers and bytes as from the model in-process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt_core.base.errors import NmtError, ServiceError
from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.model_directory.loaded_model import load_model, save_model
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.serving.methods.plan import translation_cost
from nmt_core.serving.models.opening import open_served_model
from nmt_core.v1 import nmt_pb2 as pb
from smt_bridge.models import open_model
from tests.annotated_models import make_annotated
from tests.mirrored_models import make_models, mirrored, turned
from tests.model_files import open_pair_scorer
from tests.nmt_core.serving.agreement import check_scores, check_translations
from tests.nmt_core.serving.conftest import make_model as make_initial
from tests.prepared_models import KINDS, NEW, make_model, pipe
from tests.searching import open_translator
from tests.spelling_models import TARGET, spelling_model

ANNOTATED = ["w1 Rot w2 Blau w3", "", "Gelb w7 w1 Blau w2"]
ORDERED = ["w1 w2 w3 w4", "w5 w6 w0"]
FACTORED = ["un|A deux|B", "un|B deux|B", "deux|unseen", ""]
SOURCES = {"posunk": ANNOTATED, "posall": ANNOTATED, "l2r": ORDERED, "r2l": ORDERED, "factors": FACTORED}
PAIRS = {
    "posunk": [SentencePair("w1 Rot w2", target) for target in ("w1 Rouge Deux Neu", "Rot", "")],
    "r2l": [SentencePair("w1 w2 w3", target) for target in ("w4 w5 w6", "w7 unseen", "", "w4 w5 w1 w2")],
    "factors": [SentencePair(source, "one two") for source in FACTORED],
}
SURFACE = [
    SentencePair("the plan &apos;s good .", "der Aktionsplan ist gut ."),
    SentencePair("men see dogs", "Hunde"),
    SentencePair("men see dogs", ""),
]
SPELLED = ["the axolotl is", "the quokka is of", "of"]


def make_factored(place: Path) -> str:
    for name, words in (("s", "un deux"), ("t", "one two"), ("f", "A B")):
        (place / name).write_text("\n".join(["</s>", "<unk>", *words.split(), ""]))
    words, factors = [str(place / name) for name in "st"], ["--factor-vocab", str(place / "f")]
    more = ["--set", "model.source_factors=[3]", *factors]
    vocabularies = ["--source-vocab", words[0], "--target-vocab", words[1]]
    assert main(["init", str(place / "m"), "--preset", "rnnencdec", *vocabularies, *more, *factors]) == 2
    make_initial(place / "m", "rnnencdec", *words, *more)
    return str(place / "m")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("models")
    found = {scheme: make_annotated(place, scheme, scheme)[0] for scheme in ("posunk", "posall")}
    found |= {**make_models(place), "factors": make_factored(place), "spells": str(place / "spells")}
    loaded = spelling_model()
    save_model(found["spells"], loaded.model, loaded.source, loaded.target, loaded.config)
    return found | {kind: str(make_model(tmp_path_factory.mktemp(kind), KINDS[kind])) for kind in ("bpe", "truecased")}


@pytest.fixture(scope="module")
def server(start_here: Callable[..., Any], folders: dict[str, str], folder: str, tmp_path_factory) -> Any:
    """All of them, models of both orders again with candidate lists, and one model with several lexicons."""
    lexicon, few = (tmp_path_factory.mktemp("lexicons") / name for name in ("lexicon", "few"))
    lexicon.write_text("none zéro 1.0\nborn né 0.9\none un 1\n")
    few.write_text("one deux 0.6\ntwo deux 0.4\n")
    models = folders | {f"few-{name}": folders[name] for name in ("l2r", "r2l")}
    models |= dict.fromkeys(("plain", "lexicon", "names", "few", "fewer"), folder)
    options = [argument for name, path in models.items() for argument in ("--model", f"{name}={path}")]
    options += ["--lexicon", f"lexicon={lexicon}", "--lexicon", f"names={lexicon},lexicon-lowercase"]
    options += ["--lexicon", f"few={few}", "--candidates", "few=1"]
    options += ["--lexicon", f"fewer={few}", "--candidates", "fewer=1,1"]
    return start_here(*options, "--candidates", "few-l2r=9", "--candidates", "few-r2l=9", "--beam", "3")


@pytest.fixture
def of(server: Any) -> Callable[[str], NmtClient]:
    """A client of a model."""
    return lambda name: NmtClient(server.address, model=name)


@pytest.mark.parametrize("name", PAIRS)
def test_scores(server: Any, folders: dict[str, str], name: str) -> None:
    remote, local = RemotePairScorer(server.address, model=name), open_pair_scorer([folders[name]])
    assert remote.signature == local.signature
    assert ("|factors:1|" in remote.signature) == (name == "factors")
    options = {"per_word": True, "attention": name == "r2l"}
    check_scores(remote.score(PAIRS[name], **options), local.score(PAIRS[name], **options))


@pytest.mark.parametrize(("name", "replaced"), [*((name, False) for name in SOURCES), ("posunk", True)])
def test_translations(server: Any, folders: dict[str, str], name: str, replaced: bool) -> None:
    expected = open_translator([folders[name]], config=DecodingConfig(beam=3)).translate(SOURCES[name])
    with NmtClient(server.address, model=name) as client:
        check_translations(client.translate(SOURCES[name], replace_unknown=replaced), expected)


@pytest.mark.parametrize("few", ["", "few-"])
def test_attention_is_in_the_order_of_the_text(server: Any, few: str) -> None:
    found = {}
    for name in ("l2r", "r2l"):
        with NmtClient(server.address, model=few + name) as client:
            found[name] = [answer.translations[0] for answer in client.translate(ORDERED, with_attention=True)]
    for one, other in zip(found["r2l"], found["l2r"], strict=True):
        assert one.text == mirrored(other.text)
        assert list(one.word_log_probs) == pytest.approx(turned(tuple(other.word_log_probs)), abs=1e-5)
        rows, others = (np.array(each.attention).reshape(len(each.words) + 1, -1) for each in (one, other))
        np.testing.assert_allclose(rows, np.concatenate([others[:-1][::-1], others[-1:]]), atol=1e-5)
        places = {(point.source, len(other.words) - 1 - point.target) for point in other.alignment}
        assert {(point.source, point.target) for point in one.alignment} == places


def test_both_tokens_of_a_word_are_counted_as_steps(folders: dict[str, str]) -> None:
    config = DecodingConfig(beam=3, max_length_ratio=1.0, max_length_extra=2)
    for name, longest in (("posunk", 7), ("posall", 14)):
        model = open_served_model([folders[name]], config, device="cpu", dtype="float32")
        assert translation_cost([(5, 20)], config, model.proportions).steps == 3 * (longest + 1)


def test_what_these_models_cannot_do_is_said(server: Any, folders: dict[str, str]) -> None:
    with pytest.raises(ServiceError, match="without its word alignment"):
        RemotePairScorer(server.address, model="posall").score(PAIRS["posunk"])
    with NmtClient(server.address, model="posunk") as client, pytest.raises(ServiceError, match="forbid_unknown"):
        client.translate(ANNOTATED, forbid_unknown=True)
    with NmtClient(server.address, model="factors") as client:
        with pytest.raises(ServiceError, match="reads words with factors"):
            client.translate(["un"], raw=True)
        assert len(client.encode(FACTORED[:2])) == 2


def test_a_text_without_the_factors_is_an_error_of_its_item(server: Any) -> None:
    with NmtClient(server.address, model="factors") as client:
        good, bad = client.translate(["un|A", "un|A deux"])
        assert good.translations and not good.HasField("error")
        assert bad.error.reason == "WRONG_FACTORS"
        assert bad.error.message == "the word 'deux' has 1 factor; the model reads 2, written word|factor"
        good, bad = client.score([("un|A", "one"), ("un|A|B", "one")])
        assert not good.HasField("error")
        assert bad.error.reason == "WRONG_FACTORS"


def test_both_orders_are_no_ensemble(folders: dict[str, str], error_line: Callable[..., str]) -> None:
    line = error_line(main, ["serve", "--model", f"both={folders['l2r']},{folders['r2l']}", "--port", "0"])
    both = f"{folders['l2r']} writes targets left-to-right and {folders['r2l']} right-to-left"
    remedy = "use each of them by itself, such as two features for reranking"
    assert line.endswith(f"{both}, so that they have no next word in common; {remedy}")


@pytest.mark.parametrize("kind", ["bpe", "truecased"])
def test_raw_text_is_translated_as_by_the_command_line(
    server: Any, folders: dict[str, str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = ["decode", "--model", folders[kind], "--beam", "3", "--raw", "--quiet"]
    by_hand = pipe(decode, NEW, monkeypatch)
    client = ["client", "translate", "--address", server.address, "--model", kind, "--raw"]
    assert pipe(client, NEW, monkeypatch) == by_hand
    with NmtClient(server.address, model=kind) as direct:
        assert [found.translations[0].text for found in direct.translate(NEW, raw=True)] == by_hand


@pytest.mark.parametrize("kind", ["bpe", "truecased"])
def test_surface_words_are_scored_as_in_process(server: Any, folders: dict[str, str], kind: str) -> None:
    local, remote = open_model(folders[kind]), RemotePairScorer(server.address, model=kind)
    assert remote.signature == local.signature
    assert "|tok:" in local.signature
    ours = local.score(SURFACE, per_word=True, attention=True)
    theirs = remote.score(SURFACE, per_word=True, attention=True)
    check_scores(theirs, ours)
    for pair, one in zip(SURFACE, ours, strict=True):
        assert len(one.word_log_probs or ()) == len(pair.target.split()) + 1
        assert all(len(row) == len(pair.source.split()) + 1 for row in one.attention or ())
    remote.close()


def test_client_scores_every_form(
    server: Any, folders: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s").write_text("The plan\u2019s good.\n")
    (tmp_path / "t").write_text("Der Aktionsplan ist gut.\n")
    texts = [str(tmp_path / "s"), str(tmp_path / "t")]
    for form in ("--raw", "--surface"):
        address = ["--address", server.address, "--model", "bpe"]
        (there,) = pipe(["client", "score", *address, form, *texts], [], monkeypatch)
        (here,) = pipe(["score", "--model", folders["bpe"], "--quiet", form, *texts], [], monkeypatch)
        assert float(there) == pytest.approx(float(here), abs=1e-5)


def test_a_form_that_there_is_not_is_refused(server: Any) -> None:
    with NmtClient(server.address, model="bpe") as client, pytest.raises(NmtError, match="no form of text 9"):
        list(client.score([("a", "b")], form=9))


def test_lists_are_ranked_by_surface_words(server: Any, folders: dict[str, str]) -> None:
    hypotheses = [pb.Hypothesis(target=target) for target in ("der Aktionsplan", "Hunde sehen")]
    with NmtClient(server.address, model="bpe") as client:
        (ranking,) = client.rerank(
            [pb.NbestList(source="the plan", hypotheses=hypotheses)], model_weight=1.0, form=pb.TEXT_FORM_SURFACE
        )
    expected = open_model(folders["bpe"]).score([SentencePair("the plan", one.target) for one in hypotheses])
    found = {one.position: one.log_prob for one in ranking.hypotheses}
    for position, score in enumerate(expected):
        assert found[position] == pytest.approx(score.log_prob, abs=1e-5)


def test_labels_of_lists_are_those_of_decode(server: Any, monkeypatch: pytest.MonkeyPatch, error_line) -> None:
    client = ["client", "translate", "--address", server.address, "--model", "truecased", "--nbest", "2"]
    assert all(" ||| NMT0= -" in line for line in pipe(client, ["the man"], monkeypatch))
    assert all(" ||| X= -" in line for line in pipe([*client, "--feature-name", "X"], ["the man"], monkeypatch))
    error_line(main, [*client, "--feature-name", "a b", "/dev/null"])


def test_what_a_model_writes_letter_by_letter_has_the_score_of_its_text(of: Callable, folders: dict[str, str]) -> None:
    def expected(pairs: list[SentencePair]) -> list[float]:
        return [one.log_prob for one in ModelPairScorer([load_model(folders["spells"])]).score(pairs)]

    client = of("spells")
    found = client.translate(SPELLED, beam=4, nbest=3)
    written = [(line, one) for line, nbest in zip(SPELLED, found, strict=True) for one in nbest.translations]
    pairs = [SentencePair(line, one.text) for line, one in written]
    assert [one.log_prob for _, one in written] == pytest.approx(expected(pairs), abs=1e-4)
    words = [word for _, one in written for word in one.words]
    assert any(word not in TARGET for word in words)
    assert "<unk>" not in words
    with pytest.raises(ServiceError, match="is for models that write <unk>; 'spells' spells unknown words"):
        client.translate(SPELLED, replace_unknown=True)
    remote = RemotePairScorer(client.connection.addresses[0], model="spells").score(pairs)
    assert [score.log_prob for score in remote] == pytest.approx(expected(pairs), abs=1e-5)


def test_unknown_words_come_from_the_lexicon_of_their_model(of: Callable) -> None:
    shown = {}
    for name in ("lexicon", "names", "plain"):
        found = of(name).translate(["zéro né"], beam=4, nbest=4, replace_unknown=True)[0].translations
        assert any("<unk>" in one.words for one in found)
        shown[name] = [one.text for one in found]
    translated = [text.replace("zéro", "none").replace("né", "born") for text in shown["plain"]]
    assert shown["lexicon"] == shown["names"] == translated != shown["plain"]


def test_a_server_searches_with_the_candidates_of_its_model(of: Callable) -> None:
    """The most frequent word, and those of the words' entries in its lexicon."""

    def words(name: str, source: str) -> set[str]:
        (found,) = of(name).translate([source], beam=4, nbest=4)
        return {word for one in found.translations for word in one.words}

    assert words("few", "un") <= {"<unk>", "one"}
    assert "two" in words("few", "deux")  # as its second translation
    assert "two" not in words("fewer", "deux")
    assert "two" in words("plain", "un")
