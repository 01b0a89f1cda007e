"""`nmt-core serve --hybrid`: the hybrid as one more model of the service, whatever happens to its Moses."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest

from nmt_core.base.errors import ServiceError
from nmt_core.commands.main import main as nmt_core
from nmt_core.serving.client.client import NmtClient
from nmt_core.v1 import nmt_pb2 as pb
from smt_bridge.commands.main import main
from smt_bridge.nbest.formats import read_entries
from tests.nmt_core.serving.conftest import ROOT, ServerProcess
from tests.nmt_core.serving.support import eventually, metrics_of, refusal_of
from tests.small_moses import decoder, needs_moses, write_moses_system
from tests.smt_bridge.hybrid.small_hybrid import GRAPHS, LISTS, SOURCE, fake_moses, files, recipe

UNAVAILABLE = 14


class Place(NamedTuple):
    """A folder with a recipe, and what starts servers there."""

    folder: Path
    moses: str
    serve: Callable[..., ServerProcess]


def make(folder: Path, program: Callable[[Path], str] = fake_moses) -> tuple[Path, str]:
    moses = program(folder)
    with contextlib.chdir(folder):
        write_moses_system(folder)
        files(folder)
        recipe(moses)
    return folder, moses


def installed(folder: Path) -> dict[str, str]:
    """The environment in which the package's entry point is found, installed or not."""
    place = folder / "hybridmt-0.dist-info"
    place.mkdir(exist_ok=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: hybridmt\nVersion: 0\n")
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["hybridmt.served_models"]
    lines = [f"{name} = {value}\n" for name, value in entry.items()]
    (place / "entry_points.txt").write_text("".join(["[hybridmt.served_models]\n", *lines]))
    return {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


def changed(folder: Path, path: str = "recipe.json", **keys: object) -> str:
    """A recipe with other keys; its path."""
    content = json.loads((folder / path).read_text()) | keys
    found = folder / f"changed{len(list(folder.iterdir()))}.json"
    found.write_text(json.dumps(content))
    return str(found)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder, moses = make(tmp_path_factory.mktemp("hybrid"))
    started: list[ServerProcess] = []

    def serve(*options: str, ready: bool = True, **keys: object) -> ServerProcess:
        path = changed(folder, **keys)
        with contextlib.chdir(folder):
            common = ["--hybrid", f"h={path}", "--model", "n=model", "--metrics-port", "0"]
            started.append(ServerProcess(*common, *options, **installed(folder)))
        return started[-1].wait_ready() if ready else started[-1]

    yield Place(folder, moses, serve)
    for server in started:
        server.stop()


@pytest.fixture(scope="module")
def guided(place: Place) -> list[str]:
    """What the command translates with n-gram guidance; its recipe is ``guided.json``, its lists ``guided.nbest``."""
    guidance = ["--search", "guidance_weight=20", "--search", "guidance_scale=2"]
    expected = command(place, *LISTS, *guidance, "--write-recipe", "guided.json")
    (place.folder / "expected.nbest").rename(place.folder / "guided.nbest")
    return expected


@pytest.fixture(scope="module")
def server(place: Place, guided: list[str]) -> Iterator[ServerProcess]:
    """Hybrids as they are, with graphs, with guidance, and one that goes on without its Moses, which does not load."""
    with contextlib.chdir(place.folder):
        recipe(place.moses, *GRAPHS, name="graphs.json")
    alone = changed(place.folder, degrade=True, moses_program=broken_moses(place.folder / "broken"))
    more = ["--hybrid", "g=graphs.json", "--hybrid", f"alone={alone}"]
    more += ["--hybrid", f"a={changed(place.folder, 'guided.json', moses_timeout=2.0)}"]
    server = place.serve(*more, moses_timeout=2.0)
    yield server
    ends_and_leaves_nothing(server)


@pytest.fixture
def hybrid(server: ServerProcess) -> Iterator[NmtClient]:
    with NmtClient(server.address, model="h") as client:
        yield client


@pytest.fixture
def neural(server: ServerProcess) -> Iterator[NmtClient]:
    with NmtClient(server.address, model="n") as client:
        yield client


def best(sentences: list[pb.Translations]) -> list[str]:
    return [sentence.translations[0].text for sentence in sentences]


def metric(server: ServerProcess, name: str) -> float:
    return metrics_of(server)[name]


def command(place: Place, *options: str) -> list[str]:
    """What ``smt-bridge translate`` makes of the sources; its lists are in ``expected.nbest``."""
    with contextlib.chdir(place.folder):
        files = ["--input", "dev", "--output", "expected", "--nbest-output", "expected.nbest"]
        assert main(["translate", *options, "--moses", place.moses, "--device", "cpu", "--quiet", *files]) == 0
    return (place.folder / "expected").read_text().splitlines()


def given_up_after(server: ServerProcess, model: str, texts: list[str]) -> None:
    """A client that goes after half a second."""
    code, _ = refusal_of(lambda: server.stub.Translate(pb.TranslateRequest(model=model, texts=texts), timeout=0.5))
    assert code == grpc.StatusCode.DEADLINE_EXCEEDED


def test_translations_are_those_of_the_command(place: Place, hybrid: NmtClient) -> None:
    found = hybrid.translate(SOURCE)
    assert best(found) == command(place, "--recipe", "recipe.json")
    for source, sentence in zip(SOURCE, found, strict=True):
        (one,) = sentence.translations
        assert not one.degraded
        assert bool(one.systems) == bool(source) and set(one.systems) <= {"moses", "nmt"}


def test_a_list_is_ordered_by_the_totals_and_has_the_numbers_of_the_neural_model(
    hybrid: NmtClient, neural: NmtClient
) -> None:
    (found,) = hybrid.translate(["cd ef ab"], nbest=20)
    totals = [one.score for one in found.translations]
    assert totals == sorted(totals, reverse=True) and len(totals) > 3
    assert {system for one in found.translations for system in one.systems} == {"moses", "nmt"}
    for one in found.translations:
        (score,) = neural.score([("cd ef ab", one.text)])
        assert one.log_prob == pytest.approx(score.log_prob, abs=1e-5)
        assert sum(one.word_log_probs) == pytest.approx(one.log_prob, abs=1e-9)
        assert len(one.word_log_probs) == len(one.words) + 1


def test_it_scores_as_its_neural_model_and_says_what_it_is(hybrid: NmtClient, neural: NmtClient) -> None:
    pairs = [("ab cd", "ba dc"), ("ef", "fe fe")]
    expected = neural.score(pairs, per_word=True)
    assert [score.log_prob for score in hybrid.score(pairs, per_word=True)] == [one.log_prob for one in expected]
    described = {model.name: model for model in hybrid.models()}
    assert described["h"].kind == pb.MODEL_KIND_HYBRID and described["n"].kind == pb.MODEL_KIND_NEURAL
    assert described["h"].signature == described["n"].signature
    assert described["h"].version != described["n"].version
    assert not described["h"].attends and described["n"].attends


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        ({"beam": 3}, grpc.StatusCode.INVALID_ARGUMENT, "leave out beam"),
        ({"length_normalization": 0.5}, grpc.StatusCode.INVALID_ARGUMENT, "leave out length_normalization"),
        ({"max_length_ratio": 2.0}, grpc.StatusCode.INVALID_ARGUMENT, "leave out max_length_ratio"),
        ({"replace_unknown": True}, grpc.StatusCode.FAILED_PRECONDITION, "needs a model with attention"),
    ],
)
def test_what_a_hybrid_cannot_do_is_refused(server: ServerProcess, options, code, problem: str) -> None:
    with pytest.raises(grpc.RpcError, match=problem) as caught:
        server.stub.Translate(pb.TranslateRequest(model="h", texts=["ab"], **options))
    assert caught.value.code() == code


