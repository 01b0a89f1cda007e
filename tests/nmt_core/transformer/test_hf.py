"""Models of the library transformers: its bare numbers, CTranslate2's of the same model, damaged directories."""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt_core.base.errors import NmtError
from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.models.opening import open_served_model
from nmt_core.serving.models.search import SearchItem
from nmt_core.transformer.model import Transformer, open_transformer
from nmt_core.version import VERSION
from tests.random_marian import convert, log_prob, write_marian

transformers = pytest.importorskip("transformers", reason="needs transformers (extra hf)")
torch = pytest.importorskip("torch")
# the library's own warnings are not about us
pytestmark = pytest.mark.filterwarnings("ignore:::transformers", "ignore::FutureWarning", "ignore::DeprecationWarning")
PAIRS = [
    SentencePair("the old woman &apos;s house", "la maison de la vieille femme ."),
    SentencePair("a man", "un homme"),
    SentencePair(" ".join(["the old woman ,"] * 8), " ".join(["la femme , vieille"] * 9)),
    SentencePair("a Quiz", "ZZ"),
    SentencePair("the", ""),
    SentencePair("", "la"),
    SentencePair("a </s> <pad> man", "l&apos; </s> homme <unk>"),  # words like all others
]
RUNNING = ["the old woman's house", "la maison de la vieille femme."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_marian(tmp_path_factory.mktemp("hf") / "marian-en-fr")


@pytest.fixture(scope="module")
def model(folder: Path) -> Transformer:
    return open_transformer(f"hf:{folder}")


def test_scores_are_those_of_the_library_and_of_ctranslate2(model: Transformer, folder: Path, tmp_path: Path) -> None:
    assert model.score(PAIRS[:1])[0].log_prob == pytest.approx(log_prob(folder, *RUNNING), abs=1e-4)
    converted = open_transformer(f"ct2:{convert(folder, tmp_path / 'marian-en-fr')}", threads=1)
    asked = [*PAIRS, *reversed(PAIRS)]
    for one, other, pair in zip(model.score(asked), converted.score(asked), asked, strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
        assert one.log_prob == pytest.approx(model.score([pair])[0].log_prob, abs=1e-4)
        assert (one.unknown_source, one.unknown_target) == (other.unknown_source, other.unknown_target)


@torch.no_grad()
def test_what_may_follow_a_prefix_has_probability_1(model: Any) -> None:
    (source,), (prefix,) = model._cut(0, ["the man"]), model._cut(1, ["la maison"])
    end, padding = prefix[-1], model._padding
    bare = model._model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([[padding, *prefix[:-1]]]))
    before = sum(torch.log_softmax(bare.logits[0, :-1, :padding], -1).gather(1, torch.tensor(prefix[:-1])[:, None]))
    total = math.exp(model._log_probs([source], [prefix])[0] - before)
    for piece in set(range(padding)) - {end}:
        longer = [*prefix[:-1], piece]
        bare = model._model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([[padding, *longer]]))
        ended = float(torch.log_softmax(bare.logits[0, -1, :padding], -1)[end])
        total += math.exp(model._log_probs([source], [[*longer, end]])[0] - ended - before)
    assert total == pytest.approx(1, abs=1e-4)


def test_an_entry_of_a_list_has_the_score_of_its_pair(model: Transformer) -> None:
    texts = ["the old woman reads", "", "the man"]
    lists = model.nbest(texts, beam=4, nbest=3, forbid_unknown=True)
    assert [len(found) for found in lists] == [3, 0, 3]
    for text, found in zip(texts, lists, strict=True):
        alone = model.nbest([text], beam=4, nbest=3, forbid_unknown=True)[0]
        assert [entry.text for entry in found] == [entry.text for entry in alone]
        scores = [one.log_prob for one in model.score([SentencePair(text, entry.text) for entry in found])]
        assert scores == sorted(scores, reverse=True)
        assert [entry.log_prob for entry in found] == pytest.approx(scores, abs=1e-4)


