"""Binaries that ``build_binary`` of KenLM made of ``arpa.ARPA``: hash tables, and a trie."""

from __future__ import annotations

import base64
import zlib


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


HASH_TABLES = _unpacked(
    "eNrLzU0sUMjJVcgoKSmw0tfPzkhNTMtMzUnRS87P1U/OT0lVSMsvyk0sUShLLSrOzM9TMOViQIAGeyCxnxFI/AcCkAgjVIYJTB6w"
    "RxZjh9IsDKiAHY1vHXh3XeDHu1dZgWyunO8fa4sfZDMxEAc2iaX5F0XmnQfZkSmcfvyzrrUSG5BdUKe417KtFOyW4q9+0jfDLtYz"
    "Q9y4H+QREGvWzJn7jI2NQW5uSEtLsz97xmcfyI9nz5zZe/ZMD1Bdwz6gGEh8L8w+jk9MGS0bjYVBahuL3n6ora5pBarfZ1LOsua+"
    "1DpLY+PN+3C51VqkcP6MtBBjkPk2pXnZdgw2xUCsDyRK8xjSi/JLC1IZMvJzc1OLGfQYAHRWaaU="
)
TRIE = _unpacked(
    "eNrLzU0sUMjJVcgoKSmw0tfPzkhNTMtMzUnRS87P1U/OT0lVSMsvyk0sUShLLSrOzM9TMOViQIAGeyCxnxFI/AcCkAgjVIYJTB6w"
    "Z4KKgTA7VI4FyQQ2KF1Qp7jXsq2UIVM4/fhnXWslrpzvH2uLH2QXf/WTvhl2sX6TWJp/UWTeeevAu+sCP969ijDhwH6QQ5CMZJg1"
    "c+Y+GPvsGZ/9QLwXxjc2Ngarh7kzLS0NJL+PCeEnIP/MXma4/h6g+oZ9yG5G9wMymDdz5teVM2funA40WH72zJk1KLI2pXnZdgw2"
    "xXYMegw2+kCqNI8hvSi/tCCVISM/Nze1mAEANxpcpA=="
)
