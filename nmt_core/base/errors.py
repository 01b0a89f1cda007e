"""What can go wrong for a user, as one tree.

    NmtError                  one clear line for the user; commands print it and exit with 2
    ├── InputError            a file or a line of it is not what was expected
    ├── ConfigError           an option or a configuration key is wrong
    ├── ModelError            a model folder cannot be used (damaged, newer format, wrong vocabulary)
    └── ServiceError          the gRPC service could not answer
        ├── Overloaded        its queue is full: try again later
        └── Unavailable       nobody answers there

Programming mistakes are not in the tree: they are assertions and end in a traceback.
"""

from __future__ import annotations


class NmtError(Exception):
    """An error that a user caused or can mend; its text is one line that says how."""


class InputError(NmtError):
    """A file, or one line of it, is not what was expected.

    The text reads ``path:line: problem; remedy``; ``line`` counts from 1.
    """

    def __init__(self, path: str, problem: str, *, line: int | None = None) -> None:
        self.path = input_name(path)
        self.line = line
        self.problem = problem
        super().__init__(path, problem)  # what it is unpickled from, in another process

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.problem}"


def input_name(path: str) -> str:
    """What an input is called in messages."""
    return "standard input" if path == "-" else path


def unreadable(path: str, error: OSError | ValueError) -> InputError:
    """What to raise where the operating system does not open an input; a name with a zero byte is a ValueError."""
    remedy = "; change its rights (chmod), or give another file" if isinstance(error, PermissionError) else ""
    return InputError(path, f"cannot be read ({getattr(error, 'strerror', None) or error}){remedy}")


FULL_GPU = "a GPU's memory is full; start the same command again, with fewer --jobs or smaller batches"


def is_full_gpu(error: BaseException) -> bool:
    """Whether this is PyTorch's error of a GPU without memory left; PyTorch is not loaded for its sake."""
    return type(error).__name__ == "OutOfMemoryError"


class ConfigError(NmtError):
    """An option or a configuration key is wrong."""


class ModelError(NmtError):
    """A model folder cannot be used."""


class ServiceError(NmtError):
    """The gRPC service could not answer."""


class Overloaded(ServiceError):
    """The service's queue is full."""


class Unavailable(ServiceError):
    """Nobody answers at the service's address."""


_EXTRAS = {
    "torch": ("PyTorch", "nmt"),
    "safetensors": ("safetensors", "nmt"),
    "grpc": ("gRPC", "client"),
    "grpc_health": ("gRPC's health service", "client"),
    "google": ("Protocol Buffers", "client"),
    "cryptography": ("cryptography", "serve"),
    "prometheus_client": ("prometheus-client", "serve"),
    "ctranslate2": ("CTranslate2", "ct2"),
    "transformers": ("transformers", "hf"),
    "kenlm": ("KenLM", "lm"),
    "ray": ("Ray", "ray"),
    "sklearn": ("scikit-learn", "analysis"),
}
_BASE = {"numpy", "pydantic", "yaml", "isal", "backports", "sacrebleu", "sacremoses", "tqdm"}


def what_is_missing(error: ModuleNotFoundError) -> str:
    """One line that says what to install; empty where the package is none that we ask for.

    >>> what_is_missing(ModuleNotFoundError("", name="torch._C"))
    "this needs PyTorch: pip install 'hybridmt[nmt]'"
    """
    package = (error.name or "").partition(".")[0]
    if package in _BASE:
        return f"this needs {package}, which hybridmt without its dependencies lacks: pip install hybridmt"
    name, extra = _EXTRAS.get(package, ("", ""))
    return f"this needs {name}: pip install 'hybridmt[{extra}]'" if name else ""