SIZES = {f"{side}_{key}": size for side in ("encoder", "decoder")
         for key, size in (("ffn_dim", 8), ("layers", 2), ("attention_heads", 2))}  # fmt: skip
SIZES |= {"d_model": 8, "max_position_embeddings": 32, "init_std": 0.5}
T5 = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 2, "num_heads": 2, "pad_token_id": 1, "eos_token_id": 2}


def write_words(folder: Path, kind: str, **sizes: Any) -> Any:
    """A model of words with random parameters, whose texts begin with ``<s>``: the model."""
    tokenizers = pytest.importorskip("tokenizers")
    names = ["<s>", "<pad>", "</s>", "<unk>", *"abcde"]
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({name: n for n, name in enumerate(names)}, "<unk>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.post_processor = tokenizers.processors.TemplateProcessing("<s> $A </s>", None, [("<s>", 0), ("</s>", 2)])
    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, **special).save_pretrained(folder)
    torch.manual_seed(1)
    config = transformers.AutoConfig.for_model(kind, vocab_size=len(names), **sizes)
    bare = transformers.AutoModelForSeq2SeqLM.from_config(config).eval()
    bare.save_pretrained(folder)
    (folder / "hybridmt.yaml").write_text("text: tokenised\n")
    return bare


@pytest.mark.parametrize(
    ("kind", "sizes", "start"),
    [("bart", SIZES, 2), ("m2m_100", SIZES, 2), ("mbart", SIZES | {"decoder_start_token_id": 2}, 2),
     ("t5", T5 | {"decoder_start_token_id": 1}, 1)],
)  # fmt: skip
def test_what_frames_a_text_has_no_probability(tmp_path: Path, kind: str, sizes: dict[str, Any], start: int) -> None:
    bare = write_words(tmp_path, kind, **sizes)
    model = open_transformer(f"hf:{tmp_path}")
    with torch.no_grad():
        given = torch.tensor([[start, 0, 7, 4]])  # <s> follows the decoder's start, whatever p it has
        logits = bare(input_ids=torch.tensor([[0, 4, 5, 2]]), decoder_input_ids=given).logits[0]
    logits[:, 1] = -math.inf
    expected = torch.log_softmax(logits, -1)[range(1, 4), [7, 4, 2]].sum()
    assert model.score([SentencePair("a b", "d a")])[0].log_prob == pytest.approx(float(expected), abs=1e-4)
    (found,) = model.nbest(["a b"], beam=3, nbest=3, forbid_unknown=True)
    assert found
    assert all(set(entry.text.split()) <= set("abcde") for entry in found)


def write_nllb(folder: Path, **languages: str) -> Any:
    """An NLLB model of letters, with random parameters: the model."""
    names = ["<s>", "<pad>", "</s>", "<unk>", *(f"{mark}{letter}" for letter in "abcde" for mark in ("\u2581", ""))]
    names += ["\u2581", "<mask>", "eng_Latn", "fra_Latn"]
    vocabulary = {name: place for place, name in enumerate(names)}
    merges = [("\u2581", letter) for letter in "abcde"]
    transformers.NllbTokenizer(
        vocab=vocabulary, merges=merges, extra_special_tokens=["eng_Latn", "fra_Latn"], **languages
    ).save_pretrained(folder)
    torch.manual_seed(1)
    bare = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(vocab_size=len(names), **SIZES)).eval()
    bare.save_pretrained(folder)
    return bare


def test_a_model_of_many_languages_has_those_of_its_tokeniser(tmp_path: Path) -> None:
    write_nllb(tmp_path / "none-en-fr", src_lang="fra_Latn")  # the library would write French for French
    with pytest.raises(NmtError, match="its tokeniser names no languages; save it with src_lang=… and tgt_lang=…"):
        open_transformer(f"hf:{tmp_path}/none-en-fr")
    bare = write_nllb(tmp_path / "model-en-fr", src_lang="eng_Latn", tgt_lang="fra_Latn")
    english, french = 16, 17
    with torch.no_grad():
        given = torch.tensor([[2, french, 10, 4]])
        logits = bare(input_ids=torch.tensor([[english, 4, 6, 2]]), decoder_input_ids=given).logits[0]
    logits[:, 1] = -math.inf
    expected = torch.log_softmax(logits, -1)[range(1, 4), [10, 4, 2]].sum()
    model = open_transformer(f"hf:{tmp_path}/model-en-fr")
    assert model.score([SentencePair("a b", "d a")])[0].log_prob == pytest.approx(float(expected), abs=1e-4)


