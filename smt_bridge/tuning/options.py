"""How weights are searched for: the values of ``--tuner``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from nmt_core.base.errors import ConfigError

_KEYS = ("runs", "seed", "restarts", "folds", "passes", "c", "decay")
_KEYS_OF_ONE = {"restarts": "mert", "passes": "mira", "c": "mira", "decay": "mira"}


class TuningOptions(BaseModel, frozen=True, extra="forbid"):
    """The search, its numbers, and what it is limited to.

    ``features`` limits the search to these names (None: all). Runs use seeds ``seed``, ``seed`` + 1, ...; Clark et al.
    2011 ask to look at several. ``restarts`` is for MERT; ``passes`` over the lists, the step's bound ``c`` and the
    ``decay`` of the background are for MIRA and kbmira's defaults. ``folds`` parts are held out in turn (None: the
    default of the list).
    """

    tuner: Literal["mert", "mira", "pro"] = "mert"
    features: tuple[str, ...] | None = None
    runs: Annotated[int, Field(ge=1)] = 3
    seed: Annotated[int, Field(ge=0)] = 1
    restarts: Annotated[int, Field(ge=0)] = 20
    folds: Annotated[int | None, Field(ge=2)] = None
    passes: Annotated[int, Field(ge=1)] = 60
    c: Annotated[float, Field(gt=0.0, le=1e6, allow_inf_nan=False)] = 0.01
    decay: Annotated[float, Field(ge=0.0, le=1.0)] = 0.999

    @classmethod
    def of(cls, words: Sequence[str]) -> TuningOptions:
        """By the values of ``--tuner NAME --tuner KEY=VALUE``. Raises ConfigError."""
        given: dict[str, str] = {}
        for word in words:
            key, value = word.split("=", 1) if "=" in word else ("tuner", word)
            if key not in ("tuner", *_KEYS):
                known = ", ".join(f"{name}=" for name in _KEYS)
                raise ConfigError(f"--tuner {key}=: expected mert, mira, pro, or one of {known}")
            if key in given:
                raise ConfigError(f"--tuner {word}: {'a tuner' if key == 'tuner' else key} is given twice")
            given[key] = value
        try:
            options = cls.model_validate_strings(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = str(first["loc"][0])
            if key == "tuner":
                raise ConfigError(f"--tuner {given[key]}: expected mert, mira or pro") from error
            raise ConfigError(f"--tuner {key}={given[key]}: {first['msg']}") from error
        unused = next((key for key, name in _KEYS_OF_ONE.items() if key in given and options.tuner != name), None)
        if unused is not None:
            raise ConfigError(f"--tuner {unused}= is a key of {_KEYS_OF_ONE[unused]}; {options.tuner} does not use it")
        return options