def test_raw_text_markup_and_a_no_break_space(hybrid: NmtClient) -> None:
    (raw,) = hybrid.translate(["AB cd, ef|x"], raw=True)
    assert raw.translations[0].text and not raw.translations[0].degraded
    (marked,) = hybrid.translate(["ab [cd] <x>"], nbest=9)
    assert not any(set("[]<>|") & set(one.text.replace("<unk>", "")) for one in marked.translations)
    (found,) = hybrid.translate(["\u00a0"], nbest=20)  # it is a word
    assert {system for one in found.translations for system in one.systems} == {"moses", "nmt"}


def test_what_moses_has_no_translation_of_is_left_to_the_neural_model(server: ServerProcess, hybrid: NmtClient) -> None:
    """A sentence that it dies of, one that it does not translate, and one whose list cannot be used."""
    before = metric(server, "moses_given_up_sentences_total")
    found = hybrid.translate(["ab cd", "ab DIE", "ef", "ab NOTHING", "ab NAN"])
    assert [one.translations[0].degraded for one in found] == [False, True, False, True, True]
    assert found[1].translations[0].systems == found[3].translations[0].systems == ["nmt"]
    assert metric(server, "moses_given_up_sentences_total") == before + 1
    for reason in ("given_up", "untranslated", "unreadable"):
        assert metric(server, f'hybrid_degraded_sentences_total{{model="h",reason="{reason}"}}') >= 1


