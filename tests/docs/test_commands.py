"""Every command line of README, documents and ``--help`` is one that the programs take."""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt_core.inference.commands.arguments import KEYS, SearchOptions
from nmt_core.inference.search.ngram_guidance import FACTORS
from tests.docs.commands import FURTHER_PAGES, PAGES, PROGRAMS, ROOT, Command, blocks, commands, parser, program_of

BENCHMARKS = sorted((ROOT / "benchmarks").glob("*.py"))


def options_of(script: Path) -> set[str]:
    """The options that a script of benchmarks/ adds to its parser."""
    return set(re.findall(r"""add_argument\(\s*"(--[a-z][a-z0-9-]*)\"""", script.read_text()))


OTHERS = {
    "fairseq and Sockeye": {"--remove-bpe", "--nbest-size"},
    "binarisers of Moses": {"--num-scores"},
    "mert and kbmira": {"--scconfig", "--ffile", "--scfile", "--ifile", "--dense-init"},
    "docker, buildah, buf and pip": {"--build-arg", "--format", "--against", "--index-url", "--no-deps"},
    "python -m scripts.deploy.envoy": {"--server"},
    "python -m tests.fuzz": {"--inputs", "--engine", "--target", "--seed", "--replay"},
    "mert-moses.pl": {"--maximum-iterations", "--mertdir", "--no-filter-phrase-table", "--predictable-seeds"},
    "snakemake": {"--executor"},
    "torchrun": {"--nnodes", "--nproc-per-node", "--max-restarts"},
    "benchmarks/": {option for path in BENCHMARKS for option in options_of(path)},
    "scripts/experiments/luong/luong": {"--data", "--out", "--list", "--table", "--lengths", "--agreement", "--epochs"},
    "scripts/experiments/phrase_column/phrase_columns": {
        "--data",
        "--moses",
        "--out",
        "--sentences",
        "--epochs",
        "--hypotheses",
        "--forward",
        "--variants",
    },
    "scripts/experiments/phrase_column/moses_effect": {"--ini", "--dev", "--test", "--seeds", "--mert", "--tune"},
    "scripts/experiments/cho2014": {"--vectors"},
    "scripts/experiments/judges/measure_scoring.py": {"--rounds"},
    "scripts/experiments/judges/train_judge.py": {"--bfloat16"},
    "scripts/experiments/merged_lists/mbr_table.py": {"--row"},
    "scripts/experiments/selection/selected_third.py": {"--messages"},
    "scripts/generate_proto.py": {"--check", "--release"},
}

USES = {
    "client": ("translate", "score", "health"),
    "prepare": ("corpus", "lines", "vocab", "select"),
    "graph": ("nbest", "search", "list-posteriors"),
}


def written() -> Iterator[tuple[str, Command]]:
    """Where a command stands, and the command."""
    for page in (*PAGES, *FURTHER_PAGES):
        for block in blocks(page.read_text()):
            for command in commands(block):
                if "\u2026" not in str(command):
                    yield page.name, command
    for name in PROGRAMS:
        for command_name in program_of(name).commands:
            for command in commands(examples_of(name, command_name)):
                yield f"{name} {command_name} --help", command


