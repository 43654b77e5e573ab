"""Facts of the metadata of 2:4 sparse operands, by TileLang's names."""

from __future__ import annotations

from typing import Any

from tile_core.dtypes import dtype

__all__ = ["GROUP_CONFIG", "get_e_factor", "get_e_replicate_factor"]

_NAMES = "float16 bfloat16 int8 uint8 float8_e4m3 float8_e5m2".split()
#: Element type -> elements that are kept of a group, and the size of the group.
GROUP_CONFIG = {dtype("float32"): (1, 2), **{dtype(name): (2, 4) for name in _NAMES}}


def get_e_factor(a_dtype: Any, meta_dtype: Any) -> int:
    """Return how many elements of the dense operand one word of metadata describes."""
    return dtype(meta_dtype).bits // 4 * GROUP_CONFIG[dtype(a_dtype)][1]


def get_e_replicate_factor(a_dtype: Any) -> int:
    """Return how many adjacent threads have the same metadata in NVIDIA's registers."""
    return 1 if dtype(a_dtype).bits <= 8 else 2
