"""A ``moses.ini`` with tuned weights: those that n-best lists show; all other bytes stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from nmt_core.base.messages import counted
from smt_bridge.errors import WiringError
from smt_bridge.moses.feature_functions import Feature, is_true
from smt_bridge.moses.ini import MosesIni
from smt_bridge.moses.ini_lines import section_lines
from smt_bridge.moses.weights import format_weight_line, parse_weight_line

_OVERRIDES = ("weight-overwrite", "alternate-weight-setting", "weight-add")


def with_weights(ini: MosesIni, weights: Mapping[str, Sequence[float]]) -> MosesIni:
    """The ini with these weights; components that lists do not show (``tuneable-components``) keep theirs.

    Raises WiringError for a name that the ini does not have, for another number of weights than its feature shows, and
    where weights stand outside of ``[weight]`` too.
    """
    for section in _OVERRIDES:
        if section_lines(ini.lines, section):
            raise WiringError(f"{ini.path}: has weights in [{section}] too; put them into [weight] first")
    features = {feature.name: feature for feature in ini.features}
    for name, values in weights.items():
        if name not in features:
            known = ", ".join(features) or "none"
            raise WiringError(f"{ini.path}: has no feature {name}, which the n-best lists show; it has {known}")
        ini = _with_weight(ini, features[name], values)
    return ini


def _with_weight(ini: MosesIni, feature: Feature, values: Sequence[float]) -> MosesIni:
    lines = [(number, code) for number, code in section_lines(ini.lines, "weight") if _label(code) == feature.name]
    number, code = lines[-1] if lines else (0, b"")  # Moses takes the last
    present = parse_weight_line(code.decode("utf-8", "surrogateescape"))[1] if lines else (1.0,) * feature.num_features
    shown = feature.listed(present)
    if len(shown) != len(values):
        raise WiringError(
            f"{ini.path}: {feature.name} shows {counted(len(shown), 'weight')}, but the n-best lists have {len(values)}"
        )
    written = format_weight_line(feature.name, list(_merged(feature, present, values))).encode(
        "utf-8", "surrogateescape"
    )
    if not lines:
        return ini.with_weight_line(written)
    line = ini.lines[number - 1].replace(code, written, 1)
    return MosesIni(ini.path, (*ini.lines[: number - 1], line, *ini.lines[number:]))


def _label(code: bytes) -> str:
    """The name in ``Name= 0.1 0.2``; "" in another line."""
    name, equals, _ = code.partition(b"=")
    return name.rstrip().decode("utf-8", "surrogateescape") if equals else ""


def _merged(feature: Feature, present: Sequence[float], values: Sequence[float]) -> Iterator[float]:
    """The values in the places of the components that lists show, the present weights in the others."""
    flags = feature.options.get("tuneable-components", "").split(",")
    new = iter(values)
    for place, weight in enumerate(present):
        yield next(new) if len(flags) != len(present) or is_true(flags[place]) else weight
