"""The options of ``nmt-core serve`` about limits and times, and the limits that they make."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt_core.serving.limits import Limits

_LIMITS = {
    "items": "texts, pairs or hypotheses of a request",
    "characters": "of a text",
    "words": "of a text",
    "beam": "",
    "nbest": "translations of a sentence",
    "steps": "hypotheses of a request times the words they may have",
    "message_mib": "size of an answer; by default at most a third of the memory",
    "request_mib": "size of a request; by default at most that of an answer",
    "memory_mib": "what requests under way may hold",
    "calls": "calls open at once",
    "client_calls": "calls of one client open at once",
    "streams": "streams open at once",
    "client_streams": "streams of one client open at once",
    "watches": "health watches open at once",
    "connections": "connections open at once",
}
_SECONDS = {
    "body": "for a request to arrive",
    "unread": "for an answer to be taken",
    "idle": "until unused streams and connections are closed",
    "age": "until connections are asked to be opened anew",
    "stuck": "for one batch or step, before health says NOT_SERVING",
}
_LARGEST_MESSAGE = 1024  # MiB


def add_limit_options(group: argparse._ArgumentGroup) -> None:
    """Define them."""
    whole: dict[str, Any] = {"type": int, "metavar": "N"}
    for name, meaning in _LIMITS.items():
        group.add_argument(f"--max-{name.replace('_', '-')}", **whole, help=f"{meaning} (default: {_default(name)})")
    for name, meaning in _SECONDS.items():
        text = f"seconds {meaning} (default: {_default(name):g})"
        group.add_argument(f"--{name}-timeout", type=float, metavar="S", help=text)
    group.add_argument("--queue-tokens", **whole, default=2_000_000, help="what may wait (default: 2000000)")
    group.add_argument("--client-tokens", **whole, help="what may wait of one client (default: a quarter of that)")
    group.add_argument(
        "--max-delay", type=float, default=0.002, metavar="S", help="seconds a batch waits for more (default: 0.002)"
    )
    group.add_argument(
        "--drain-delay", type=float, default=0.0, metavar="S", help="seconds from NOT_SERVING to the end (default: 0)"
    )
    group.add_argument(
        "--grace", type=float, default=30.0, metavar="S", help="seconds to answer what was accepted (default: 30)"
    )


def read_limits(args: argparse.Namespace) -> Limits:
    """The limits that were given. Raises ConfigError for those below 1 or that do not go together."""
    from nmt_core.base.errors import ConfigError
    from nmt_core.serving.limits import Limits

    given: dict[str, Any] = {}
    for name in _LIMITS:
        value = getattr(args, f"max_{name}")
        if value is None:
            continue
        if value < 1:
            raise ConfigError(f"--max-{name.replace('_', '-')} {value}: expected at least 1")
        given.update({f"{name[:-4]}_bytes": value << 20} if name.endswith("_mib") else {name: value})
    for name in _SECONDS:
        value = getattr(args, f"{name}_timeout")
        if value is not None and not 0 < value <= 1e6:
            raise ConfigError(f"--{name}-timeout {value:g}: expected more than 0, at most 1000000")
        given.update({} if value is None else {f"{name}_seconds": value})
    given["message_bytes"] = _message_mib(args.max_message_mib, Limits(**given)) << 20
    given["request_bytes"] = _request_mib(args.max_request_mib, Limits(**given)) << 20
    limits = Limits(**given)
    if args.beam > limits.beam:
        raise ConfigError(f"--beam {args.beam}: at most {limits.beam}")
    if min(args.queue_tokens, args.client_tokens or 0, args.max_delay, args.grace, args.drain_delay) < 0:
        problem = "--queue-tokens, --client-tokens, --max-delay, --grace and --drain-delay cannot be negative"
        raise ConfigError(problem)
    if args.watch_models is not None and not 0 < args.watch_models <= 1e6:
        raise ConfigError(f"--watch-models {args.watch_models:g}: expected more than 0 seconds")
    return limits


def _message_mib(asked: int | None, limits: Limits) -> int:
    """The largest message: what was asked for, or the default as far as there is memory for it. Raises ConfigError."""
    from nmt_core.base.errors import ConfigError
    from nmt_core.serving.shares import REQUEST_COPIES

    if asked is not None and asked > _LARGEST_MESSAGE:
        raise ConfigError(f"--max-message-mib {asked}: expected at most {_LARGEST_MESSAGE}")
    memory = limits.memory_bytes >> 20
    found = asked or min(limits.message_bytes >> 20, max(1, memory // REQUEST_COPIES))
    if REQUEST_COPIES * found > memory:
        held = f"a request of {found} MiB is held {REQUEST_COPIES} times while it is handled"
        raise ConfigError(f"--max-memory-mib {memory}: {held}; expected at least {REQUEST_COPIES * found}")
    return found


def _request_mib(asked: int | None, limits: Limits) -> int:
    """The largest message of a client: what was asked for, or the default as far as it is one. Raises ConfigError."""
    from nmt_core.base.errors import ConfigError
    from nmt_core.serving.limits import Limits

    most = limits.message_bytes >> 20
    if asked is not None and asked > most:
        raise ConfigError(f"--max-request-mib {asked}: expected at most {most}, or a larger --max-message-mib")
    return asked or min(Limits().request_bytes >> 20, most)


def _default(name: str) -> Any:
    """Of the option of a limit."""
    from nmt_core.serving.limits import Limits

    limits = Limits()
    if name.endswith("_mib"):
        return getattr(limits, f"{name[:-4]}_bytes") >> 20
    return getattr(limits, f"{name}_seconds" if name in _SECONDS else name)
