"""Model folders that strangers made to do harm: one clear line, in a moment, without memory."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from safetensors.torch import load_file, save_file

from nmt_core.base.errors import ConfigError, InputError, ModelError
from nmt_core.base.messages import show
from nmt_core.commands.main import main
from nmt_core.config import read_yaml
from nmt_core.model_directory import lexicon as carried_lexicon
from nmt_core.model_directory.loaded_model import load_model
from nmt_core.text.lexicon import Candidate, Lexicon
from tests.annotated_models import LEXICON, make_annotated

_MIB = 1 << 20


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("valid")
    (place / "v").write_text("</s>\n<unk>\nun\ndeux\n")
    sizes = ["--set", "model.hidden=4", "--set", "model.embedding=3", "--set", "model.maxout=2"]
    vocabularies = ["--source-vocab", str(place / "v"), "--target-vocab", str(place / "v")]
    assert main(["init", str(place / "m"), "--preset", "rnnencdec", *vocabularies, *sizes]) == 0
    return place / "m"


@pytest.fixture
def folder(valid: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(valid, tmp_path / "m"))


def _refused(folder: Path) -> str:
    """What a process with another 200 MiB and 20 seconds of processor time says of the folder."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _load_within_bounds(str(folder), writer)
    os.close(writer)
    with open(reader, encoding="utf-8") as stream:
        message = stream.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2, message
    assert str(folder) in message and len(message) < 1000 and show(message) == message
    return message


def _load_within_bounds(folder: str, writer: int) -> NoReturn:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + 200 * _MIB
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    signal.alarm(250)  # where it waits for something
    code, message = 0, ""
    try:
        load_model(folder)
    except ModelError as error:
        code, message = 2, str(error)
    except BaseException as error:
        code, message = 1, repr(error)
    os.write(writer, message.encode("utf-8", "replace"))
    os._exit(code)


def _settings(change: Callable[[str], str]) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        path = folder / "config.yaml"
        path.write_text(change(path.read_text()))

    return harm


def _tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors")

    return harm


def _bomb() -> str:
    lines = ["a: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"b{n}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]" for n in range(9)]
    return "\n".join(f"  {line}" for line in lines)


