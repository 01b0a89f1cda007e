"""Codes of languages, by which Moses' tokeniser chooses abbreviations and the rules for apostrophes."""

from __future__ import annotations

import functools
import multiprocessing
import re

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say

WITH_RULES = """
    as bn ca cs de el en es et fi fr ga gu hi hu is it ja kn ko lt lv ml mni mr nl or pa pl pt ro ru sk sl sv
    ta tdt te yue zh
"""
"""Languages that *sacremoses* knows, as ``tokenizer.perl`` does."""


def check_language(code: str, place: str) -> None:
    """Raise ConfigError, naming ``place``, unless the code has two or three letters; say where it has no rules."""
    if not re.fullmatch("[a-z]{2,3}", code):
        raise ConfigError(f"{place}: expected a language code of ISO 639, such as en, fr or cs")
    say_if_without_rules(code)


@functools.cache
def say_if_without_rules(language: str) -> None:
    """Say, once in a program, that the tokeniser takes the rules of English, as ``tokenizer.perl`` does, too."""
    if language not in WITH_RULES.split() and multiprocessing.parent_process() is None:
        say(f"language '{language}': Moses' tokeniser has no rules for it and uses the English ones (Czech is cs)")
