"""`smt-bridge new` writes steps that can be run, and names what does not fit before anything long begins."""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from nmt_core.base.errors import InputError
from nmt_core.commands.main import PROGRAM as NMT_CORE
from nmt_core.commands.program import parser_of
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.preparation.steps import TokenizationConfig
from nmt_core.training.config import RunConfig
from nmt_core.training.run import with_recipe
from smt_bridge.commands.main import PROGRAM as SMT_BRIDGE
from smt_bridge.commands.main import main
from smt_bridge.moses.ini import read_ini
from smt_bridge.new import run
from smt_bridge.new.given import Corpus, Given, System, Text, _exact, _named_apart
from smt_bridge.new.machine import Machine, _speed, look_at_machine, measure_speed
from smt_bridge.new.plan import _steps, missing, plan_of, trainings
from smt_bridge.new.preparation import tokenization_of
from smt_bridge.new.settings import (
    PHRASES,
    SENTENCES,
    _text,
    _vocabulary,
    parameters,
    phrase_settings,
    sentence_settings,
)
from tests.nmt_core.arpa import ARPA

pytestmark = pytest.mark.skipif(" " in tempfile.gettempdir(), reason="moses.ini holds no path with a blank")

FAKE_MOSES = Path(__file__).parents[2] / "fake_moses.py"
WORDS = {"the": "le", "black": "noir", "cat": "chat", "dog": "chien", "sleeps": "dort", "eats": "mange"}
INI = """\
[input-factors]
0
[mapping]
0 T 0
[feature]
WordPenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=2 path=table.gz input-factor=0 output-factor=0
[weight]
WordPenalty0= -0.1
TranslationModel0= 0.2 0.2
"""
SECOND = """\
[feature]
PhraseDictionaryMemory name=TM1 num-features=2 path=table.gz
[weight]
TM1= 0.1 0.1
"""
GIVEN = {
    "--moses-ini": ["system/moses.ini"],
    "--train": ["train.en", "train.fr"],
    "--dev": ["dev.en", "dev.fr"],
    "--nbest": ["dev.nbest"],
    "--test": ["news.en", "news.fr", "news.nbest"],
    "--updates": ["3"],
}


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Moses system with texts and lists, in the current folder; no ``moses`` on the PATH."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    chance = random.Random(1)
    for name, size in (("train", 200), ("dev", 6), ("news", 4)):
        texts = [chance.choices([*WORDS], k=3 + number % 4) for number in range(size)]
        Path(f"{name}.en").write_text("".join(f"{' '.join(words)}\n" for words in texts))
        turned = [" ".join(WORDS[word] for word in words) for words in texts]
        Path(f"{name}.fr").write_text("".join(f"{text}\n" for text in turned))
        entries = [
            f"{number} ||| {entry} ||| WordPenalty0= -3 TranslationModel0= -1 -{rank} ||| -{rank}.5\n"
            for number, text in enumerate(turned)
            for rank, entry in enumerate([text, f"{text} dort"], start=1)
        ]
        Path(f"{name}.nbest").write_text("".join(entries))
    Path("system").mkdir()
    Path("system/moses.ini").write_text(INI)
    Path("system/table.gz").write_text("")
    write_table(
        "system/table.gz",
        [f"{word} ||| {target} ||| 0.5 0.5 ||| 0-0 ||| 1 1 1\n" for word, target in sorted(WORDS.items())],
    )
    return tmp_path


def write_table(path: str, lines: list[str]) -> None:
    """A table that gzip packs."""
    packed = subprocess.run(["gzip", "-nc"], input="".join(lines).encode(), stdout=subprocess.PIPE, check=True)
    Path(path).write_bytes(packed.stdout)


def new(**changed: list[str] | None) -> int:
    """The exit code; options are ``GIVEN``'s where they are not changed."""
    options = {**GIVEN, **{f"--{name.replace('_', '-')}": value for name, value in changed.items()}}
    return main(
        ["new", "hybrid", *(word for name, value in options.items() if value is not None for word in [name, *value])]
    )


def commands(makefile: str) -> list[list[str]]:
    """The commands of a Makefile as words."""
    joined = makefile.replace("\\\n\t", " ")
    lines = [line[1:].split(" 2>>")[0].split(" && ")[0] for line in joined.splitlines() if line.startswith("\t")]
    return [shlex.split(line.replace("$(PORT)", "50551")) for line in lines]


