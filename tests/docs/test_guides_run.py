"""The commands of docs/guide-moses.md and docs/recipes.md run as they are written, on little data."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pytest
import yaml

from nmt_core.training.config import RunConfig
from nmt_core.training.run import with_recipe
from tests.docs.commands import ROOT, blocks, section
from tests.docs.newcomer import EXAMPLE, SENTENCES, beginning, run_here
from tests.numpy_transformer import NumpyTransformer
from tests.small_moses import decoder, needs_moses
from tests.smt_bridge.hybrid.small_hybrid import fake_moses

pytestmark = pytest.mark.slow
GUIDE, RECIPES = ROOT / "docs" / "guide-moses.md", ROOT / "docs" / "recipes.md"
SMALL = {"hidden": 8, "embedding": 8, "maxout": 4}
SHORT = {"max_updates": 2, "validate_every": 2, "batch_sentences": 8}


def settings_of(page: Path) -> list[dict[str, dict[str, object]]]:
    """The files of settings that a page shows."""
    return [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.M | re.DOTALL)]


def make_system(folder: Path) -> None:
    """A Moses system under the names of the pages, and their settings with smaller numbers."""
    for split in ("train", "dev", "test"):
        for language in ("en", "fr"):
            for kind in ("", "tok."):
                packed = (EXAMPLE / "data" / f"{split}.{kind}{language}.gz").read_bytes()
                text = gzip.decompress(packed).splitlines(keepends=True)[:SENTENCES]
                (folder / f"{split}.{kind}{language}").write_bytes(b"".join(text))
        if split != "train":
            lists = beginning(EXAMPLE / "moses" / f"{split}.nbest50.gz")
            (folder / f"{split}.nbest.gz").write_bytes(gzip.compress(lists))
    (folder / "test.en").rename(folder / "new.en")
    for path in (EXAMPLE / "moses").iterdir():
        if "table" in path.name:
            (folder / path.name).write_bytes(gzip.compress(beginning(path)))
        elif path.name.startswith("lm."):
            (folder / path.name).write_bytes(path.read_bytes())
    for name in ("moses.ini", "tuned.ini"):
        (folder / name).write_bytes((EXAMPLE / "moses" / "moses.ini").read_bytes())
    for settings in (*settings_of(GUIDE), *settings_of(RECIPES)):
        settings["model"] |= SMALL | ({"alignment": 8} if "alignment" in settings["model"] else {})
        settings["training"] |= SHORT
        settings["data"] |= {"hold_out": 8} if "hold_out" in settings["data"] else {}
        (folder / f"{Path(str(settings['folder'])).name}.yaml").write_text(yaml.safe_dump(settings))


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system in the current folder."""
    make_system(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.mark.parametrize("make_moses", [fake_moses, pytest.param(decoder, marks=needs_moses)])
@pytest.mark.timeout(900)  # sixteen commands, on a busy machine
def test_the_guide_from_the_first_command_to_the_last(system: Path, make_moses) -> None:
    make_moses(system)
    run_here("".join(blocks(section(GUIDE, "1. Look at the system"))))
    run_here("".join(blocks(section(GUIDE, "2. Train"))))
    run_here("".join(blocks(section(GUIDE, "3. A column in the phrase table"))))
    assert "num-features=5" in (system / "nmt.ini").read_text()
    run_here("".join(blocks(section(GUIDE, "4. Lists with neural features"))))
    run_here("".join(blocks(section(GUIDE, "5. Tune and rerank"))))
    assert len((system / "test.best.fr").read_text().splitlines()) == SENTENCES
    assert (system / "report.html").exists()
    run_here("".join(blocks(section(GUIDE, "6. Merge, and deploy"))))
    assert len((system / "test.fr").read_text().splitlines()) == SENTENCES


def test_each_recipe_runs_by_itself(system: Path) -> None:
    (system / "moses.ini").unlink()
    run_here("".join(blocks(section(RECIPES, "Only a phrase table"))))
    assert (system / "table.html").exists()
    run_here("".join(blocks(section(RECIPES, "Only n-best lists"))))
    assert len((system / "test.best.fr").read_text().splitlines()) == SENTENCES
    run_here("".join(blocks(section(RECIPES, "Only text"))))
    assert len((system / "logprobs").read_text().splitlines()) == SENTENCES


def test_a_transformer_judges_lists(system: Path) -> None:
    """Its directory, which a converter makes of a model from the network, is a small one here."""
    words = (system / "dev.tok.en").read_text().split() + (system / "dev.tok.fr").read_text().split()
    NumpyTransformer(list(dict.fromkeys(words))).write(system / "opus-mt-en-fr")
    run_here("".join(blocks(section(RECIPES, "A Transformer as a judge"))))
    assert len((system / "test.judged.fr").read_text().splitlines()) == SENTENCES
    assert len(section(RECIPES, "A Transformer as a judge").splitlines()) <= 40


@pytest.mark.parametrize("page", [GUIDE, RECIPES], ids=lambda page: page.name)
def test_every_model_that_a_page_uses_is_trained_in_it(page: Path) -> None:
    settings = settings_of(page)
    used = set(re.findall(r"(?:scorer|--model|nmtreverse:)[ ]?(runs/\w+)", page.read_text()))
    assert used == {one["folder"] for one in settings}
    for one in settings:
        RunConfig.from_mapping(with_recipe(one), origin=page.name)
        name = str(one["folder"]).removeprefix("runs/")
        assert f"`{name}.yaml`" in page.read_text()
        assert f"nmt-core train {name}.yaml" in page.read_text()
