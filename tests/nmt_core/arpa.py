"""A bigram model small enough to be worked out by hand; log10 throughout."""

from __future__ import annotations

ARPA = """\\data\\
ngram 1=7
ngram 2=4

\\1-grams:
-1.5\t<unk>\t0
0\t<s>\t-0.3
-0.7\t</s>\t0
-0.9\tun\t-0.2
-1.0\tgroupe\t-0.1
-1.1\thommes\t-0.25
-0.8\t.\t-0.05

\\2-grams:
-0.4\t<s> un
-0.2\tun groupe
-0.35\thommes .
-0.1\t. </s>

\\end\\
"""