def test_every_command_is_one_that_the_programs_take(system: Path) -> None:
    assert new() == 0
    found = commands(Path("hybrid/Makefile").read_text())
    assert [f"{words[0]} {words[1]}" for words in found] == [
        "nmt-core serve",  # where MOSES is given
        "smt-bridge translate",
        "smt-bridge tune",
        "smt-bridge translate",
        "smt-bridge rerank",
        "nmt-core serve",  # where it is not
        *["nmt-core decode", "smt-bridge add-features"] * 2,
        "smt-bridge tune",
        "smt-bridge rerank",
        *["nmt-core train"] * 3,  # and for both
        "smt-bridge rescore-table",
        "smt-bridge wire",
    ]
    assert [" ".join(words).count(" --exact WordPenalty0 ") for words in found[:9]] == [0, 1, 0, 0, 0, 0, 0, 1, 0]
    for program, *words in found:
        parser_of(NMT_CORE if program == "nmt-core" else SMT_BRIDGE, words).parse_args(words)


def test_the_column_is_for_the_table_wherever_its_line_stands(system: Path) -> None:
    before = "LexicalReordering name=LR0 num-features=6 path=orders.gz\nPhraseDictionaryMemory "
    weights = "[weight]\nLR0= 1 1 1 1 1 1\n"
    ini = INI.replace("PhraseDictionaryMemory ", before).replace("[weight]\n", weights)
    Path("system/moses.ini").write_text(ini)
    Path("system/orders.gz").write_bytes(Path("system/table.gz").read_bytes())
    assert new() == 0
    found = {words[1]: words for words in commands(Path("hybrid/Makefile").read_text())}
    assert found["rescore-table"][2] == str(system / "system" / "table.gz")


@pytest.mark.usefixtures("machine")
def test_settings_are_those_of_three_models(system: Path) -> None:
    assert new(updates=["1000"]) == 0
    for name, epochs in (("rnnsearch", "320.0"), ("reverse", "320.0"), ("rnnencdec", "21333.3")):
        text = Path(f"hybrid/{name}.yaml").read_text()
        assert text.startswith(f"# 1,000 updates, as --updates said: {epochs} epochs.\n")
        config = RunConfig.from_mapping(with_recipe(yaml.safe_load(text)), origin=name)
        assert (config.folder, config.training.max_updates, config.training.validate_every) == (name, 1000, 200)
        assert config.training.average == (1 if name == "rnnencdec" else 3)
    reverse = yaml.safe_load(Path("hybrid/reverse.yaml").read_text())
    assert reverse["data"]["source"] == str(system / "train.fr")
    assert reverse["text"] == {"source_language": "fr", "target_language": "en"}
    sizes = {"hidden": 192, "embedding": 96, "alignment": 96, "maxout": 96, "dropout": 0.2, "embedding_dropout": 0.0}
    assert reverse["model"] == {"type": "rnnsearch", **sizes, "initialisation": "glorot"}
    common = {"optimizer": "adam", "learning_rate": 0.002, "gradient": "word", "max_updates": 1000}
    common |= {"validate_every": 200, "decay_patience": 1, "precision": "float32"}
    search = {"batch_sentences": 64, "label_smoothing": 0.1, "dev_beam": 1, "average": 3}
    assert reverse["training"] == common | search
    phrases = yaml.safe_load(Path("hybrid/rnnencdec.yaml").read_text())
    sizes = {"hidden": 128, "maxout": 64, "embedding": 64, "output_rank": 64, "dropout": 0.0}
    assert phrases["model"] == {"preset": "rnnencdec-cho2014", **sizes, "initialisation": "glorot"}
    assert phrases["data"] == {"phrase_table": f"{system}/system/table.gz", "hold_out": 1, "max_length": 30}
    assert phrases["training"] == common | {"batch_sentences": 128, "window": 20, "select_by": "nll"}


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("a &apos;s", {}),
        ("it's well-known &quot;", {}),
        ("it's", {"escape": False}),
        ("well @-@ known", {"aggressive_hyphens": True}),
    ],
)
def test_the_tokeniser_is_as_the_words_tell(words: str, more: dict[str, bool]) -> None:
    given: Any = SimpleNamespace(corpus=SimpleNamespace(tokenization=tokenization_of(words.split())))
    expected = {"text": {"source_language": "en", "target_language": "fr", **more}}
    assert yaml.safe_load(_text(given, ("en", "fr"))) == expected


