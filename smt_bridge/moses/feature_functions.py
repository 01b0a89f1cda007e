"""Lines of a ``moses.ini`` as the decoder reads them: sections, comments, and the features of ``[feature]``.

``#`` begins a comment anywhere, a line beginning with ``[`` begins a section, and what stands before
the first section belongs to none. A section may come several times; its lines add up.

>>> section_lines([b"[weight] # tuned", b"LM0= 0.5 # ln", b"", b"[threads]", b"2"], "weight")
[(2, b'LM0= 0.5')]

A line of ``[feature]``:

::

    PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=phrase-table.gz input-factor=0 output-factor=0

A feature without ``name=`` is called by its class and a running number.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from nmt_core.base.words import whole_number
from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import split_tokens

BLANKS = b" \t\r"
DIRECT = 2
"""The place of p(target | source) among the scores of a phrase table: by it targets are ranked."""


def code_of(line: bytes) -> bytes:
    """The line without its comment and outer blanks."""
    return line.partition(b"#")[0].strip(BLANKS)


def section_name(code: bytes) -> str | None:
    """The name in ``[name]``; None for a line that begins no section."""
    if not code.startswith(b"["):
        return None
    return code[1:].partition(b"]")[0].decode("utf-8", "surrogateescape")


def sections(lines: Iterable[bytes]) -> Iterator[tuple[str, int, bytes]]:
    """Every line that holds a setting: its section ("" before the first), its number from 1, and its code."""
    current = ""
    for number, raw in enumerate(lines, start=1):
        code = code_of(raw)
        name = section_name(code)
        if name is not None:
            current = name
        elif code:
            yield current, number, code


def section_lines(lines: Iterable[bytes], name: str) -> list[tuple[int, bytes]]:
    """The settings of all sections ``[name]`` with the numbers of their lines."""
    return [(number, code) for section, number, code in sections(lines) if section == name]


Role = Literal["text", "binary", "combination", "computed", "lm", "other"]
_TABLES: tuple[Role, ...] = ("text", "binary", "combination", "computed")


class FeatureKind(NamedTuple):
    """Facts about one class of feature functions.

    ``scores`` is their number where the line has no ``num-features`` (None: only the decoder knows).
    ``paths`` are the options that name files. ``endings`` are what the decoder puts behind ``path``, any of which
    will do (``{L1}`` stands for the option of that name); ``parts`` must be in the folder that ``path`` is.
    ``members`` is the option that names the combined tables. ``made_by`` is the command that makes a binary
    table (``table``, ``stem``, ``scores``, ``source_factors``, ``target_factors``; ``rank``, the score that it ranks
    targets by, from 0, and ``other_rank``, the option for one that is not 2); ``made_as`` is what it adds to the name.
    """

    role: Role = "other"
    scores: int | None = 1
    paths: tuple[str, ...] = ("path",)
    endings: tuple[str, ...] = ("", ".gz")
    parts: tuple[str, ...] = ()
    members: str = ""
    made_by: str = ""
    made_as: str = ""
    tuneable: bool = True

    @property
    def is_table(self) -> bool:
        """Whether it gives translations of phrases."""
        return self.role in _TABLES

    @property
    def takes_columns(self) -> bool:
        """Whether a column of scores can be added to its table."""
        return self.role in ("text", "binary")


_EXACT = ("",)
_LANGUAGE_MODEL = FeatureKind("lm", endings=_EXACT)
_SPARSE = FeatureKind(scores=0)
_COMPUTED = FeatureKind("computed", scores=None, endings=_EXACT)
_SAMPLING = FeatureKind("computed", scores=None, paths=("path", "base"), endings=("{L1}.mct", "{L1}.txt"))
_TWO_SCORES = """
    HyperParameterAsWeight PhraseDistanceFeature SourceGHKMTreeInputMatchFeature TargetConstituentAdjacencyFeature
    TargetPreferencesFeature UnalignedWordCountFeature
"""
_ONLY_SPARSE = """
    ControlRecombination CorrectionPattern GlobalLexicalModelUnlimited PhraseBoundaryFeature PhraseLengthFeature
    PhrasePairFeature ReferenceComparison SetSourcePhrase SoftMatchingFeature SourceWordDeletionFeature
    SparseHieroReorderingFeature TargetBigramFeature TargetNgramFeature TargetWordInsertionFeature TreeStructureFeature
    WordTranslationFeature