def test_a_language_of_the_target_stands_before_each_source(folder: Path, tmp_path: Path) -> None:
    several = shutil.copytree(folder, tmp_path / "several-en-fr")
    vocabulary = json.loads((several / "vocab.json").read_text())
    place = vocabulary.pop(next(piece for piece in vocabulary if piece.isalpha()))
    (several / "vocab.json").write_text(json.dumps(vocabulary | {">>fra<<": place}))
    with pytest.raises(NmtError, match=r"such as '>>fra<<'; write source_prefix into .*hybridmt.yaml$"):
        open_transformer(f"hf:{several}")
    converted = convert(several, tmp_path / "ct2-en-fr")
    expected = log_prob(several, ">>fra<< a man", "un homme")
    for spec in (f"hf:{several}", f"ct2:{converted}"):
        (Path(spec.partition(":")[2]) / "hybridmt.yaml").write_text("source_prefix: '>>fra<<'\n")
        model = open_transformer(spec)
        assert model._cut(0, ["a man"])[0][0] in (place, ">>fra<<")
        assert model.score([SentencePair("a man", "un homme")])[0].log_prob == pytest.approx(expected, abs=1e-4)


def test_a_task_stands_before_each_source(tmp_path: Path) -> None:
    tasks = {"translation_en_to_fr": {"prefix": "c: "}, "bare": {"prefix": ""}, "other": {}}
    bare = write_words(tmp_path, "t5", **T5, decoder_start_token_id=1, task_specific_params=tasks)
    with pytest.raises(NmtError, match=r"such as 'c:'; write source_prefix into .*hybridmt.yaml$"):
        open_transformer(f"hf:{tmp_path}")
    for prefix, before in (("c", [6]), ("''", [])):
        (tmp_path / "hybridmt.yaml").write_text(f"text: tokenised\nsource_prefix: {prefix}\n")
        with torch.no_grad():
            asked = {"input_ids": [[0, *before, 4, 5, 2]], "decoder_input_ids": [[1, 0, 7]]}
            logits = bare(**{name: torch.tensor(ids) for name, ids in asked.items()}).logits[0]
        logits[:, 1] = -math.inf
        expected = torch.log_softmax(logits, -1)[range(1, 3), [7, 2]].sum()
        (score,) = open_transformer(f"hf:{tmp_path}").score([SentencePair("a b", "d")])
        assert score.log_prob == pytest.approx(float(expected), abs=1e-4)


def test_a_tokeniser_that_cuts_targets_as_sources_is_one_line(tmp_path: Path) -> None:
    names = {name: place for place, name in enumerate(["<s>", "<pad>", "</s>", "<unk>", "a</w>"])}
    for file in ("vocab-src.json", "vocab-tgt.json"):
        (tmp_path / file).write_text(json.dumps(names))
    (tmp_path / "merges.txt").write_text("a b\n")
    files = {f"{name}_file": str(tmp_path / file) for name, file in
             (("src_vocab", "vocab-src.json"), ("tgt_vocab", "vocab-tgt.json"), ("merges", "merges.txt"))}  # fmt: skip
    transformers.FSMTTokenizer(langs=["en", "fr"], **files).save_pretrained(tmp_path)
    sizes = {"langs": ["en", "fr"], "src_vocab_size": len(names), "tgt_vocab_size": len(names)}
    config = transformers.FSMTConfig(**sizes, **SIZES)
    transformers.FSMTForConditionalGeneration(config).save_pretrained(tmp_path)
    (tmp_path / "hybridmt.yaml").write_text("text: tokenised\n")
    with pytest.raises(NmtError, match="its tokeniser cuts targets into pieces of the source's vocabulary"):
        open_transformer(f"hf:{tmp_path}")