def test_search_graphs_are_searched_as_by_the_command(place: Place, server: ServerProcess) -> None:
    expected_lines = command(place, "--recipe", "graphs.json")
    with NmtClient(server.address, model="g") as hybrid:
        found = hybrid.translate(SOURCE, nbest=50)
        assert best(found) == expected_lines
        listed = [one for sentence in found for one in sentence.translations if one.text]
        expected = {entry.text for entry in read_entries(str(place.folder / "expected.nbest"))}
        assert {one.text for one in listed} == expected
        assert {system for one in listed for system in one.systems} == {"moses", "nmt", "graph"}
        (without,) = hybrid.translate(["ab NOGRAPH cd"], nbest=50)
        assert not any("graph" in one.systems or one.degraded for one in without.translations)
    assert metric(server, 'hybrid_sentences_without_graph_total{model="g"}') == 1
    said = ("no list of its search graph", "wrote no search graph")
    eventually(lambda: any(all(words in line for words in said) for line in server.lines))


def test_guidance_is_that_of_the_command(
    place: Place, server: ServerProcess, guided: list[str], neural: NmtClient
) -> None:
    with NmtClient(server.address, model="a") as model:
        found = model.translate(SOURCE, nbest=3)
        assert best(found) == guided
        lists = [(number, one) for number, sentence in enumerate(found) for one in sentence.translations if one.text]
        for entry, (number, one) in zip(read_entries(str(place.folder / "guided.nbest")), lists, strict=True):
            assert (entry.sentence, entry.text) == (number, one.text)
            assert entry.total == pytest.approx(one.score, abs=1e-4)
            assert entry.features["NMT0"] == pytest.approx((one.log_prob,), abs=1e-4)
            assert one.systems == ["nmt"] and not one.degraded
        free = neural.translate(SOURCE, beam=4, nbest=3, forbid_unknown=True)
        assert best(free) != best(found)
        texts = ["ab DIE", "HANG", "NOTHING ab"]
        alone = model.translate(texts)
        assert all(one.translations[0].degraded for one in alone)
        assert best(alone) == best(neural.translate(texts, beam=4, forbid_unknown=True))
        assert {model.name: model for model in neural.models()}["a"].kind == pb.MODEL_KIND_HYBRID
    for reason, number in (("given_up", 2), ("untranslated", 1)):
        assert metric(server, f'hybrid_degraded_sentences_total{{model="a",reason="{reason}"}}') == number


@pytest.mark.parametrize("model", ["h", "a"])
def test_who_has_gone_is_not_translated(server: ServerProcess, model: str) -> None:
    """Also while a search waits for its guidance."""
    before = metric(server, 'nmt_cancelled_items_total{device="cpu"}')
    given_up_after(server, model, ["HANG", *["ab cd"] * 50])
    with NmtClient(server.address, model=model) as client:
        assert best(client.translate(["ef"]))
    assert metric(server, "moses_waiting_sentences") == 0
    assert metric(server, 'nmt_cancelled_items_total{device="cpu"}') >= before + 50


def test_the_device_is_others_while_moses_hangs(server: ServerProcess, hybrid: NmtClient, neural: NmtClient) -> None:
    with ThreadPoolExecutor() as threads:
        hangs = threads.submit(hybrid.translate, ["HANG ab"])
        for _ in range(5):
            assert neural.translate(["ab cd"])[0].translations
        assert not hangs.done()
        assert hangs.result()[0].translations[0].degraded
    assert not hybrid.translate(["ab"])[0].translations[0].degraded


def test_moses_that_is_gone_for_good_is_unavailable_and_the_neural_model_is_not(place: Place) -> None:
    program = Path(fake_moses_of_its_own(place))
    server = place.serve("--limit", "grace=1", moses_program=str(program))
    break_moses(server, program)
    with NmtClient(server.address, model="h") as hybrid, NmtClient(server.address, model="n") as neural:
        (found,) = hybrid.translate(["ab cd"])
        assert (found.error.code, found.error.reason) == (UNAVAILABLE, "MOSES_FAILED")
        assert found.error.retry_delay.seconds == 10
        assert neural.translate(["ab cd"])[0].translations
        assert hybrid.score([("ab", "ba")])[0].log_prob < 0
    assert found.error.message == f"{program} cannot be used now; the neural model alone can"
    ends_and_leaves_nothing(server)
    assert any("no memory" in line for line in server.lines)  # for the server's people, not for its clients


def test_with_degrade_the_neural_model_goes_on_alone(server: ServerProcess) -> None:
    with NmtClient(server.address, model="alone") as hybrid:
        for sentence in hybrid.translate(["ab cd", "ef"]):
            assert sentence.translations[0].degraded and sentence.translations[0].systems == ["nmt"]
    assert metric(server, 'hybrid_degraded_sentences_total{model="alone",reason="failed"}') >= 2
    assert metric(server, "moses_failures_total") >= 1


