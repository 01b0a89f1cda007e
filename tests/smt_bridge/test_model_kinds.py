"""Language models are refused where the source counts, and models that read a source where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt_core.base.interfaces import LANGUAGE_MODELS
from nmt_core.commands.main import main as nmt_core
from nmt_core.models.presets import PRESETS
from smt_bridge.commands.main import main
from smt_bridge.errors import WiringError
from smt_bridge.model_checks import check_kind

pytestmark = pytest.mark.usefixtures("quick_processes")
SIZES = {
    "rnnencdec": ("hidden=8", "embedding=4", "maxout=4"),
    "rnnlm": ("hidden=8", "embedding=4"),
    "cslm-cho2014": ("hidden=[8,6]", "embedding=4"),
}
TABLE = "deux ||| two ||| 1 1 1 1 ||| ||| 9 9 9\n" + "".join(
    f"un un un un ||| {word} ||| 0.3 0.3 0.3 0.3 ||| ||| 9 9 3\n" for word in ("one", "one two", "two")
)
READS = (
    "needs a model that reads the source; this is a language model, for --feature rnnlm:DIR or cslm:DIR and for"
    " nmt-core decode --lm ("
)
IS_ONE = "needs a language model, such as nmt-core train makes of data.text; this one reads a source ("


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of each kind, a table, and a list with the phrases used."""
    place = tmp_path_factory.mktemp("kinds")
    for name, words in (("fr", "un\ndeux\n"), ("en", "one\ntwo\n"), ("none", "")):
        (place / name).write_text(f"</s>\n<unk>\n{words}")
    for preset, sizes in SIZES.items():
        source = "fr" if preset == "rnnencdec" else "none"
        words = ["--source-vocab", str(place / source), "--target-vocab", str(place / "en")]
        sets = [argument for size in sizes for argument in ("--set", f"model.{size}")]
        assert nmt_core(["init", str(place / preset), "--preset", preset, *words, *sets]) == 0
    (place / "table").write_text(TABLE)
    (place / "source").write_text("un deux\n")
    (place / "list").write_text("0 ||| one |0-0| two |1-1| ||| A= -1 ||| -1\n")
    assert main(["rescore-table", str(place / "table"), "--scorer", str(place / "rnnencdec"),
                 "--output", str(place / "nmt"), "--jobs", "1", "--quiet"]) == 0  # fmt: skip
    return place


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("rescore-table table --jobs 1 --scorer cslm-cho2014", f"p(target|source) {READS}"),
        ("rescore-table table --jobs 1 --scorer rnnencdec --reverse-scorer rnnlm", f"p(source|target) {READS}"),
        ("add-features --source source --nbest list --scorer rnnlm", f"NMT0 {READS}"),
        ("add-features --source source --nbest list --reverse-scorer cslm-cho2014", f"NMTreverse0 {READS}"),
        ("add-features --source source --nbest list --feature nmtnorm:rnnlm", f"NMTnorm0 {READS}"),
        ("add-features --source source --nbest list --feature phrases:rnnlm", f"NMTphrases0 {READS}"),
        ("add-features --source source --nbest list --feature phrasesreverse:rnnlm", f"NMTphrasesreverse0 {READS}"),
        ("add-features --source source --nbest list --feature cslm:rnnencdec", f"CSLM0 {IS_ONE}"),
        ("add-features --source source --nbest list --feature rnnlm:rnnencdec", f"RNNLM0 {IS_ONE}"),
    ],
)
def test_a_model_of_the_other_kind_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error_line, command: str, said: str
) -> None:
    monkeypatch.chdir(folder)
    assert said in error_line(main, [*command.split(), "--output", str(tmp_path / "new")])
    assert not (tmp_path / "new").exists()


def test_either_kind_of_language_model_may_score_hypotheses(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(folder)
    command = "add-features --source source --nbest list --feature rnnlm:rnnlm --feature cslm:cslm-cho2014 --quiet"
    assert main([*command.split(), "--output", str(tmp_path / "new")]) == 0
    assert " RNNLM0= " in (tmp_path / "new").read_text()


def test_types_and_signatures_agree() -> None:
    assert {name for name, config in PRESETS.items() if config.type in LANGUAGE_MODELS} == {"rnnlm", "cslm-cho2014"}
    assert {config.type for config in PRESETS.values()} >= LANGUAGE_MODELS


def test_ensembles_and_other_scorers() -> None:
    check_kind("LM0", "nmt:cslm+rnnlm|model:0a+0b", language_model=True)
    with pytest.raises(WiringError, match="needs a model that reads the source"):
        check_kind("NMT0", "feature:nmt|nmt:cslm+cslm|model:0a+0b", language_model=False)
    for wanted in (True, False):
        check_kind("X0", "my:scorer|model:rnnlm", language_model=wanted)