"""

_KINDS: dict[str, FeatureKind] = {
    "PhraseDictionaryMemory": FeatureKind("text", endings=_EXACT),
    "PhraseDictionaryCompact": FeatureKind(
        "binary",
        endings=(".minphr",),
        made_by="processPhraseTableMin -in {table} -out {stem} -nscores {scores}{other_rank}",
    ),
    "ProbingPT": FeatureKind(
        "binary",
        endings=_EXACT,
        parts=("TargetColl.dat", "TargetVocab.dat", "Alignments.dat", "probing_hash.dat", "source_vocabids", "config"),
        made_by="CreateProbingPT --input-pt {table} --output-dir {stem}.probing --num-scores {scores}",
        made_as=".probing",
    ),
    "PhraseDictionaryOnDisk": FeatureKind(
        "binary",
        endings=_EXACT,
        parts=("Misc.dat", "Source.dat", "TargetColl.dat", "TargetInd.dat", "Vocab.dat"),
        made_by="CreateOnDiskPt {source_factors} {target_factors} {scores} 20 {rank} {table} {stem}.ondisk",
        made_as=".ondisk",
    ),
    "PhraseDictionaryBinary": FeatureKind(
        "binary",
        endings=(".binphr.idx",),
        made_by="processPhraseTable -ttable 0 0 {table} -out {stem} -nscores {scores}",
    ),
    "PhraseDictionaryScope3": FeatureKind("text", endings=_EXACT),
    "RuleTable": FeatureKind("text", endings=_EXACT),
    "PhraseDictionaryGroup": FeatureKind("combination", paths=(), members="members"),
    "PhraseDictionaryMultiModel": FeatureKind("combination", paths=(), members="components"),
    "PhraseDictionaryMultiModelCounts": FeatureKind("combination", paths=(), members="components"),
    "PhraseDictionaryALSuffixArray": _COMPUTED,
    "PhraseDictionaryFuzzyMatch": _COMPUTED._replace(paths=("path", "source", "target", "alignment")),
    "PhraseDictionaryDynSuffixArray": _COMPUTED._replace(paths=("path", "target-path", "alignment-path")),
    "PhraseDictionaryTransliteration": _COMPUTED._replace(scores=1, paths=("path", "script-dir", "external-dir")),
    "PhraseDictionaryDynamicCacheBased": FeatureKind("computed", paths=("cbtm-file",)),
    "PhraseDictionaryCache": FeatureKind("computed", paths=()),
    "PhraseDictionaryMemoryPerSentence": FeatureKind("computed", paths=()),
    "PhraseDictionaryMemoryPerSentenceOnDemand": FeatureKind("computed", paths=()),
    "PhraseDictionaryBitextSampling": _SAMPLING,
    "Mmsapt": _SAMPLING,
    "LexicalReordering": FeatureKind(scores=None, endings=("", ".gz", ".minlexr", ".binlexr.idx")),
    "Generation": FeatureKind(),
    "InputFeature": FeatureKind(scores=None),
    "EditOps": FeatureKind(scores=None),
    "OpSequenceModel": FeatureKind(scores=5, endings=_EXACT),
    "DsgModel": FeatureKind(scores=5, endings=_EXACT),
    "UnknownWordPenalty": FeatureKind(tuneable=False),
    **dict.fromkeys(
        ("KENLM", "SRILM", "IRSTLM", "RANDLM", "DALM", "MaxEntLM", "NeuralLM", "RDLM", "ReloadingLM", "OxLM"),
        _LANGUAGE_MODEL,
    ),
    **dict.fromkeys(("PhraseOrientationFeature", "SoftSourceSyntacticConstraintsFeature"), FeatureKind(scores=6)),
    **dict.fromkeys(_TWO_SCORES.split(), FeatureKind(scores=2)),
    **dict.fromkeys(_ONLY_SPARSE.split(), _SPARSE),
}


def kind_of(name: str) -> FeatureKind:
    """The facts about a class of that name."""
    if name in _KINDS:
        return _KINDS[name]
    return _SPARSE if name.startswith("VWFeature") else FeatureKind()


def find_file(kind: FeatureKind, path: str, options: Mapping[str, str]) -> str | None:
    """The file or folder that ``path=`` of such a feature means; None where it is not there."""
    for ending in kind.endings:
        behind = ending.replace("{L1}", options.get("L1", ""))
        name = path if path.endswith(behind) else path + behind
        if os.path.exists(name):
            return name
    return None


def missing_parts(kind: FeatureKind, folder: str) -> list[str]:
    """What ought to be in the folder of a binary table and is not."""
    return [part for part in kind.parts if not os.path.exists(os.path.join(folder, part))]


def binarised_kind(path: str) -> str | None:
    """The class that reads a binarised table, by the name of its file or what is in its folder; None for other files.

    >>> binarised_kind("phrase-table.minphr")
    'PhraseDictionaryCompact'
    """
    for name, kind in _KINDS.items():
        if kind.role != "binary":
            continue
        if os.path.isdir(path) and not missing_parts(kind, path) if kind.parts else path.endswith(kind.endings[0]):
            return name
    return None


def binary_scores(kind: str, folder: str) -> int | None:
    """The number of scores that a ProbingPT or OnDisk table says it has; None for other kinds and where it does not.

    >>> binary_scores("PhraseDictionaryCompact", "table") is None
    True
    """
    file, key = {"ProbingPT": ("config", b"num_scores"), "PhraseDictionaryOnDisk": ("Misc.dat", b"NumScores")}.get(
        kind, ("", b"")
    )
    path = os.path.join(folder, file)
    if not file or not os.path.isfile(path):
        return None
    with open(path, "rb") as stream:
        for line in stream.read(4096).split(b"\n"):
            words = line.split()
            if len(words) == 2 and words[0] == key and words[1].isdigit():
                return int(words[1])
    return None


BEFORE_2013 = (
    "has its tables and weights in [ttable-file] and [weight-t], as before 2013; convert it with Moses'"
    " scripts/training/convert-moses-ini-to-v2.perl"
)
"""The problem and the remedy."""
_OLD_SECTIONS = ("ttable-file", "weight-t", "weight-l", "weight-d", "weight-w")


def is_before_2013(lines: Sequence[bytes]) -> bool:
    """Whether tables and weights stand in sections of their own, not in ``[feature]`` and ``[weight]``."""
    names = {section for section, _, _ in sections(lines)}
    return not names & {"feature", "weight"} and not names.isdisjoint(_OLD_SECTIONS)


_MOST_SCORES = 10_000  # of one feature
_FALSE = ("0", "false", "no", "n", "f", "off")


class FeatureFunction(NamedTuple):
    """One line of the ``[feature]`` section; ``line`` counts from 1."""

    kind: str
    name: str
    options: dict[str, str]
    line: int

    @property
    def facts(self) -> FeatureKind:
        """What is known of its class."""
        return kind_of(self.kind)

    @property
    def scores(self) -> int | None:
        """The number of its scores; None where only the decoder knows it."""
        if self.facts.role == "lm":
            return 1 + self.switch("oov-feature")
        return int(self.options["num-features"]) if "num-features" in self.options else self.facts.scores

    @property
    def num_features(self) -> int:
        """The number of its scores, 1 where only the decoder knows it."""
        return 1 if self.scores is None else self.scores

    @property
    def is_glue_grammar(self) -> bool:
        """Whether it is the glue grammar of a chart decoder, by its name, as filter-model-given-input.pl decides."""
        return "glue-grammar" in self.options.get("path", "")

    @property
    def is_tuneable(self) -> bool:
        """Whether n-best lists show it and tuners find its weights."""
        return is_true(self.options["tuneable"]) if "tuneable" in self.options else self.facts.tuneable

    def switch(self, key: str) -> bool:
        """Whether an option is given and on."""
        return is_true(self.options.get(key, "false"))

    def listed(self, weights: Sequence[float]) -> tuple[float, ...]:
        """Those of its weights whose scores n-best lists show (``tuneable``, ``tuneable-components``)."""
        if not self.is_tuneable:
            return ()
        flags = self.options.get("tuneable-components", "").split(",")
        if len(flags) != len(weights):
            return tuple(weights)
        return tuple(weight for weight, flag in zip(weights, flags, strict=True) if is_true(flag))

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the tables that it combines."""
        named = self.options.get(self.facts.members, "") if self.facts.members else ""
        return tuple(named.split(",")) if named else ()