def test_numbers_of_medium_models_and_large_tables() -> None:
    tokenization = TokenizationConfig()
    corpus = SimpleNamespace(
        text=Text("train", "s", "t", 9, 1.0), source_words=9, target_words=9, tokenization=tokenization
    )
    given: Any = SimpleNamespace(
        corpus=corpus, dev=Text("dev", "s", "t", 9, 1.0), languages=("en", "fr"), truecasers=(), system=None
    )
    machine = Machine(1, 1, 1, "", bfloat16=True)
    options: Any = {"given": given, "machine": machine, "comment": "#"}
    text = sentence_settings("m", size=SENTENCES["medium"], updates=199, **options)
    found = yaml.safe_load(text)["training"]
    keys = ("learning_rate", "batch_sentences", "validate_every", "decay_patience", "average", "precision")
    assert [found[key] for key in keys] == [0.001, 80, 20, 2, 5, "bfloat16"]
    for pairs, held_out in ((6, 1), (39_999, 1999), (1_000_000, 2000)):
        given.system = System("ini", b"", "table", pairs, ())
        settings = yaml.safe_load(phrase_settings("p", size=PHRASES["medium"], updates=1001, **options))
        assert settings["data"]["hold_out"] == held_out and settings["training"]["validate_every"] == 201


@pytest.mark.parametrize(
    ("words", "settings"),
    [(30_000, {"minimum_count": 2}), (30_001, {"source_vocabulary": 30_000, "target_vocabulary": 30_000})],
)
def test_of_a_large_corpus_the_most_frequent_words_are_taken(words: int, settings: dict[str, int]) -> None:
    corpus = SimpleNamespace(source_words=9, target_words=words)
    assert yaml.safe_load(f"  {_vocabulary(SimpleNamespace(corpus=corpus))}") == settings


def test_the_memory_is_for_about_as_many_parameters_as_a_model_has() -> None:
    size = SENTENCES["small"]
    sizes = {name: getattr(size, name) for name in ("hidden", "embedding", "alignment", "maxout")}
    model = new_model(RNNsearchConfig(**sizes), 1000, 1200, seed=1)
    assert SENTENCES["paper"][:4] == (1000, 620, 1000, 500)  # of Bahdanau et al. 2015
    assert PHRASES["paper"][:2] == (1000, 100)  # of Cho et al. 2014
    assert parameters(size, 1000, 1200) == pytest.approx(sum(one.numel() for one in model.parameters()), rel=0.05)


@pytest.mark.parametrize(
    ("cores", "gpu", "pairs", "runs", "shares"),
    [
        (2, "", 500_000, (2, 1), (1.0, 0.6, 0.4)),
        (9, "", 0, (2, 4), (1.0, 1.0)),
        (1, "", 500_000, (1, 1), (0.45, 0.3, 0.25)),
        (8, "A GPU", 0, (1, 8), (0.45, 0.55)),
    ],
)
def test_trainings_one_behind_the_other_share_the_minutes(
    cores: int, gpu: str, pairs: int, runs: tuple[int, int], shares: tuple[float, ...]
) -> None:
    machine = Machine(cores, 1, 1, gpu, bfloat16=False)
    assert (machine.streams, machine.threads) == runs
    corpus, system = SimpleNamespace(text=Text("train", "s", "t", 29_000, 12.0)), SimpleNamespace(pairs=pairs)
    models = trainings(SimpleNamespace(corpus=corpus, system=system), machine, size="medium", speed=2000.0)
    assert [model.fitted(60.0).minutes for model in models] == pytest.approx([60 * share for share in shares], rel=1e-2)
    assert models[0]._replace(examples=1000).fitted(60.0).epochs == 40.0
    assert models[0]._replace(speed=0.1).fitted(60.0).updates == 100


def test_steps_take_the_time_of_their_words_on_all_threads() -> None:
    dev = Text("dev", "dev.en", "dev.fr", 1000, 12.0, "dev.nbest")
    corpus = Corpus(Text("train", "s", "t", 29_000, 12.0), 9, 9, TokenizationConfig())
    given = Given(System("ini", b"", "table", 500_000, ()), corpus, dev, (), ("en", "fr"), "", ())
    machine = Machine(4, 1, 1, "", bfloat16=False)
    plan = plan_of(given, machine, trainings(given, machine, size="medium", speed=2000.0), 2000.0)
    models = "--model en-fr=rnnsearch --model en-fr-reverse=reverse"
    assert plan.serve == f"nmt-core serve {models} --model phrases=rnnencdec"
    binary = given._replace(system=given.system._replace(table="", pairs=0), moses="moses")
    problem = "the phrase table is not text: no column is added; give a moses.ini of the text that it was made from"
    assert [*missing(binary)] == [problem]
    assert next(_steps(binary, machine, [], 1.0)).output == "dev.live.gz"
    assert plan_of(binary._replace(moses=""), machine, [], 1.0).serve == f"nmt-core serve {models}"
    assert plan.with_moses is not None
    assert plan.with_moses.serve == "nmt-core serve --hybrid en-fr=hybrid.json --model en-fr-neural=rnnsearch"
    steps = {step.output: step for step in (*plan.steps, *plan.with_moses.steps)}
    minutes = {"phrase-table.nmt.gz": 1.488, "dev.nmt.gz": 0.2, "dev.rich.gz": 3.088, "weights": 4.667}
    minutes |= {"dev.live.gz": 4.954, "hybrid.weights": 4.667}
    assert {name: steps[name].minutes for name in minutes} == pytest.approx(minutes, abs=2e-3)
    assert " --moses-threads 2 " in steps["dev.live.gz"].command
    run_models = ("phrase-table.nmt.gz", "dev.nmt.gz", "dev.rich.gz")
    assert all(" --jobs 2 " in steps[name].command for name in run_models)
    on_gpu = {step.output: step.command for step in plan_of(given, machine._replace(gpu="A GPU"), [], 2000.0).steps}
    assert all(" --jobs 1 " in on_gpu[name] for name in run_models)


