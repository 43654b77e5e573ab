"""Values of a kernel at trace time: scalars, buffers and regions of buffers.

``Value`` (``values/scalar.py``) wraps a tirx expression and gives it Python's operators with the promotion rules
below. ``Buffer`` (``values/buffer.py``) is what ``T.Tensor`` parameters and ``T.alloc_*`` return; indexing it with
scalars gives a ``Value`` (which remembers its element, so that it can be a corner or an atomic's destination), indexing
it with slices gives a ``Region``.

Promotion: a Python number takes the type of the other side (a float beside an integer gives ``float32``). Between two
values the wider float wins; ``float16`` with ``bfloat16`` gives ``float32``; floats of 8 or fewer bits are computed in
``float32``; an integer beside a float takes the float's type; between integers the wider wins, and between equal
widths the unsigned one; ``bool`` beside a number takes the number's type.
"""

from tile_core.values.buffer import Buffer, Indices, Region, Tile, add_index, to_index
from tile_core.values.elementwise import elementwise
from tile_core.values.promotion import common_type
from tile_core.values.scalar import (
    Index,
    Number,
    Scalar,
    Shape,
    Value,
    arith,
    as_value,
    bitwise,
    cast,
    compare,
    constant_of,
    derive,
    divide,
    floordiv,
    floormod,
    power,
    promote,
    shift,
    simplify,
)
from tile_core.values.tile_values import TileValue, computed, is_tile

__all__ = [
    "Buffer", "Index", "Indices", "Number", "Region", "Scalar", "Shape", "Tile",
    "TileValue", "Value", "add_index", "arith", "as_value", "bitwise", "cast", "common_type", "compare",
    "computed", "constant_of", "derive", "divide", "elementwise", "floordiv", "floormod", "is_tile",
    "power", "promote", "shift", "simplify", "to_index",
]  # fmt: skip