def _packed(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def _pipe(name: str) -> Callable[[Path], object]:
    return lambda folder: ((folder / name).unlink(), os.mkfifo(folder / name))


def _link(name: str, target: str) -> Callable[[Path], object]:
    return lambda folder: ((folder / name).unlink(), (folder / name).symlink_to(target))


def _header(folder: Path) -> None:
    """A file whose header says more than the file holds."""
    header = json.dumps({"x": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)


def _endless(name: str) -> Callable[[Path], object]:
    return lambda folder: os.truncate(folder / name, 1 << 40)


def _first(tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    return tensors["target_embedding.weight"]


HARMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a YAML bomb": (
        _settings(lambda text: text + f"trained_with2:\n{_bomb()}\n"),
        "the alias *a0: write the value out",
    ),
    "a value that holds itself": (_settings(lambda text: text + "x: &a [*a]\n"), "the alias *a: write"),
    "deep nesting": (_settings(lambda text: text + "x: " + "[" * 5_000), "nested too deeply"),
    "a huge whole number": (_settings(lambda text: text.replace("hidden: 4", "hidden: " + "9" * 5000)), "line|:"),
    "a number beyond 64 bits": (
        _settings(lambda text: text.replace("hidden: 4", f"hidden: {1 << 70}")),
        "valid integer",
    ),
    "a size that is none": (_settings(lambda text: text.replace("hidden: 4", f"hidden: {1 << 61}")), "a size that is"),
    "a size beyond memory": (
        _settings(lambda text: text.replace("hidden: 4", "hidden: 400000")),
        "but config.yaml and the|a memory of",
    ),
    "an option that is gone": (
        _settings(lambda text: text.replace("hidden: 4", "hidden: 4\n  decoder_depth: 2")),
        "'model.decoder_depth'",
    ),
    "a key twice": (_settings(lambda text: text + "format_version: 7\n"), "the key 'format_version' is given twice"),
    "a text for a number": (_settings(lambda text: text.replace("hidden: 4", "hidden: 'x'")), "'model.hidden'"),
    "a language that is a path": (
        _settings(lambda text: text.replace("source_language: en", "source_language: ../../etc")),
        "'text.source_language'",
    ),
    "a file elsewhere": (
        _settings(lambda text: text.replace("files: {}", "files: {source.vocab: ../m/source.vocab}")),
        "'files.source.vocab'",
    ),
    "version 0": (
        _settings(lambda text: text.replace("version: 7", "version: 0")),
        "a format_version from 1 to 7, not 0",
    ),
    "version true": (
        _settings(lambda text: text.replace("version: 7", "version: true")),
        "config.yaml: expected a format_version from 1 to 7, not True",
    ),
    "no UTF-8": (_packed("config.yaml", b"format_version: 1\n\xff\xfe: 2\n"), "config.yaml:2: not valid YAML"),
    "control characters": (_packed("config.yaml", b"a: 1\nb: \x1b[2J\n"), "config.yaml:2: not valid YAML"),
    "a terabyte of settings": (_endless("config.yaml"), "more than"),
    "settings that are a pipe": (_pipe("config.yaml"), "config.yaml: is a pipe; expected an ordinary file"),
    "a vocabulary that is a pipe": (_pipe("source.vocab"), "source.vocab: is a pipe; expected an ordinary file"),
    "parameters that are a pipe": (_pipe("model.safetensors"), "is a pipe; expected an ordinary file"),
    "settings without end": (_link("config.yaml", "/dev/zero"), "is a device"),
    "a vocabulary without end": (_link("target.vocab", "/dev/zero"), "is a device"),
    "parameters without end": (_link("model.safetensors", "/dev/zero"), "is a device"),
    "a link to nothing": (_link("target.vocab", "nowhere"), "target.vocab: cannot be read (No such file"),
    "a vocabulary of one line of 1 GiB": (
        _packed("source.vocab", gzip.compress(bytes(64 * _MIB), 1) * 16),
        "source.vocab",
    ),
    "a vocabulary of a billion words": (
        _packed("source.vocab", gzip.compress(b"</s>\n<unk>\n") + gzip.compress(b"a\n" * (32 * _MIB), 1) * 16),
        "source.vocab",
    ),
    "a word twice": (_packed("source.vocab", b"</s>\n<unk>\na\na\n"), "source.vocab:4: the word 'a' is there twice"),
    "an empty word": (_packed("source.vocab", b"</s>\n<unk>\n\na\n"), "source.vocab:3: expected one word"),
    "a header of sizes that are not there": (_header, "is damaged"),
    "a header without end": (_packed("model.safetensors", b"\xff" * 64), "); copy or train the model again"),
    "an empty file of parameters": (_packed("model.safetensors", b""), "is damaged"),
    "whole numbers for parameters": (
        _tensors(lambda all_: all_.update({"target_embedding.weight": _first(all_).view(torch.int32)})),
        "target_embedding.weight has numbers of type int32, not float32",
    ),
    "NaN": (_tensors(lambda all_: _first(all_)[2].fill_(float("nan"))), "holds NaN or infinite numbers"),
    "an infinite number": (_tensors(lambda all_: _first(all_)[2, 0].fill_(float("inf"))), "holds NaN or infinite"),
    "a parameter too many": (
        _tensors(lambda all_: all_.update({"extra": torch.zeros(1)})),
        "model.safetensors: the parameter extra is not expected; config.yaml describes another model",
    ),
    "a parameter too few": (
        _tensors(lambda all_: all_.pop("target_embedding.weight")),
        "model.safetensors: the parameter target_embedding.weight is missing; config.yaml describes another model",
    ),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_hostile_folder_is_one_line(folder: Path, harm: str) -> None:
    do, expected = HARMS[harm]
    do(folder)
    assert any(words in _refused(folder) for words in expected.split("|"))


def _lexicon(content: bytes) -> Callable[[Path], None]:
    """A lexicon whose hash is that of the settings."""

    def harm(folder: Path) -> None:
        old, new = (hashlib.sha256(one).hexdigest() for one in ((folder / "lexicon.gz").read_bytes(), content))
        _settings(lambda text: text.replace(old, new))(folder)
        (folder / "lexicon.gz").write_bytes(content)

    return harm


LEXICONS: dict[str, tuple[Callable[[Path], object], str]] = {
    "gigabytes of lines": (_lexicon(gzip.compress(b"a b 0.5\n" * (4 * _MIB), 1) * 64), "unpacks to more"),
    "gigabytes of a few lines": (_lexicon(gzip.compress(b"a" * (8 * _MIB) + b" b 0.5\n", 1) * 256), "unpacks to more"),
    "a terabyte": (_endless("lexicon.gz"), "has more than 268,435,456 bytes, which no lexicon of a model has"),
    "a pipe": (_pipe("lexicon.gz"), "is a pipe; expected an ordinary file"),
    "without end": (_link("lexicon.gz", "/dev/zero"), "is a device"),
    "one cut off": (_lexicon(gzip.compress(b"a b 0.5\n")[:-9]), "ends too early"),
    "no lexicon": (_lexicon(gzip.compress(b"a b c\n")), "expected 'word word probability'"),
    "another lexicon": (
        _packed("lexicon.gz", gzip.compress(b"a b 0.5\n")),
        "lexicon.gz: is not as it was saved; copy the model directory again, the whole of it",
    ),
}


@pytest.mark.parametrize("harm", LEXICONS)
def test_a_hostile_lexicon_is_one_line(tmp_path: Path, harm: str) -> None:
    folder = Path(make_annotated(tmp_path, "m", "posunk")[0])
    load_model(str(folder))
    do, expected = LEXICONS[harm]
    do(folder)
    assert expected in _refused(folder)


def test_a_lexicon_that_could_not_be_loaded_is_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(carried_lexicon.CarriedLexicon.of(LEXICON).content)
    monkeypatch.setattr(carried_lexicon, "_MOST_BYTES", size)
    carried_lexicon.CarriedLexicon.of(LEXICON)
    monkeypatch.setattr(carried_lexicon, "_MOST_BYTES", size - 1)
    problem = (
        f"^the lexicon has {size} bytes when packed, and a model carries {size - 1}; keep the likeliest words of each"
    )
    with pytest.raises(ConfigError, match=f"{problem} with 'nmt-core lexicon --top 10'$"):
        carried_lexicon.CarriedLexicon.of(LEXICON)


def test_a_lexicon_of_long_words_that_are_alike_is_read(tmp_path: Path) -> None:
    """It is packed about 50 times."""
    words = [f"{'a' * 150}{number:03}" for number in range(200)]
    carried = carried_lexicon.CarriedLexicon.of(Lexicon({word: (Candidate(word, 0.5),) for word in words}))
    (tmp_path / "lexicon.gz").write_bytes(carried.content)
    assert carried_lexicon.CarriedLexicon.load(f"{tmp_path}/lexicon.gz", carried.fingerprint) == carried


def test_a_model_larger_than_the_memory_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"SC_PHYS_PAGES": 1, "SC_PAGE_SIZE": 100}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    with pytest.raises(ModelError, match=r"m: model: has 0\.0 GB; this machine has a memory of 0\.0 GB$"):
        load_model(str(folder))


def test_bounds_hold_for_overrides_too(folder: Path, error_line: Callable[..., str]) -> None:
    vocabulary = str(folder / "source.vocab")
    arguments = ["--preset", "rnnencdec", "--source-vocab", vocabulary, "--target-vocab", vocabulary]
    for value in ("[" * 1000, "&a [*a]", "9" * 5000, f"{1 << 70}", "{a: 1, a: 2}"):
        line = error_line(main, ["init", str(folder / "new"), *arguments, "--set", f"model.hidden={value}"])
        assert line.startswith("nmt-core init: --set") and "model.hidden" in line


def test_an_alias_is_rejected_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: &base {x: 1, y: 2}\nb: {y: 3}\nc: [*base, *base]\n")
    with pytest.raises(InputError, match=r"x\.yaml:3: not valid YAML: the alias \*base: write the value out instead"):
        read_yaml(str(path))