def test_settings_of_the_model_for_search_do_not_count(folder: Path, model: Transformer, tmp_path: Path) -> None:
    other = shutil.copytree(folder, tmp_path / folder.name)
    settings = json.loads((other / "generation_config.json").read_text())
    drawn = {"do_sample": True, "temperature": 3.0, "no_repeat_ngram_size": 1, "min_length": 30}
    (other / "generation_config.json").write_text(json.dumps(settings | drawn))
    how: dict[str, Any] = {"beam": 4, "nbest": 4, "forbid_unknown": True}
    assert open_transformer(f"hf:{other}").nbest(["the man"], **how) == model.nbest(["the man"], **how)


def test_a_search_is_for_log_p_and_unknown_pieces_are_left_out_on_demand(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate, seen = model._model.generate, list[Any]()

    def watched(**given: Any) -> Any:
        seen.append(given["generation_config"])
        return generate(**given)

    monkeypatch.setattr(model._model, "generate", watched)
    for forbid_unknown in (True, False):
        model.nbest(["the man"], beam=2, nbest=1, forbid_unknown=forbid_unknown)
    unknown, padding = model._tokenizer.unk_token_id, model._tokenizer.pad_token_id
    assert [one.suppress_tokens for one in seen] == [sorted([unknown, padding]), [padding]]
    assert [(one.num_beams, one.num_return_sequences, one.length_penalty) for one in seen] == [(2, 2, 0.0)] * 2


def test_an_empty_hypothesis_has_the_score_of_its_pair(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / folder.name)
    bare = transformers.MarianMTModel.from_pretrained(copy)
    bare.final_logits_bias[0, 0] = 30.0  # the end is likely everywhere
    bare.save_pretrained(copy)
    model = open_transformer(f"hf:{copy}")
    ((found,),) = model.nbest(["the man"], beam=1, nbest=1, forbid_unknown=False)
    assert found.text == ""
    assert found.log_prob == pytest.approx(model.score([SentencePair("the man", "")])[0].log_prob, abs=1e-5)


def test_a_change_of_any_file_is_another_model(folder: Path, model: Transformer, tmp_path: Path) -> None:
    same = shutil.copytree(folder, tmp_path / folder.name)
    assert open_transformer(f"hf:{same}").signature == model.signature
    start = f"nmt:hf|model:{model.fingerprint}|log:e|norm:none|dtype:float32|device:cpu|cpu:"
    assert model.signature.startswith(start)
    assert model.signature.endswith(f"|transformers:{transformers.__version__}|version:{VERSION}")
    vocabulary = json.loads((same / "vocab.json").read_text())
    vocabulary["a"], vocabulary["e"] = vocabulary["e"], vocabulary["a"]
    (same / "vocab.json").write_text(json.dumps(vocabulary))
    assert open_transformer(f"hf:{same}").fingerprint != model.fingerprint


def damaged(folder: Path, what: str) -> dict[str, Any]:
    """Damage a directory; options to open it with."""
    weights = folder / "model.safetensors"
    if what == "cut":
        weights.write_bytes(weights.read_bytes()[:3000])
    elif what == "parameter":
        load, save = (getattr(pytest.importorskip("safetensors.torch"), name) for name in ("load_file", "save_file"))
        save({name: values for name, values in load(weights).items() if "layers.1.fc1.weight" not in name}, weights)
    elif what == "tokeniser":
        for name in ("vocab.json", "source.spm", "target.spm", "tokenizer_config.json"):
            (folder / name).unlink()
    elif what == "pieces":
        names = json.loads((folder / "vocab.json").read_text())
        (folder / "vocab.json").write_text(json.dumps(names | {"more": len(names)}))
    elif what == "config":
        (folder / "config.json").write_text("{")
    elif what == "none":
        shutil.rmtree(folder)
    return {"dtype": "int8"} if what == "int8" else {}


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("cut", "is no model of transformers: "),
        ("config", "is no model of transformers: "),
        ("tokeniser", "is no model of transformers: "),
        ("parameter", r"lacks 2 of the model's parameters, such as .*layers\.1\.fc1\.weight$"),
        ("pieces", r": its tokeniser has [\d,]+ pieces, more than the model$"),
        ("none", "^hf:.* is no directory; expected one that transformers wrote$"),
        ("int8", "--dtype int8: expected float32"),
    ],
)
def test_a_directory_that_is_no_such_model_is_one_line(folder: Path, tmp_path: Path, what: str, message: str) -> None:
    copy = shutil.copytree(folder, tmp_path / folder.name)
    how = damaged(copy, what)
    with pytest.raises(NmtError, match=message) as raised:
        open_transformer(f"hf:{copy}", **how)
    assert "\n" not in str(raised.value)


