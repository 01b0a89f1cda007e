"""Models in CTranslate2 where the bridge names a model: columns of tables and lists, and lists of their own."""

from __future__ import annotations

import functools
import gzip
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main as nmt_core
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.engine.work import Unfinished
from nmt_core.serving.models.opening import open_served_model
from nmt_core.serving.models.search import SearchItem
from nmt_core.transformer.ct2 import Ct2Model
from smt_bridge.commands.main import main
from smt_bridge.models import SearchOptions, open_model
from smt_bridge.nbest.formats import read_entries
from smt_bridge.recipe import GuidanceOptions, read_recipe, write_recipe
from smt_bridge.serving.hybrid_models import HybridModels
from tests.numpy_transformer import NumpyTransformer
from tests.small_moses import write_moses_system
from tests.smt_bridge.hybrid.small_hybrid import files, recipe, translate

pytest.importorskip("ctranslate2")
TABLE = b"a ||| x ||| 1 2 ||| 0-0\na ||| x y ||| 1 2 ||| 0-0\nb ||| z ||| 1 2 ||| 0-0\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return NumpyTransformer(["a", "b", "x", "y", "z"]).write(tmp_path_factory.mktemp("ct2") / "words")


def test_a_table_gets_the_model_s_numbers(folder: Path, tmp_path: Path) -> None:
    table, output = tmp_path / "table", tmp_path / "scored.gz"
    table.write_bytes(TABLE)
    command = ["rescore-table", str(table), "--scorer", f"ct2:{folder}", "--output", str(output), "--quiet"]
    assert main([*command, "--jobs", "1"]) == 0
    scored = [line.split(b" ||| ") for line in gzip.decompress(output.read_bytes()).splitlines()]
    bare = Ct2Model(str(folder), threads=1)
    pairs = [SentencePair(fields[0].decode(), fields[1].decode()) for fields in scored]
    found = [float(fields[2].split()[-1]) for fields in scored]
    assert found == pytest.approx([2.718281828459045**one.log_prob for one in bare.score(pairs)], rel=1e-4)
    metadata = json.loads((tmp_path / "scored.gz.json").read_bytes())
    assert metadata["signatures"]["scorer"] == bare.signature


def test_a_job_is_not_resumed_with_another_model(folder: Path, tmp_path: Path, error_line: Callable[..., str]) -> None:
    table, output, model = tmp_path / "table", tmp_path / "scored", tmp_path / "model"
    table.write_bytes(TABLE)
    shutil.copytree(folder, model)
    command = ["rescore-table", str(table), "--scorer", f"ct2:{model}", "--output", str(output), "--quiet"]
    assert main([*command, "--jobs", "1", "--shards", "1-1"]) == 0
    other = NumpyTransformer(["a", "b", "x", "y", "z"], seed=2).write(tmp_path / "other")
    shutil.copytree(other, model, dirs_exist_ok=True)
    assert "the job was begun with models scorer='nmt:ct2|model:" in error_line(main, [*command, "--jobs", "1"])
    assert not output.exists()


def test_a_list_gets_a_column_and_the_model_s_own_list_has_its_scores(folder: Path, tmp_path: Path) -> None:
    nbest, source, output = tmp_path / "list", tmp_path / "source", tmp_path / "rich"
    nbest.write_text("0 ||| x y ||| LM0= -1 ||| -1\n0 ||| z ||| LM0= -2 ||| -2\n")
    source.write_text("a b\n")
    command = ["add-features", "--nbest", str(nbest), "--source", str(source), "--scorer", f"ct2:{folder}"]
    assert main([*command, "--output", str(output), "--quiet", "--jobs", "1"]) == 0
    bare = Ct2Model(str(folder), threads=1)
    expected = [one.log_prob for one in bare.score([SentencePair("a b", "x y"), SentencePair("a b", "z")])]
    columns = [float(line.split(" ||| ")[2].split("NMT0= ")[1].split()[0]) for line in output.read_text().splitlines()]
    assert columns == pytest.approx(expected, rel=1e-4)
    model = open_model(f"ct2:{folder}", search=SearchOptions(beam=3, nbest=2))
    own, none = model.nbest(["a b", ""])
    assert not none
    assert len(own) == 2
    assert own[0].total == pytest.approx(bare.score([SentencePair("a b", own[0].text)])[0].log_prob, abs=1e-4)


