"""Every feature is found by its name, those of other packages too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScorer
from smt_bridge.features.annotate import annotate, column_names
from smt_bridge.features.base import Candidates, Feature
from smt_bridge.features.lengths import WordCount
from smt_bridge.features.registry import BUILT_IN, SharedScorers, compares_hypotheses, numbered, open_feature
from smt_bridge.models import open_model
from smt_bridge.nbest.moses import parse_entry
from tests.fakes import LengthPairScorer

COLUMNS = {
    "nmt": "NMT",
    "nmtnorm": "NMTnorm",
    "nmtmin": "NMTmin",
    "nmtunk": "NMTunk",
    "coverage": "NMTcoverage NMTuncovered",
    "nmtreverse": "NMTreverse",
    "phrases": "NMTphrases",
    "phrasesreverse": "NMTphrasesreverse",
    "rnnlm": "RNNLM",
    "cslm": "CSLM CSLMunk",
    "kenlm": "KENLM KenLMoov",
    "wordcount": "WordCount",
    "lengthratio": "LengthRatio LengthRatiolog",
    "model1": "ModelOne",
    "mbrbleu": "MBRBLEU",
}

PACKAGE = '''
class Question:
    """1 where a hypothesis ends as the argument."""

    signature = "feature:question"

    def __init__(self, end):
        self.names = ("Question0",)
        self.end = end

    def compute(self, groups):
        return [[(float(text.endswith(self.end)),) for text in group.hypotheses] for group in groups]


def broken(argument):
    raise KeyError(argument)


def nothing(argument):
    return None
'''
ENTRY_POINTS = """[smt_bridge.features]
question = question_feature:Question
broken = question_feature:broken
nothing = question_feature:nothing
absent = question_feature:absent
wordcount = question_feature:broken
"""


MORE = ["absent", "broken", "nothing", "question"]


class Opened:
    """Opens fakes and keeps count."""

    def __init__(self) -> None:
        self.scorers: dict[str, LengthPairScorer] = {}

    def __call__(self, spec: str) -> PairScorer:
        assert spec not in self.scorers
        self.scorers[spec] = LengthPairScorer(0.5 if spec == "a" else 1.0)
        return self.scorers[spec]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with features, as pip would leave it."""
    (tmp_path / "question_feature.py").write_text(PACKAGE)
    information = tmp_path / "question_feature-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: question-feature\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("question_feature", None)


@pytest.mark.usefixtures("installed")
def test_feature_of_another_package_is_a_column() -> None:
    feature = open_feature("question:?", SharedScorers(open_model))
    assert feature.names == ("Question0",)
    assert feature.compute([Candidates("", ["what ?", "that"])]) == [[(1.0,), (0.0,)]]
    assert open_feature("question:a:b", SharedScorers(open_model)).compute([Candidates("", ["x a:b"])]) == [[(1.0,)]]
    assert isinstance(open_feature("wordcount", SharedScorers(open_model)), WordCount)  # a built-in name wins


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "said"),
    [("broken:x", r"KeyError\('x'\)"), ("nothing", "no names, signature, compute"), ("absent", "AttributeError")],
)
def test_feature_that_cannot_be_made_is_named_with_its_home(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=rf"feature '{name.partition(':')[0]}' \(question_feature:\w+\) .*{said}"):
        open_feature(name, SharedScorers(open_model))


def test_which_features_need_the_lines_of_a_sentence_together() -> None:
    """Those of other packages may, too."""
    specs = ("mbrbleu", "mbrbleu:posterior:2", "question:x", "wordcount", "nmt:a", "kenlm:a")
    assert [spec for spec in specs if compares_hypotheses(spec)] == [*specs[:3]]


@pytest.mark.usefixtures("installed")
def test_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(
        ConfigError, match=f"^there is no feature 'coverrage'; there are {', '.join([*COLUMNS, *MORE])}$"
    ):
        open_feature("coverrage:x", SharedScorers(open_model))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("coverage", "needs an argument: coverage:SPEC"),
        ("nmt:", "needs an argument: nmt:SPEC"),
        ("kenlm", "needs an argument: kenlm:FILE"),
        ("model1", "needs an argument: model1:LEX.F2E"),
        ("wordcount:3", "takes no argument"),
    ],
)
def test_a_missing_or_needless_argument_is_shown(spec: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_feature(spec, SharedScorers(open_model))


def test_columns_are_those_the_catalogue_promises() -> None:
    assert BUILT_IN.keys() == COLUMNS.keys()
    opened = Opened()
    scorers = SharedScorers(opened)
    for name, built_in in BUILT_IN.items():
        if built_in.argument.isupper() and built_in.argument != "SPEC":
            continue  # of a file: their own tests
        feature = open_feature(f"{name}:a" if built_in.argument == "SPEC" else name, scorers)
        assert feature.names == tuple(f"{stem}0" for stem in COLUMNS[name].split(" "))
        rows = feature.compute(
            [Candidates("s t", ["x", "y z", ""], phrases=[[], [], []]), Candidates("", [], phrases=[])]
        )
        assert [len(row) for row in rows[0]] == [len(feature.names)] * 3
        assert feature.signature.startswith("feature:")
    assert list(opened.scorers) == ["a"]


def test_all_columns_of_a_scorer_come_from_one_call() -> None:
    opened = Opened()
    scorers = SharedScorers(opened)
    names = ("nmt", "nmtnorm", "nmtmin", "nmtunk", "coverage", "nmtreverse", "rnnlm")
    features = [open_feature(f"{name}:a", scorers) for name in names]
    for feature in features:
        feature.compute([Candidates("s t", ["x", "y z"]), Candidates("u", ["x"])])
    assert opened.scorers["a"].calls == [(3, True, True), (3, False, False), (2, False, False)]


def test_example_of_the_documentation_works() -> None:
    page = (Path(__file__).parents[3] / "docs" / "extending.md").read_text()
    written: dict[str, Callable[[str], Feature]] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], written)
    entry = annotate(
        [parse_entry(b"0 ||| oui .", path="list", number=1)], [written["Questions"]("")], ["yes ?"], path=""
    )
    assert [each.features for each in entry] == [{"Question0": (1.0,)}]


def test_every_name_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "features.md").read_text()
    assert [name for name in BUILT_IN if f"`{name}" not in page] == []
    assert [stem for columns in COLUMNS.values() for stem in columns.split(" ") if f"`{stem}" not in page] == []


def test_a_second_column_of_a_name_has_the_next_number() -> None:
    scorers = SharedScorers(Opened())
    specs = ("nmt:a", "nmt:b", "coverage:b", "nmtreverse:a", "nmt:c", "coverage:a")
    features = numbered([open_feature(spec, scorers) for spec in specs])
    assert column_names(features) == (
        *("NMT0", "NMT1", "NMTcoverage0", "NMTuncovered0", "NMTreverse0"),
        *("NMT2", "NMTcoverage1", "NMTuncovered1"),
    )
    first, second = (feature.compute([Candidates("", ["x"])])[0][0][0] for feature in features[:2])
    assert (first, second) == (-1.0, -2.0)
    assert "direction:forward" in features[1].signature
