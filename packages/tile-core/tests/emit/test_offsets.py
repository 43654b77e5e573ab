"""Which dimensions of a tensor move the pointer in 64 bits."""

from __future__ import annotations

from typing import Any

import pytest

from tile_core.compat.tvm import tirx
from tile_core.emit.offsets import is_wide, leading_dimensions

m, n, wide = tirx.Var("m", "int32"), tirx.Var("n", "int32"), tirx.Var("k", "int64")


@pytest.mark.parametrize(
    ("shape", "strides", "symbols", "leading"),
    [
        ((4096, 4096), None, True, 0),
        ((65536, 32768), None, False, 1),
        ((65535, 32768), None, False, 0),
        ((256, 4096, 7168), None, False, 1),
        ((4, 65536, 65536), None, False, 2),
        ((m, n), None, False, 0),
        ((m, n), None, True, 1),
        ((m, 7168), None, True, 1),
        ((m, 256, 256), None, True, 1),
        ((8, n), None, True, 1),
        ((n,), None, True, 0),
        ((wide, 64), None, True, 0),
        ((70000, 64), (65536, 1), False, 1),
        ((64, 70000), (1, 65536), False, 0),
        ((m, n), (n, 1), True, 1),
        ((0, 65536, 65536), None, False, 0),
    ],
)
def test_leading_dimensions(shape: Any, strides: Any, symbols: bool, leading: int) -> None:
    buffer = tirx.decl_buffer(list(shape), "int8", "A", strides=list(strides or ()), layout=None)
    assert leading_dimensions(buffer, symbols) == leading
    assert is_wide(buffer, symbols) or not leading


def test_whole_offsets_of_64_bits() -> None:
    for shape, strides in (((wide, 64), ()), ((64, 70000), (1, 65536))):
        assert is_wide(tirx.decl_buffer(list(shape), "int8", "A", strides=list(strides), layout=None), False)