def test_a_directory_without_languages_is_one_line(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "marian")
    with pytest.raises(NmtError, match="its languages are not known"):
        open_transformer(f"hf:{copy}")


def test_a_sentence_longer_than_the_model_takes_is_an_error(model: Any) -> None:
    model._check([[0] * 512])
    with pytest.raises(NmtError, match=r" of 513 pieces \(it takes 512\)$"):
        model._check([[0] * 513])
    for pair in (SentencePair("the " * 600, "la"), SentencePair("the", "la " * 600)):
        with pytest.raises(NmtError, match=r"does not take '.*…' of [\d,]+ pieces \(it takes 512\)"):
            model.score([PAIRS[0], pair])
    with pytest.raises(NmtError, match="does not take"):
        model.nbest(["the " * 600], beam=1, nbest=1, forbid_unknown=False)


def test_the_commands_write_the_model_s_numbers(
    model: Transformer, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("source").write_text("".join(f"{pair.source}\n" for pair in PAIRS))
    Path("target").write_text("".join(f"{pair.target}\n" for pair in PAIRS))
    assert main(["score", "--model", f"hf:{folder}", "source", "target"]) == 0
    found = [float(line) for line in capfd.readouterr().out.splitlines()]
    assert found == pytest.approx([one.log_prob for one in model.score(PAIRS)], abs=1e-4)
    Path("text").write_text("the old woman reads\n\nthe man\n")
    options = ["--input", "text", "--output", "out", "--scores", "--beam", "4", "--search", "forbid_unknown"]
    assert main(["decode", "--model", f"hf:{folder}", *options]) == 0
    lists = model.nbest(Path("text").read_text().splitlines(), beam=4, nbest=1, forbid_unknown=True)
    lines = [line.split("\t") for line in Path("out").read_text().splitlines()]
    assert [line[1] for line in lines] == [listed[0].text if listed else "" for listed in lists]
    nothing = model.score([SentencePair("", "")])[0].log_prob
    expected = [listed[0].log_prob if listed else nothing for listed in lists]
    assert [float(line[0]) for line in lines] == pytest.approx(expected, abs=1e-4)


def test_a_server_has_the_model_s_numbers(model: Transformer, folder: Path) -> None:
    served = open_served_model([f"hf:{folder}"], DecodingConfig(nbest=2), device="cpu", dtype="float32")
    found = served.scorer.score(PAIRS)
    assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in model.score(PAIRS)], abs=1e-4)
    decoder, answers = served.decoder(False), list[Any]()
    decoder.admit([(0, SearchItem("the man", served.defaults))])
    while not answers:
        time.sleep(decoder.waits)
        answers = [*decoder.step()]
    how: dict[str, Any] = {"beam": served.defaults.beam, "nbest": 2, "forbid_unknown": False}
    assert [one.text for one in answers[0][1]] == [one.text for one in model.nbest(["the man"], **how)[0]]


def test_without_the_library_it_is_one_line(
    folder: Path, error_line: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    line = error_line(main, ["score", "--model", f"hf:{folder}", "source", "target"])
    assert line == f"nmt-core score: hf:{folder} needs transformers: pip install 'hybridmt[hf]'"