def examples_of(program: str, command: str) -> str:
    """The indented lines that ``--help`` shows from its examples on, without what is remarked behind them."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        parser(program).parse_args([command, "--help"])
    _, examples = re.split(r"^examples?:\n", shown.getvalue(), flags=re.MULTILINE)
    lines = (line for line in examples.splitlines() if line.startswith("  "))
    return "\n".join(re.sub(r"   +\(.*\)$", "", line) for line in lines)


ALL = list(written())


def test_commands_are_found() -> None:
    """Nothing is tested where nothing is found."""
    assert len(ALL) > 100
    assert {page.name for page in PAGES} >= {"README.md", "training.md"}
    assert (ROOT / "README.md").exists()


@pytest.mark.parametrize(("place", "command"), ALL, ids=[f"{place}: {command}" for place, command in ALL])
def test_a_command_is_taken(place: str, command: Command) -> None:
    args = parser(command.program).parse_args(list(command.words))
    if args.command == "serve":  # which looks at NAME=DIR after parsing
        assert all("=" in value for value in args.model)


def forms_of(command: Command) -> dict[str, str]:
    """What ``--help`` calls the values of the options of a command or a use of it."""
    part = parser(command.program)
    part.parse_args(list(command.words))
    for word in command.words:
        for action in part._actions:
            if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                part = action.choices[word]
                break
    named = (action for action in part._actions if isinstance(action.metavar, str))
    return {option: str(action.metavar) for action in named for option in action.option_strings}


def test_a_value_in_an_example_has_the_form_that_help_shows() -> None:
    """With ``=`` where this is a part of the form, as in NAME=DIR, and without it elsewhere."""
    compared = 0
    for place, command in ALL:
        forms = forms_of(command)
        for option, value in itertools.pairwise(command.words):
            form = forms.get(option, "|")
            if "|" not in form:
                always, ever = "=" in re.sub(r"\[.*?\]", "", form), "=" in form
                assert always <= ("=" in value) <= ever, f"{place}: {option} {value} is not {form}"
                compared += 1
    assert compared > 300


@functools.cache
def options() -> set[str]:
    """Every option in the usage of a command."""
    found = {"--debug", "--help", "--version"}
    for name in PROGRAMS:
        for command_name in program_of(name).commands:
            for kind in ([], *([use] for use in USES.get(command_name, ()))):
                shown = io.StringIO()
                with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
                    parser(name).parse_args([command_name, *kind, "--help"])
                found |= set(re.findall(r"--[a-z][a-z0-9-]*", shown.getvalue().partition("\n\n")[0]))
    return found


# CHANGELOG names options that went; the last page describes programs of its own.
OF_TODAY = [page for page in (*PAGES, *FURTHER_PAGES) if page.name != "CHANGELOG.md" and page.parent.name != "cho2014"]


@pytest.mark.parametrize("page", OF_TODAY, ids=lambda page: str(page.relative_to(ROOT)))
def test_an_option_that_is_named_exists(page: Path) -> None:
    """What changed, in the changelog, names options that are gone."""
    text = re.sub("^### Changed\n.*?^### ", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]\b(?!-)", text))
    assert named - options() - set().union(*OTHERS.values()) == set()


def benchmarks_named(text: str) -> Iterator[tuple[str, set[str]]]:
    """Every call of a benchmark in a page, in a block or in a line: its path and its options."""
    fences = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    for piece in (*(line for fence in fences for line in fence.replace("\\\n", " ").splitlines()), *spans):
        for path, rest in re.findall(r"\b(benchmarks/\w+\.py)((?:\s[^&|;]*)?)", piece):
            yield path, set(re.findall(r"(?<!\S)--[a-z][a-z0-9-]*", rest))


@pytest.mark.parametrize("page", [*PAGES, *FURTHER_PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_benchmark_that_is_named_has_these_options(page: Path) -> None:
    for path, named in benchmarks_named(page.read_text()):
        assert named <= options_of(ROOT / path), path


def test_every_key_of_search_is_in_help_and_in_a_guide() -> None:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        parser("nmt-core").parse_args(["decode", "--help"])
    guide = (ROOT / "docs" / "decoding.md").read_text()
    for key in KEYS:
        assert re.search(rf"^  {key}\b", shown.getvalue(), re.MULTILINE), key
        assert re.search(rf"\b{key}\b", guide), key
    said = dict(re.findall(r"^  (\w+)=\S+ .*\(([\d.,]+)[;)]", shown.getvalue(), re.MULTILINE))
    assert (said.pop("batch_tokens"), said.pop("guidance_factors")) == ("1000", ",".join(f"{one:g}" for one in FACTORS))
    assert said == {key: f"{value:g}" for key, value in SearchOptions() if key in said}
    assert len(said) == 6


def actions_of(part: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of a parser and of its commands."""
    for action in part._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from actions_of(command)
        else:
            yield action


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_default_that_help_names_is_the_options_own(name: str) -> None:
    """It ends the help of an option, where it is not worked out later, nor standard input or output."""
    named, later = 0, set[str]()
    for command in program_of(name).commands:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            parser(name).parse_args([command, "--help"])
    for action in actions_of(parser(name)):
        said = re.search(r"\((?:default: )?([^()]+)\)$", action.help or "")
        if said and type(action.default) in (int, float, str) and action.default not in ("", "-"):
            default = action.default if isinstance(action.default, str) else f"{action.default:g}"
            assert said[1] == default or said[1].startswith(f"{default}: "), action.option_strings
            named += 1
        elif said and re.search(r"\b\d", said[1]) and not action.default:
            later.add(f"{action.option_strings[-1]} {said[1]}")
    assert named > 10
    if name == "nmt-core":  # what the commands work out themselves
        usual = {"--max-words 100", "--candidates 10", "--beam 12, or N of --nbest if more"}
        assert later == {*usual, "--processes 1, or those of torchrun", "--null IBM Model 1 wants them"}


def test_the_form_of_a_value_is_the_one_that_the_guides_explain() -> None:
    for command in program_of("nmt-core").commands:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            parser("nmt-core").parse_args([command, "--help"])
    named = [action for action in actions_of(parser("nmt-core")) if action.option_strings]
    found = {f"{action.option_strings[-1]} {action.metavar}" for action in named if isinstance(action.metavar, str)}
    assert {form for form in found if re.search(r"[^\w -]|-B$", form.partition(" ")[2])} == {
        "--model DIR[,DIR...]", "--model NAME=DIR", "--lm F=WEIGHT", "--candidates NAME=K[,L]", "--lexicon NAME=FILE",
        "--hybrid NAME=RECIPE", "--address HOST:PORT", "--keep SHARE|N|Nwords", "--weights START:STOP:STEP",
        "--engine local|ray[,gpus=F][,address=A]", "--shards A-B", "--set KEY=VALUE", "--limit KEY=VALUE",
        "--search KEY=VALUE", "--output F.json",
    }  # fmt: skip