def broken_moses(program: Path) -> str:
    """One that does not load."""
    program.write_text("#!/bin/sh\necho no memory >&2\nexit 1\n")
    program.chmod(0o755)
    return str(program)


def fake_moses_of_its_own(place: Place) -> str:
    folder = place.folder / f"moses{len(list(place.folder.iterdir()))}"
    folder.mkdir()
    return fake_moses(folder)


def children(process: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, check=False)
    return [int(number) for number in found.stdout.split()]


def break_moses(server: ServerProcess, program: Path) -> None:
    """It ends, and cannot be started any more."""
    broken_moses(program)
    for child in children(server.process.pid):
        os.kill(child, signal.SIGKILL)


def ends_and_leaves_nothing(server: ServerProcess) -> None:
    started = children(server.process.pid)
    server.terminate()
    assert server.wait() == 0
    assert not any(Path(f"/proc/{number}").exists() for number in started)


@pytest.mark.parametrize("program", [fake_moses, pytest.param(decoder, marks=needs_moses)])
def test_a_moses_that_is_killed_or_stopped_is_started_again(tmp_path: Path, program: Callable[[Path], str]) -> None:
    """Nothing is lost or degraded, and nothing stays behind."""
    folder, moses = make(tmp_path, program)
    expected = command(Place(folder, moses, ServerProcess), "--recipe", "recipe.json")
    path = changed(folder, moses_timeout=5.0)
    with contextlib.chdir(folder):
        server = ServerProcess("--hybrid", f"h={path}", "--limit", "grace=1", **installed(folder))
    try:
        server.wait_ready()
        with NmtClient(server.address, model="h") as hybrid:
            assert best(hybrid.translate(SOURCE)) == expected
            for fault in (signal.SIGKILL, signal.SIGSTOP):
                (child,) = children(server.process.pid)
                os.kill(child, fault)
                found = hybrid.translate(SOURCE)
                assert best(found) == expected
                assert not any(one.translations[0].degraded for one in found)
                assert children(server.process.pid) not in ([child], [])
        ends_and_leaves_nothing(server)
    finally:
        server.stop()


def test_its_moses_ends_with_the_server_whatever_it_does(place: Place) -> None:
    server = place.serve("--limit", "grace=1", moses_timeout=600.0)
    (moses,) = children(server.process.pid)
    with NmtClient(server.address, model="h") as hybrid, ThreadPoolExecutor() as threads:
        hangs = threads.submit(hybrid.translate, ["HANG"])
        with NmtClient(server.address, model="n") as neural:
            assert neural.translate(["ab"])
        server.terminate()
        assert server.wait() == 0
        with pytest.raises(ServiceError):
            hangs.result()
    assert not Path(f"/proc/{moses}").exists()


def serve_here(place: Place, *options: str) -> int:
    """The exit code of a server that cannot begin."""
    installed(place.folder)
    with contextlib.chdir(place.folder), pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(place.folder)
        return nmt_core(["serve", "--port", "0", "--device", "cpu", *options])


def test_a_moses_that_does_not_load_is_one_line(place: Place, error_line: Callable[..., str]) -> None:
    broken = broken_moses(place.folder / "broken")
    line = error_line(serve_here, place, "--hybrid", f"h={changed(place.folder, moses_program=broken)}")
    assert line.endswith(f"{broken} ended while it loaded: no memory")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "or --hybrid NAME=RECIPE"),
        (["--hybrid", "recipe.json"], "expected NAME=RECIPE"),
        (["--hybrid", "h=recipe.json", "--model", "h=model"], "two models are called h"),
    ],
)
def test_options_that_do_not_go_together(
    place: Place, options: list[str], problem: str, error_line: Callable[..., str]
) -> None:
    assert problem in error_line(serve_here, place, *options)


def test_a_recipe_that_cannot_be_served_is_one_line(
    place: Place, tmp_path: Path, error_line: Callable[..., str]
) -> None:
    text = (place.folder / "recipe.json").read_text()
    for content, problem in (
        (
            text.replace('"model": "model"', '"model": "grpc:localhost:1"'),
            "its neural model is that of a server; a hybrid is served with a model in a folder",
        ),
        (text.replace("model:", "model:0"), "tuned with another model"),
    ):
        (tmp_path / "recipe.json").write_text(content)
        assert problem in error_line(serve_here, place, "--hybrid", f"h={tmp_path / 'recipe.json'}")


def test_without_the_bridge_a_hybrid_is_one_line(error_line: Callable[..., str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("importlib.metadata.entry_points", lambda **names: ())
        line = error_line(nmt_core, ["serve", "--port", "0", "--hybrid", "h=recipe.json"])
    assert line == "nmt-core serve: --hybrid needs the package smt_bridge, which is not installed: pip install hybridmt"
