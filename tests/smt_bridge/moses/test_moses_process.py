"""The pipes of a running Moses: complete lists in order, and what happens when it dies, hangs or never loads."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from nmt_core.base.errors import ConfigError
from smt_bridge.moses.process import MosesChild, MosesFailed, MosesOptions, MosesProcess, check_further_options
from tests.smt_bridge.hybrid.small_hybrid import fake_moses


@pytest.fixture
def options(moses: str) -> MosesOptions:
    return MosesOptions(program=moses, timeout=20.0)


def turned(*words: str) -> list[bytes]:
    texts = dict.fromkeys([" ".join(word[::-1] for word in words), " ".join(reversed(words))])
    return [
        f"{text}  ||| LM0= -{place}.5 WordPenalty0= -{len(words)} ||| -{place}".encode()
        for place, text in enumerate(texts)
    ]


def test_lists_come_complete_and_in_order(options: MosesOptions) -> None:
    with MosesProcess(options) as moses:
        many = [f"ab{number} cd".encode() for number in range(300)]
        assert moses.translate(many) == [turned(f"ab{number}", "cd") for number in range(300)]
        assert moses.translate([b"one more"]) == [turned("one", "more")]
        assert moses.translate([]) == []
        assert moses.restarts == moses.given_up == 0


def test_lists_have_the_names_of_features_whatever_the_ini_says(options: MosesOptions) -> None:
    """And every other option of Moses, with the defaults of docs/hybrid.md."""
    more = "-n-best-list /dev/fd/3 100 distinct -n-best-factor 100 -labeled-n-best-list true -output-unknowns /dev/fd/4"
    command = f"moses -f moses.ini -v 0 -threads 1 {more}".split()
    assert MosesOptions().command(3, 4) == command
    graphs = [*command, "-output-search-graph-extended", "/dev/fd/5", "-tt"]
    assert MosesOptions(more=("-tt",)).command(3, 4, 5) == graphs
    assert MosesOptions().timeout == 60.0
    assert MosesProcess(options._replace(threads=3))._most_ahead == 12


_HERE = "sentences go to Moses' standard input, and lists are counted from 0"
_READ = "this program reads them"
_LENGTHS = "the options of this command say how long the lists are"


@pytest.mark.parametrize(
    ("names", "remedy"),
    [
        ("-f -config", "give --moses-ini"),
        ("-threads -th", "give --moses-threads"),
        ("-n-best-list -n-best-factor", _LENGTHS),
        ("-i -input-file -start-translation-id", _HERE),
        ("-output-unknowns -v -verbose", _READ),
        ("-labeled-n-best-list", "features of lists need their names"),
        ("-output-search-graph -osg -output-search-graph-extended -osgx", "this program reads search graphs"),
    ],
)
def test_options_that_moses_gets_from_here_are_refused(names: str, remedy: str) -> None:
    for name in names.split():
        with pytest.raises(ConfigError) as caught:
            check_further_options(["-s", "9", name], graphs=True)
        assert str(caught.value) == f"leave out {name}: {remedy}"
    if "graph" in names:
        check_further_options(names.split(), graphs=False)
    check_further_options(["-s", "9", "-tt"], graphs=True)


def test_it_is_started_again_after_1_2_and_4_seconds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    waits: list[float] = []
    with MosesProcess(MosesOptions(program=fake_moses(tmp_path), timeout=20.0)) as moses:
        monkeypatch.setattr(moses._stopped, "wait", waits.append)
        assert moses.translate([b"ab"]) == [turned("ab")]
        monkeypatch.setenv("FAKE_MOSES", "dies")  # those that are started now
        with pytest.raises(MosesFailed, match=r"moses ended before it translated anything: it said nothing$"):
            moses.translate([b"DIE", b"ab"] * 9)
    assert waits == [1.0, 2.0, 4.0, 4.0]


def test_of_what_it_says_on_standard_error_the_end_is_kept() -> None:
    child = SimpleNamespace(_errors=bytearray())
    for _ in range(40):
        MosesChild._add_error(child, b"x" * 999 + b"\n")  # type: ignore[arg-type]
    assert len(child._errors) == 16_384 and child._errors.endswith(b"xx\n")


def test_other_spaces_than_blanks_and_tabs_are_words(options: MosesOptions) -> None:
    with MosesProcess(options) as moses:
        assert moses.translate([b"\x0c", b"\t\r", "\u3000".encode()]) == [turned("\x0c"), [], turned("\u3000")]


def test_a_list_written_in_pieces_is_whole(options: MosesOptions) -> None:
    with MosesProcess(options) as moses:
        assert moses.translate(["SPLIT é漢字".encode(), b"ab cd"]) == [turned("SPLIT", "é漢字"), turned("ab", "cd")]


def test_who_kills_it_once_is_answered_all_the_same(
    options: MosesOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    killer = "ONCE=made"
    with MosesProcess(options) as moses:
        found = moses.translate([b"ab cd", killer.encode(), b"ef gh"])
        assert found == [turned("ab", "cd"), turned(killer), turned("ef", "gh")]
        assert (moses.restarts, moses.given_up) == (1, 0)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_who_kills_it_twice_is_given_up_and_no_one_else(options: MosesOptions, place: int) -> None:
    sentences = [b"ab cd", b"ef gh", b"ij kl"]
    sentences.insert(place, b"xy DIE")
    expected: list[list[bytes] | None] = [turned("ab", "cd"), turned("ef", "gh"), turned("ij", "kl")]
    expected.insert(place, None)
    with MosesProcess(options) as moses:
        assert moses.translate(sentences) == expected
        assert (moses.restarts, moses.given_up) == (2, 1)
        assert moses.translate([b"ab cd"]) == [turned("ab", "cd")]


def test_one_that_hangs_is_ended_and_started_again(options: MosesOptions) -> None:
    with MosesProcess(options._replace(timeout=1.0)) as moses:
        assert moses.translate([b"ab cd", b"HANG", b"ef gh"]) == [turned("ab", "cd"), None, turned("ef", "gh")]
        assert moses.given_up == 1


def test_one_that_is_silent_too_long_is_not_waited_for(options: MosesOptions) -> None:
    """Also where it has answered the sentences before."""
    with MosesProcess(options._replace(timeout=1.0)) as moses:
        assert moses.translate([b"ab cd", b"SLEEP=1.9"]) == [turned("ab", "cd"), None]
        assert (moses.restarts, moses.given_up) == (2, 1)


def test_one_that_loads_has_as_long_as_it_needs(options: MosesOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here an hour for each of the first three looks at its pipes, until when it has read nothing."""
    exchange, now, looks = MosesChild._exchange, time.monotonic, [0]

    def look(child: MosesChild, outgoing: bytearray, deadline: float) -> bool:
        goes_on = exchange(child, outgoing, deadline)
        looks[0] += 1
        return goes_on

    monkeypatch.setattr(MosesChild, "_exchange", look)
    monkeypatch.setattr(MosesChild, "has_read", lambda child: looks[0] > 3)
    monkeypatch.setattr(time, "monotonic", lambda: now() + 3600.0 * min(looks[0], 3))
    with MosesProcess(options) as moses:
        assert moses.translate([b"ab cd"]) == [turned("ab", "cd")]
        assert moses.restarts == 0


