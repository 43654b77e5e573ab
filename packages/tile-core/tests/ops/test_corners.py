"""Test corners of tiles: the axes that a tile extends along, and warnings."""

import warnings

import pytest

import tile_core.language as T
from tile_core.ops.operands import SuspectCorner


def traced(shape, tile, at, op="copy", shared=True):
    """Return the warnings of a kernel that copies a tile from a corner; an index is a number, or a block's axis."""

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")

        @T.prim_func
        def k(X: T.Tensor(shape, "int32"), Y: T.Tensor(tile, "int32")):
            with T.Kernel(*[shape[a[0]] // a[1] if isinstance(a, tuple) else 1 for a in at][:3], threads=32) as blocks:
                corner = tuple(blocks[n] * a[1] + sum(a[2:]) if isinstance(a, tuple) else a for n, a in enumerate(at))
                x = T.alloc_shared(tile, "int32")
                T.fill(x, 0)
                if op == "copy":
                    T.copy(X[corner], x)
                elif op == "store":
                    T.copy(x, X[corner])
                else:
                    T.atomic_add(X[corner], x)

        k.script()
    return [w for w in seen if w.category is SuspectCorner]


@pytest.mark.parametrize("op", ["copy", "store", "atomic"])
@pytest.mark.parametrize(
    ("shape", "tile", "at", "advice"),
    [
        ((1, 64, 2, 8), (32, 8), (0, 0, 1, 0), "X[i0, i1:i1 + 32, i2, i3:i3 + 8]"),
        ((2, 64, 4, 8), (32, 8), ((0, 1), (1, 32), (2, 1), 0), "X[i0, i1:i1 + 32, i2, i3:i3 + 8]"),
        ((100, 3, 8), (7, 8), (0, 2, 0), "X[i0:i0 + 7, i1, i2:i2 + 8]"),
        ((100, 3), (7,), (0, 2), "X[i0:i0 + 7, i1]"),
    ],
)
def test_a_tile_along_an_axis_whose_elements_are_selected(shape, tile, at, advice, op):
    (found,) = traced(shape, tile, at, op)
    assert str(found.message).endswith(advice)
    assert found.filename == __file__


@pytest.mark.parametrize(
    ("shape", "tile", "at"),
    [
        ((2, 4, 64, 8), (32, 8), ((0, 1), (1, 1), (2, 32), 0)),  # the tile fits
        ((64, 64, 5, 8), (32, 8), ((0, 1), (1, 1), 0, 0)),  # a tail: the only tile of a short axis
        ((2, 4, 33, 8), (32, 8), ((0, 1), (1, 1), 32, 0)),  # the last tile
        ((2, 4, 5, 8), (32, 8), (0, 0, 3, 0)),  # no other axis has as many elements
        ((64, 5, 8), (7, 10), (0, (1, 1, -1), 0)),  # a halo
        ((64, 1, 8), (32, 8), (0, 0, 0)),
        ((5, 8), (32, 8), (3, 0)),  # every axis belongs to the tile
    ],
)
def test_other_corners(shape, tile, at):
    assert not traced(shape, tile, at)
