"""Codes of languages, by which Moses' tokeniser chooses abbreviations and the rules for apostrophes.

``tokenizer.perl``, and *sacremoses* with it, silently uses the English rules for a code that it does not know. So what
is no language, such as the country ``cz`` for ``cs``, has to be found here.
"""

from __future__ import annotations

import re

from nmt_core.base.errors import ConfigError

_TWO_LETTERS = """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo
    es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg
    ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn
    no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw
    ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
"""ISO 639-1."""


def check_language(code: str, place: str) -> None:
    """Raise ConfigError unless the code is in ISO 639-1 or has three letters, as in ISO 639-3."""
    if code not in _TWO_LETTERS.split() and not re.fullmatch("[a-z]{3}", code):
        raise ConfigError(f"{place}: expected a language code of ISO 639, such as en, fr or cs")