def is_true(text: str) -> bool:
    """A switch as the decoder reads it."""
    return text.lower() not in _FALSE


def parse_features(lines: Sequence[bytes], *, path: str) -> tuple[FeatureFunction, ...]:
    """The feature functions, in order; raises FormatError, naming the line of ``path``, for a malformed one."""
    unnamed: Counter[str] = Counter()
    found = []
    for number, code in section_lines(lines, "feature"):
        kind, options = _parse_feature(path, number, code)
        name = options.get("name")
        if name is None:
            name = f"{kind}{unnamed[kind]}"
            unnamed[kind] += 1
        found.append(FeatureFunction(kind, name, options, number))
    return tuple(found)


def _parse_feature(path: str, number: int, code: bytes) -> tuple[str, dict[str, str]]:
    kind, *pairs = [token.decode("utf-8", "surrogateescape") for token in split_tokens(code)]
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key in options:
            problem = "is given twice" if equals else "is not of the form key=value"
            raise FormatError(path, f"`{pair[:80]}` {problem}; Moses would stop here", line=number)
        options[key] = value
    count = whole_number(options.get("num-features", "1"))
    if count is None or count > _MOST_SCORES:
        problem = f"num-features={options['num-features'][:40]} is not a number up to {_MOST_SCORES:,}"
        raise FormatError(path, problem, line=number)
    return kind, options