def test_a_live_hybrid_searches_and_scores_with_it(moses: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    judge = f"ct2:{NumpyTransformer(['ab', 'cd', 'ba', 'dc']).write(tmp_path / 'judge')}"
    Path("dev").write_text("ab cd\ncd\n")
    write_moses_system(tmp_path)
    lists = f"--moses-ini moses.ini --model {judge} --feature nmt:{judge} --lists moses:2,nmt:3 --beam 4".split()
    assert translate(moses, *lists, "--input", "dev", "--nbest-output", "list", "--output", "out") == 0
    entries = list(read_entries("list"))
    assert {entry.sentence for entry in entries if entry.features["InNmt0"] == (1.0,)} == {0, 1}
    pairs = [SentencePair(["ab cd", "cd"][entry.sentence], entry.text) for entry in entries]
    expected = [score.log_prob for score in Ct2Model(judge.removeprefix("ct2:")).score(pairs)]
    assert [entry.features["NMT0"][0] for entry in entries] == pytest.approx(expected, abs=1e-4)


def test_a_served_hybrid_translates_as_the_command(moses: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    judge = f"ct2:{NumpyTransformer(['ab', 'cd', 'ef', 'ba', 'dc', 'fe']).write(tmp_path / 'judge-en-fr')}"
    write_moses_system(tmp_path)
    files(tmp_path)
    recipe(moses, "--model", judge, "--feature", f"nmt:{judge}")
    assert translate(moses, "--recipe", "recipe.json", "--input", "dev", "--output", "expected", "--raw") == 0
    hybrids = HybridModels({"h": "recipe.json"})
    opened = functools.cache(lambda parts: open_served_model(parts, DecodingConfig(), device="cpu", dtype="float32"))
    try:
        hybrid = hybrids.load(lambda parts: opened(tuple(parts)))["h"]
        decoder, found = hybrid.decoder(False), dict[int, Any]()
        texts = [hybrid.raw_text.tokenize(line) for line in Path("dev").read_text().splitlines()]
        decoder.admit([(key, SearchItem(text, hybrid.defaults)) for key, text in enumerate(texts)])
        while len(found) < len(texts):
            found |= dict(decoder.step())
            time.sleep(decoder.waits)
        assert hybrid.finish is not None
        merged = {
            key: hybrid.finish([one.value])[0] if isinstance(one, Unfinished) else one for key, one in found.items()
        }
    finally:
        hybrids.close()
    written = [hybrid.raw_text.detokenize(merged[key][0].text) for key in range(len(texts))]
    assert written == Path("expected").read_text().splitlines()
    guidance = GuidanceOptions(weight=1.0, factors=(1.0,), scale=1.0)
    nothing: dict[str, Any] = {"weights": None, "columns": (), "features": (), "exact": (), "signatures": {}}
    write_recipe("guided.json", replace(read_recipe("recipe.json"), guidance=guidance, **nothing))
    with pytest.raises(ConfigError, match="guidance and graphs need a model of nmt-core, not ct2:"):
        HybridModels({"h": "guided.json"}).load(lambda parts: opened(tuple(parts)))


def test_what_such_a_model_cannot_do_is_one_line(folder: Path, tmp_path: Path, error_line: Callable[..., str]) -> None:
    table = tmp_path / "table"
    table.write_bytes(TABLE)
    options = ["--output", str(tmp_path / "out"), "--jobs", "1"]
    for more, expected in (
        (["--scorer", f"ct2:{folder}", "--softmax", "none"], "--softmax is for models of nmt-core"),
        (["--scorer", f"ct2:{tmp_path}"], "CTranslate2 cannot open it"),
        (["--scorer", f"ct2:{folder},ct2:{folder}"], "Transformers make no ensembles; give one ct2:DIR"),
    ):
        assert expected in error_line(main, ["rescore-table", str(table), *more, *options])
    assert not (tmp_path / "out").exists()


def test_score_writes_the_number_of_the_column(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("source").write_text("a b\nb\n")
    Path("list").write_text("0 ||| x y ||| LM0= -1 ||| -1\n1 ||| z ||| LM0= -2 ||| -2\n")
    Path("pairs").write_text("a b\tx y\nb\tz\n")
    options = ["--nbest", "list", "--source", "source", "--output", "rich", "--quiet", "--jobs", "1"]
    assert main(["add-features", "--scorer", f"ct2:{folder}", *options]) == 0
    column = [float(line.split("NMT0= ")[1].split()[0]) for line in Path("rich").read_text().splitlines()]
    capfd.readouterr()
    assert nmt_core(["score", "--model", f"ct2:{folder}", "pairs"]) == 0
    assert [float(line) for line in capfd.readouterr().out.splitlines()] == pytest.approx(column, abs=2e-6)


def test_doctor_says_a_model_of_the_other_direction_and_one_that_is_none(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bare = Ct2Model(str(folder), threads=1)
    scores = {word: bare.score([SentencePair("a a a a", " ".join([word] * 4))])[0].log_prob for word in "abxyz"}
    likely, unlikely = max(scores, key=scores.__getitem__), min(scores, key=scores.__getitem__)
    for name, word in (("likely", likely), ("unlikely", unlikely)):
        Path(name).write_text(f"{' '.join([word] * 4)}\n" * 60)
    for source, reference, warnings in (("unlikely", "likely", 0), ("likely", "unlikely", 1)):
        assert main(["doctor", "--scorer", f"ct2:{folder}", "--source", source, "--reference", reference]) == 0
        assert capfd.readouterr().out.count("is it of the other direction") == warnings
    assert main(["doctor", "--scorer", f"ct2:{tmp_path}"]) == 1
    assert "CTranslate2 cannot open it" in capfd.readouterr().out
