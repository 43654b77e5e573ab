"""Layouts: integer maps from coordinates to memory, threads and registers.

All are one kind of object, ``LayoutMap``: a map to an index on each of some named axes. Inside, a layout is a
``DigitLayout`` where possible: digits (extent, stride, axis) of the row-major index, plus XOR swizzles of the memory
index, copies and padding. A ``FragmentLayout`` is one onto the threads of a block and their registers: what
instructions require and layout inference chooses. Users make layouts with ``Layout`` and ``Fragment``.

>>> from tile_core.layout import make_swizzled_layout, row_major
>>> row_major((4, 8))
(4,8):(8@memory,1@memory)
>>> make_swizzled_layout((64, 64), element_bits=16)(3, 8)
208
"""

from tile_core.layout.base import LayoutMap
from tile_core.layout.digits import AXES, Digit
from tile_core.layout.draw import draw, to_svg
from tile_core.layout.fragment import Digits, FragmentLayout, spread
from tile_core.layout.layout import DigitLayout, column_major, row_major, strided
from tile_core.layout.proof import Collision, Proof, prove
from tile_core.layout.recover import recover
from tile_core.layout.recover_fragment import fragment_of
from tile_core.layout.shared import bank_conflicts, make_swizzled_layout
from tile_core.layout.stacked import StackedLayout
from tile_core.layout.swizzle import PYTHON_OPS, Ops, Swizzle
from tile_core.layout.table import CallableLayout, TableLayout
from tile_core.layout.user import Fragment, Layout

__all__ = [
    "AXES",
    "PYTHON_OPS",
    "CallableLayout",
    "Collision",
    "Digit",
    "DigitLayout",
    "Digits",
    "Fragment",
    "FragmentLayout",
    "Layout",
    "LayoutMap",
    "Ops",
    "Proof",
    "StackedLayout",
    "Swizzle",
    "TableLayout",
    "bank_conflicts",
    "column_major",
    "draw",
    "fragment_of",
    "make_swizzled_layout",
    "prove",
    "recover",
    "row_major",
    "spread",
    "strided",
    "to_svg",
]
