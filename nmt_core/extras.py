"""Which extra of the distribution brings a package that is not installed."""

from __future__ import annotations

_EXTRAS = {
    "torch": ("PyTorch", "nmt"),
    "safetensors": ("safetensors", "nmt"),
    "grpc": ("gRPC", "client"),
    "grpc_health": ("gRPC's health service", "client"),
    "google": ("Protocol Buffers", "client"),
    "grpc_reflection": ("gRPC's reflection service", "serve"),
    "cryptography": ("cryptography", "serve"),
    "prometheus_client": ("prometheus-client", "serve"),
    "ray": ("Ray", "ray"),
    "shtab": ("shtab", "completion"),
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
