"""Text to ARPA: with KenLM's ``lmplz`` where it is installed, else with our own estimator."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import say
from nmt_core.base.tied import tied
from nmt_core.files import open_output, read_lines
from nmt_core.processes import orderly_end
from smt_bridge.errors import ToolError
from smt_bridge.lm.estimate import SPECIAL, Order, estimate, read_text

LMPLZ = "lmplz"
_BLANKS = bytes.maketrans(b"\0\t\r", b"   ")
_LAST_LINES = 3
_AT_A_TIME = 100_000  # n-grams that are written together


def build_lm(args: argparse.Namespace) -> int:
    """Build the model."""
    if not 1 <= args.order <= 20:
        raise ConfigError(f"--order {args.order}: expected 1 to 20")
    fallback = _fallback(args.discount_fallback)
    program = find_lmplz() if args.estimator != "own" else None
    if args.estimator == "lmplz" and program is None:
        raise ConfigError("lmplz is not on the PATH; install KenLM, or take --estimator own")
    started = time.perf_counter()
    lines = read_lines(args.input)
    with open_output(args.output) as stream:
        if program is not None:
            build_with_lmplz(program, lines, stream, order=args.order, fallback=fallback)
        else:
            build_own(lines, stream, order=args.order, path=args.input, fallback=fallback)
    who = "lmplz" if program is not None else "own estimator"
    say(f"{args.order}-gram model in {time.perf_counter() - started:.1f} s ({who})")
    return 0


def _fallback(given: list[float] | None) -> list[float] | None:
    if given is None:
        return None
    values = given or [0.5, 1.0, 1.5]
    if len(values) != 3 or not all(0 <= value <= limit for value, limit in zip(values, (1, 2, 3), strict=True)):
        raise ConfigError("--discount-fallback: expected three numbers D1 <= 1, D2 <= 2, D3 <= 3")
    return values


def find_lmplz() -> str | None:
    """Where ``lmplz`` is, if it is on the PATH."""
    return shutil.which(LMPLZ)


def build_own(
    lines: Iterable[bytes],
    stream: BinaryIO,
    *,
    order: int,
    path: str,
    fallback: Sequence[float] | None = None,
) -> None:
    """Estimate from ``lines`` (of ``path``) and write the ARPA file."""
    text = read_text(_tokens(lines, path))
    write_arpa(stream, text.words, estimate(text, order, fallback=fallback))


def build_with_lmplz(
    program: str,
    lines: Iterable[bytes],
    stream: BinaryIO,
    *,
    order: int,
    fallback: Sequence[float] | None = None,
) -> None:
    """Let ``lmplz`` do it. Raises ToolError with its last words if it fails."""
    command = [program, "-o", str(order)]
    if fallback is not None:
        command += ["--discount_fallback", *(f"{value:g}" for value in fallback)]
    with orderly_end(), tempfile.TemporaryFile() as arpa, tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(tied(command), stdin=subprocess.PIPE, stdout=arpa, stderr=messages)
        code = _exit_code(process, lines)
        if code != 0:
            messages.seek(0)
            words = messages.read().decode("utf-8", "replace").strip().split("\n")
            said = " / ".join(words[-_LAST_LINES:]) or f"it said nothing; is there space in {tempfile.gettempdir()}?"
            raise ToolError(f"{' '.join(command)} failed with exit code {code}: {said}")
        arpa.seek(0)
        shutil.copyfileobj(arpa, stream, 1 << 20)


def _exit_code(process: subprocess.Popen[bytes], lines: Iterable[bytes]) -> int:
    """That of a program that reads ``lines``; it is stopped where they cannot be read to their end."""
    assert process.stdin is not None
    try:
        with contextlib.suppress(BrokenPipeError):  # it gave up: its exit code and messages say why
            for line in lines:
                process.stdin.write(line + b"\n")
            process.stdin.close()
        return process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def _tokens(lines: Iterable[bytes], path: str) -> Iterator[list[bytes]]:
    """Words of every line, cut where ``lmplz`` cuts: at space, tab, carriage return and NUL."""
    for number, line in enumerate(lines, start=1):
        words = [word for word in line.translate(_BLANKS).split(b" ") if word]
        special = next((word for word in words if word in SPECIAL), None)
        if special is not None:
            problem = f"the word {special.decode()} has a meaning of its own; remove it"
            raise InputError(path, problem, line=number)
        yield words


def write_arpa(stream: BinaryIO, words: Sequence[bytes], orders: Sequence[Order]) -> None:
    """Write a model in ARPA format, as KenLM reads it.

    Of every order: log10 probability, tab, words, tab, log10 back-off (but in the highest).
    """
    stream.write(b"\\data\\\n")
    for number, order in enumerate(orders, start=1):
        stream.write(b"ngram %d=%d\n" % (number, len(order.last)))
    texts: list[bytes] = []
    for number, order in enumerate(orders, start=1):
        last = [words[word] for word in order.last.tolist()]
        texts = (
            last
            if number == 1
            else [b"%s %s" % (texts[prefix], word) for prefix, word in zip(order.prefix.tolist(), last, strict=True)]
        )
        stream.write(b"\n\\%d-grams:\n" % number)
        for start in range(0, len(texts), _AT_A_TIME):
            stream.write(b"".join(_arpa_lines(order, texts, slice(start, start + _AT_A_TIME))))
    stream.write(b"\n\\end\\\n")


def _arpa_lines(order: Order, texts: Sequence[bytes], part: slice) -> list[bytes]:
    probabilities = order.log10_probability[part].tolist()
    if order.log10_backoff is None:
        return [b"%.7g\t%s\n" % (value, text) for value, text in zip(probabilities, texts[part], strict=True)]
    backoffs = order.log10_backoff[part].tolist()
    rows = zip(probabilities, texts[part], backoffs, strict=True)
    return [b"%.7g\t%s\t%.7g\n" % row for row in rows]