def test_one_that_answers_nothing_is_given_up_after_three(
    options: MosesOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MOSES", "dies")
    with MosesProcess(options) as moses:
        with pytest.raises(MosesFailed, match="before it translated anything"):
            moses.translate([b"ab"] * 9)
        assert moses.restarts == 3


@pytest.mark.parametrize(("word", "timeout"), [(b"DIE", 20.0), (b"HANG", 1.0)])
def test_sentences_that_are_too_much_do_not_make_it_unusable(
    options: MosesOptions, word: bytes, timeout: float
) -> None:
    """However many there are before anything was translated; a single word shows that it works."""
    with MosesProcess(options._replace(timeout=timeout)) as moses:
        assert moses.translate([word] * 3 + [b"ab cd"]) == [None, None, None, turned("ab", "cd")]
        assert (moses.restarts, moses.given_up) == (4, 3)


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"program": "/no/moses"}, "No such file or directory"), ({"ini": "a\0b"}, "embedded null byte")],
)
def test_what_cannot_be_started_is_an_error(options: MosesOptions, change: dict[str, str], problem: str) -> None:
    wanted = options._replace(**change)
    with pytest.raises(MosesFailed) as caught, MosesProcess(wanted):
        pass
    assert str(caught.value) == f"{wanted.program} cannot be started ({problem})"


@pytest.mark.parametrize("free", [0, 1, 2])
def test_too_many_open_files_is_an_error_that_leaves_none(
    options: MosesOptions, monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    left = iter(range(free))
    pipe = os.pipe

    def scarce() -> tuple[int, int]:
        if next(left, None) is None:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return pipe()

    monkeypatch.setattr(os, "pipe", scarce)
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(MosesFailed, match="Too many open files"), MosesProcess(options):
        pass
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_other_lines_among_the_lists_do_no_harm(options: MosesOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MOSES", "garbage")
    with MosesProcess(options) as moses:
        assert moses.translate([b"ab cd", b"ef gh"]) == [turned("ab", "cd"), turned("ef", "gh")]


def test_lists_of_other_sentences_are_refused(options: MosesOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MOSES", "shifted")
    with MosesProcess(options) as moses, pytest.raises(MosesFailed) as caught:
        moses.translate([b"ab cd"])
    problem = "Moses wrote a list with the id 1 where sentence 0 is next; ids must count from 0:"
    assert str(caught.value) == f"{problem} does moses.ini have [start-translation-id], or is this another program?"


def test_its_end_is_seen_and_what_it_started_ends_too(
    options: MosesOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    child = Path("child")
    with MosesProcess(options._replace(timeout=600.0)) as moses:
        assert moses.translate([b"ab cd", f"FORK={child}".encode()]) == [turned("ab", "cd"), None]
    with pytest.raises(ProcessLookupError):
        _wait_for_end(int(child.read_text()))


def _wait_for_end(process: int) -> None:
    """Until it is gone, or waits for somebody to ask how it ended."""
    for _ in range(200):
        os.kill(process, 0)
        if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            raise ProcessLookupError
        time.sleep(0.05)