@pytest.mark.parametrize(
    ("pairs", "minutes", "size"), [(19_999, 30, "small"), (20_000, 29, "small"), (20_000, 30, "medium")]
)
def test_models_are_small_for_little_text_or_time(pairs: int, minutes: int, size: str) -> None:
    given = SimpleNamespace(corpus=SimpleNamespace(text=SimpleNamespace(pairs=pairs)))
    assert run._usual_size(given, minutes) == size


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(("size", "hidden"), [("small", 192), ("medium", 384), ("paper", 1000)])
def test_models_have_the_size_that_is_given(system: Path, size: str, hidden: int) -> None:
    assert new(size=[size]) == 0
    settings = [yaml.safe_load(Path(f"hybrid/{name}.yaml").read_text()) for name in ("rnnsearch", "rnnencdec")]
    phrases = {"small": 128, "medium": 384, "paper": 1000}
    assert [one["model"]["hidden"] for one in settings] == [hidden, phrases[size]]


@pytest.fixture
def moses(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program ``moses`` on the PATH, which turns words round."""
    program = system / "programs" / "moses"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE_MOSES} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("penalty", "model", "exact"),
    [
        ("WordPenalty", "", ["WordPenalty0", "LM0={lm}"]),
        ("WordPenalty name=WP", " oov-feature=1", []),
        ("WordPenalty name=WordPenalty3", " tuneable=false", ["WordPenalty3"]),
        ("WordPenalty tuneable=false", "", ["LM0={lm}"]),
    ],
)
def test_only_listed_features_of_one_value_are_computed(
    system: Path, penalty: str, model: str, exact: list[str]
) -> None:
    """`--exact` refuses any other."""
    Path("system/lm.arpa").write_text(ARPA)
    features = f"{penalty}\nKENLM name=LM0 path=lm.arpa{model}\n"
    Path("system/moses.ini").write_text(
        INI.replace("WordPenalty\n", features).partition("[weight]")[0] + "[weight]\nTranslationModel0= 0.2 0.2\n"
    )
    lm = system / "system" / "lm.arpa"
    assert _exact(read_ini(str(system / "system" / "moses.ini"))) == tuple(one.format(lm=lm) for one in exact)


def test_a_language_model_without_kenlm_is_said_first(
    system: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("system/lm.arpa").write_text(ARPA)
    append("system/moses.ini", "[feature]\nKENLM name=LM0 order=2 path=lm.arpa\n[weight]\nLM0= 0.5\n")
    monkeypatch.setitem(sys.modules, "kenlm", None)
    assert new() == 2
    assert "an n-gram model needs KenLM's Python module" in capsys.readouterr().err.splitlines()[-1]


def test_test_sets_have_names_of_their_own() -> None:
    texts = [Text(name, "s", "t", 1, 1.0) for name in ("test2", "dev", "news", "news", "phrase-table")]
    assert [text.name for text in _named_apart(texts)] == ["test2", "test1", "test3", "test4", "test5"]


@pytest.mark.usefixtures("moses")
def test_with_moses_both_translate_live(system: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new() == 0
    assert (
        f"not used: {system}/dev.nbest: `moses` is on the PATH, and its lists are made with it\n"
        in capsys.readouterr().err
    )
    found = commands(Path("hybrid/Makefile").read_text())
    assert found[0][:4] == ["nmt-core", "serve", "--hybrid", "en-fr=hybrid.json"]
    assert sum(words[:2] == ["smt-bridge", "translate"] for words in found) == 2
    assert f"path={system}/system/table.gz" in Path("hybrid/moses.ini").read_text()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Two cores, much memory, little disk, and a speed that was measured."""
    looked_at = Machine(cores=2, memory=64 << 30, disk=4 << 30, gpu="", bfloat16=False)
    monkeypatch.setattr(run, "look_at_machine", lambda folder: looked_at)
    monkeypatch.setattr(run, "measure_speed", lambda *_, **__: 20.0)
    return looked_at


@pytest.mark.usefixtures("machine")
def test_what_will_be_done_is_said_with_its_time_and_written(system: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two of the steps run at once."""
    assert new(updates=None, minutes=["60"]) == 0
    said = capsys.readouterr().err.splitlines()[1:]  # behind a warning of the texts
    numbers = "200 pairs, 6 phrase pairs; 2 cores, 64.0 GiB of memory, no GPU"
    assert said[:2] == ["new: measuring how fast this machine trains, for half a minute", numbers]
    assert said[2] == "the steps, all in hybrid:"
    steps = [re.fullmatch(r" {5,6}(\d+) min  (.+)", line) for line in said[3:14]]
    makefile = Path("hybrid/Makefile").read_text()
    rules = makefile.replace(" \\\n\t    ", " ")
    assert all(step is not None and f"\n\t{step[2]}" in rules for step in steps)
    assert sum(int(step[1]) for step in steps if step is not None) == 105
    assert said[14:] == [
        "missing: `moses` is not on the PATH: the models are served, not the hybrid; `make serve MOSES=DIR` serves it",
        "at most about 2.0 GiB of memory and 0.1 GiB of disk",
        "about 53 minutes in all, at 20 words/s in training",
        "begin: make -C hybrid; then: make -C hybrid serve",
    ]
    assert makefile.startswith(f"# Made by `smt-bridge new` for {system}/system/moses.ini: {numbers}.\n")
    assert "\nMAKEFLAGS += --jobs=2\nexport OMP_NUM_THREADS := 1\n" in makefile
    comment = "# 125 updates of 64 examples, 40.0 epochs, take 43 minutes at 20 words/s.\n"
    assert Path("hybrid/rnnsearch.yaml").read_text().startswith(comment)
    Path("hybrid").rename("before")
    assert new(updates=None, minutes=["1"]) == 0
    assert "warning: scoring and tuning alone take about 1 minutes" in capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("needed", "problem"), [((65, 1), "65.0 GiB of memory, 64.0"), ((1, 5), "5.0 GiB of disk, 4.0")]
)
def test_models_for_which_there_is_no_room_are_said_first(
    system: Path,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    needed: tuple[int, int],
    problem: str,
) -> None:
    monkeypatch.setattr(run, "_needs", lambda *_: [size << 30 for size in needed])
    assert new() == 2
    said = capsys.readouterr().err.splitlines()[-1]
    line = f"models of size small need about {problem} GiB are free; give a smaller --size or another machine"
    assert said == f"smt-bridge new: {line}"


def test_in_bfloat16_onednn_needs_memory_for_shapes(
    system: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """RNNsearch of an hour had 4.2 GiB resident, the next training beside it 3.3."""
    small = machine._replace(bfloat16=True, memory=7 << 30)
    monkeypatch.setattr(run, "look_at_machine", lambda folder: small)
    assert new() == 2
    remedy = "give a smaller --size or another machine, or `export ONEDNN_PRIMITIVE_CACHE_CAPACITY=128`"
    line = f"need about 8.0 GiB of memory, 7.0 GiB are free; {remedy}, with which trainings are a tenth slower"
    assert capsys.readouterr().err.splitlines()[-1].endswith(line)
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
    assert new() == 0
    assert "at most about 2.8 GiB of memory" in capsys.readouterr().err


def test_the_speed_is_the_mean_of_the_readings_behind_the_first() -> None:
    training: Any = SimpleNamespace(stderr=[f"update {at}, {at},000 words/s, loss 3\n" for at in (9, 1, 4, 7)])
    assert _speed(training, "speed0.yaml") == 2500.0
    training.stderr = training.stderr[:2]  # of little text, of which the training has ended
    assert _speed(training, "speed0.yaml") == 1000.0
    training.stderr = ["data.source: no.en: cannot be read\n", "\n"]
    problem = "speed0.yaml: the training by which the speed is measured ended: data.source: no.en: cannot be read"
    with pytest.raises(InputError, match=problem):
        _speed(training, "speed0.yaml")


def test_as_many_trainings_as_will_run_are_measured_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each for five minutes at most, and none stays."""
    started: list[Any] = []
    ended: list[str] = []

    def start(command: list[str], **options: Any) -> SimpleNamespace:
        started.append((command[1:], options["cwd"], options["env"]["OMP_NUM_THREADS"]))
        lines = [f"update {at}, {at * len(started)},000 words/s, loss 3\n" for at in (9, 1, 3)]
        ends = {name: lambda name=name: ended.append(name) for name in ("kill", "wait")}
        return SimpleNamespace(stderr=lines, **ends)

    monkeypatch.setattr(subprocess, "Popen", start)
    assert measure_speed(["a.yaml", "b.yaml"], tmp_path, threads=3) == (2000 + 4000) / 2
    command = ["-m", "nmt_core", "train", "--set", "training.max_minutes=5"]
    assert started == [([*command, name], tmp_path, "3") for name in ("a.yaml", "b.yaml")]
    assert ended == ["kill", "wait"] * 2


def test_the_machine_is_what_this_process_may_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 5})
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda number: f"GPU {number}")
    found = look_at_machine(tmp_path)
    assert (found.cores, found.gpu, found.bfloat16) == (3, "GPU 0", True)
    available = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    assert available is not None and abs(found.memory - int(available[1]) * 1024) < 2 << 30
    assert abs(found.disk - shutil.disk_usage(tmp_path).free) < 2 << 30


def test_without_lists_models_and_column_are_made(system: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new(nbest=None, test=None) == 0
    assert not re.search(r"tune|rerank", Path("hybrid/Makefile").read_text().partition("\nelse\n")[2])
    command = f"moses -f {system}/system/moses.ini -n-best-list dev.nbest 100 distinct < {system}/dev.en"
    said = capsys.readouterr().err
    assert f"give `make MOSES=DIR` the folder of Moses, or make the list by `{command}`\n" in said
    assert "no --test" not in said


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (None, "no --test: the report is of the development set, whose numbers are too good"),
        (["news.en", "news.fr"],
         "missing: {}/news.en: its list is missing, it is left out; give it as the third file of --test"),
    ],
)  # fmt: skip
def test_without_a_list_of_a_test_set_the_development_set_is_judged(
    system: Path, test: list[str] | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new(test=test) == 0
    assert said.format(system) in capsys.readouterr().err.splitlines()
    assert "--report dev.html" in Path("hybrid/Makefile").read_text().partition("\nelse\n")[2]


@pytest.mark.usefixtures("machine")
def test_a_snakefile_has_the_same_steps(system: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new(workflow=["snakemake"], updates=None) == 0
    assert capsys.readouterr().err.endswith("begin: snakemake --directory hybrid -s hybrid/Snakefile\n")
    text = Path("hybrid/Snakefile").read_text()
    rules = re.split("^(?=rule )", text, flags=re.MULTILINE)[1:]
    cluster = "`snakemake --executor slurm --jobs 4` gives each rule to a cluster."
    assert f"\n# `snakemake --cores 2` does all; {cluster}\n# Then: nmt-core serve --model en-fr=rnn" in text
    assert len(rules) == 12 and rules[0] == 'rule all:\n    input: "moses.nmt.ini", "news.fr"\n\n'
    assert rules[2].splitlines() == [
        "rule step2_reverse_trained:",
        '    output: touch("reverse.trained")',
        "    threads: 1",
        "    resources: runtime=106",
        "    shell: 'OMP_NUM_THREADS={threads} nmt-core train reverse.yaml --resume 2>> reverse.log'",
        "",
    ]
    assert not Path("hybrid/Makefile").exists()
    Path("hybrid").rename("before")
    assert new(workflow=["snakemake"]) == 0
    trainings = Path("hybrid/Snakefile").read_text().partition("rule step4_")[0]
    assert trainings.count("nmt-core train") == 3 and "runtime" not in trainings  # no speed was measured


@pytest.mark.usefixtures("machine")
def test_a_module_of_ems_makes_what_the_makefile_makes(system: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new(workflow=["ems"]) == 0
    said = "begin: make -C hybrid; then: make -C hybrid serve\nor by EMS: hybrid/hybridmt.meta says how\n"
    assert capsys.readouterr().err.endswith(said)
    targets = re.findall(r"^([^\s.#][^\s:=]*):(?! ?=)", Path("hybrid/Makefile").read_text(), re.MULTILINE)
    comment, _, module = Path("hybrid/hybridmt.meta").read_text().partition("[HYBRIDMT] single\n")
    assert "`experiment.perl -meta COPY -max-active 2`" in comment and "[HYBRIDMT:moses.nmt.ini]\n" in comment
    made: list[str] = []
    for step in re.split(r"^(?=\S)", module, flags=re.MULTILINE)[1:]:
        keys = dict(line.strip().partition(": ")[::2] for line in step.splitlines()[1:])
        assert set(keys.get("in", "").split()) <= {*made}
        made.append(keys["out"])
        goal = re.fullmatch(r"make -C \$hybrid-dir ?(\S*) && .* OUT", keys["template"])
        assert goal is not None and (goal[1] or "all") in targets
        kept = f"ln -sfn $hybrid-dir/{goal[1]}" if goal[1] else "echo $hybrid-dir >"
        kept = f"echo $hybrid-dir/{goal[1]} >" if goal[1].endswith(".trained") else kept  # EMS wants content
        assert keys["template"].endswith(f" && {kept} OUT")
    assert made[-1] == "hybrid" and {"moses.nmt.ini", "weights", "news.fr"} <= {*made}


def move_sides(name: str) -> None:
    Path(f"{name}.en").rename("other")
    Path(f"{name}.fr").rename(f"{name}.en")
    Path("other").rename(f"{name}.fr")


def append(path: str, text: str) -> None:
    with open(path, "a") as stream:
        stream.write(text)


def replace(path: str, old: str, new_text: str) -> None:
    Path(path).write_text(Path(path).read_text().replace(old, new_text))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: Path("hybrid").mkdir(), "hybrid: exists; `new` overwrites nothing: give another directory"),
        (lambda: append("train.fr", "le\n"), "train.en:201: has 200 lines but train.fr has 201"),
        (lambda: move_sides("train"), "--train train.en train.fr: system/table.gz translates in the other direction"),
        (lambda: move_sides("dev"), "translates in the other direction (not en to fr); exchange the two files"),
        (lambda: move_sides("news"), "--test news.en news.fr: system/table.gz translates in the other direction"),
        (lambda: Path("train.en").write_text("der Hund\n" * 200),
         "--train train.en: 100% of its words are in no source phrase of system/table.gz; give the text that Moses"
         " was trained on, tokenised and cased as it was\n"),
        (lambda: Path("system/table.gz").unlink(), "which is not there; correct the path"),
        (lambda: append("dev.nbest", "9 ||| le ||| WordPenalty0= -1 TranslationModel0= -1 -1 ||| -1\n"),
         "smt-bridge new: correct these errors first; `smt-bridge doctor` shows them again\n"),
        (lambda: append("system/moses.ini", "[search-algorithm]\n3\n"),
         "system/moses.ini: is of a hierarchical or syntax system; train by docs/training.md and rerank its lists"
         " (docs/lists.md)\n"),
        (lambda: replace("system/moses.ini", "output-factor=0", "output-factor=0,1"),
         "moses.ini: its words have factors; use `add-features --factor` (docs/features.md)\n"),
        (lambda: Path("news.fr").unlink(), "news.fr: cannot be read (No such file or directory)"),
        (lambda: [Path(f"train.{side}").write_text("") for side in ("en", "fr")], "train.en: has no line"),
        (lambda: (Path("dev.en").unlink(), os.mkfifo("dev.en")), "dev.en: is a pipe; expected an ordinary file"),
        (lambda: Path("hybrid").symlink_to("nowhere"), "hybrid: exists"),
        (lambda: append("system/moses.ini", SECOND), "(TranslationModel0, TM1); choose one by `wire --feature NAME`"),
    ],
    ids=[
        *("exists", "lengths", "sides", "sides-of-dev", "sides-of-test", "language", "table", "list", "hierarchical"),
        *("factors", "test", "empty", "pipe", "link", "tables"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_first(
    system: Path, capsys: pytest.CaptureFixture[str], change: Callable[[], object], said: str
) -> None:
    change()
    assert new() == 2
    assert said in capsys.readouterr().err.replace(f"{system}/", "")
    assert [*Path("hybrid").glob("*")] == [] and not Path(".hybrid.hybridmt.tmp").exists()


def place(folder: str) -> dict[str, list[str] | None]:
    """The options where all texts and lists were put into a folder."""
    os.mkdir(folder)
    for name in ("train", "dev", "news"):
        for ending in ("en", "fr", "nbest"):
            os.rename(f"{name}.{ending}", f"{folder}/{name}.{ending}")
    return {
        name.strip("-"): [f"{folder}/{path}" for path in paths]
        for name, paths in GIVEN.items()
        if name in ("--train", "--dev", "--nbest", "--test")
    }


@pytest.mark.parametrize("folder", ["a --b " + "c" * 60, "$(x) #'\"%:\\{y}", "-é"])
def test_commands_and_settings_hold_any_path(system: Path, folder: str) -> None:
    assert new(**place(f"./{folder}")) == 0
    words = shlex.split(make("-n").replace("\\\n", " "))
    for option, path in [("--source", "dev.en"), ("--reference", "dev.fr"), ("--input", "news.en")]:
        assert f"{system}/{folder}/{path}" in [word for at, word in enumerate(words) if words[at - 1] == option]
    assert f"moses={system}/{folder}/dev.nbest" in words
    settings = yaml.safe_load(Path("hybrid/reverse.yaml").read_text())
    assert settings["data"]["source"] == f"{system}/{folder}/train.fr"


@pytest.mark.parametrize("folder", ["a\nb", "\udcff"])
def test_a_path_that_a_makefile_cannot_hold_is_said(system: Path, error_line: Callable[..., str], folder: str) -> None:
    assert "which a Makefile cannot hold; rename it" in error_line(new, **place(folder))


def test_a_directory_that_moses_ini_cannot_hold_is_said(system: Path, error_line: Callable[..., str]) -> None:
    for folder in ("my hybrid", "hybrid#1"):
        line = error_line(main, ["new", folder, "--moses-ini", "x", "--train", "x", "x", "--dev", "x", "x"])
        problem = "its path has blanks or #, which moses.ini and make cannot hold; give another directory"
        assert line == f"smt-bridge new: {folder}: {problem}"


def test_names_that_look_like_options_are_not_those_of_outputs(system: Path) -> None:
    for ending in ("en", "fr", "nbest"):
        os.rename(f"news.{ending}", f"-news.{ending}")
    assert new(test=["./-news.en", "./-news.fr", "./-news.nbest"]) == 0
    assert "\ntest1.fr: " in Path("hybrid/Makefile").read_text()


def test_pairs_of_the_development_set_in_the_training_text_are_said(
    system: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = set(Path("dev.en").read_text().splitlines())
    common = sum(line in known for line in Path("train.en").read_text().splitlines())
    for side in ("en", "fr"):
        append(f"train.{side}", Path(f"dev.{side}").read_text())
    assert new() == 0
    problem = (
        f"warning: train.en: {common + 6} of its pairs are in the development set: weights tuned on it do not hold"
    )
    assert capsys.readouterr().err.startswith(f"{problem} for new text; take these pairs out\n")


def test_carriage_returns_are_said(system: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replace("train.en", "\n", "\r\n")
    assert new() == 0
    assert "warning: train.en: 200 lines end in a carriage return; convert it" in capsys.readouterr().err


def test_languages_that_contradict_the_names_are_said(system: Path, error_line: Callable[..., str]) -> None:
    line = error_line(new, languages=["en", "french"])
    assert "--languages french: expected a language code of ISO 639, such as en" in line
    line = error_line(new, languages=["fr", "en"])
    assert "--languages fr en: train.en train.fr end in the other order; exchange the two" in line
    for files in (["news.en"], ["news.en", "news.fr", "news.nbest", "x"]):
        Path("x").touch()
        problem = "expected a source, its translation and perhaps an n-best list"
        assert error_line(new, test=files) == f"smt-bridge new: --test {' '.join(files)}: {problem}"
    assert "--languages en en: expected two languages" in error_line(new, languages=["en", "en"])
    line = error_line(new, train=["dev.nbest", "news.nbest"])
    assert "both names end in nbest, and --languages is missing: expected two" in line
    line = error_line(new, train=["train.en", "dev.nbest"])
    assert "a name ends in nbest, and --languages is missing: expected a language code" in line


@pytest.mark.long
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_does_all_of_it_and_goes_on(system: Path) -> None:
    assert new() == 0
    make("rnnsearch.trained")
    make()
    assert len(Path("hybrid/news.fr").read_text().splitlines()) == 4
    assert "Moses" in Path("hybrid/news.html").read_text()
    assert "Nothing to be done" in make()


@pytest.mark.long
@pytest.mark.usefixtures("moses")
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_translates_with_moses(system: Path) -> None:
    assert new() == 0
    make()
    assert len(Path("hybrid/news.hybrid").read_text().splitlines()) == 4
    assert "moses" in Path("hybrid/hybrid.json").read_text()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_takes_the_folder_of_moses(system: Path) -> None:
    """Without MOSES the models are served, with it the hybrid, of lists that Moses makes live."""
    assert new() == 0
    Path("programs").mkdir()
    Path("programs/moses").touch()
    without, given = make("-n", "serve"), make("-n", "serve", f"MOSES={system}/programs")
    assert "serve --model en-fr=rnnsearch" in without and "translate" not in without
    assert "serve --hybrid en-fr=hybrid.json" in given and "decode" not in given
    assert "--recipe hybrid.json --output hybrid.weights" in " ".join(given.replace("\\\n", " ").split())
    Path("hybrid/programs/moses").mkdir(parents=True)  # as in its sources
    wrong = subprocess.run(["make", "-C", "hybrid", "MOSES=programs"], stderr=subprocess.PIPE, text=True)
    assert wrong.returncode == 2 and "MOSES=programs: it has no program moses; give the whole path" in wrong.stderr


def make(*goals: str) -> str:
    """What make prints."""
    return subprocess.run(["make", "-C", "hybrid", *goals], check=True, stdout=subprocess.PIPE, text=True).stdout
