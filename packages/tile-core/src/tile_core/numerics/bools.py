"""Orders of bools as logic: C++ compilers refuse to order a bool and a constant where one result is impossible."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BinaryNode

ORDERS_OF_BOOLS: Mapping[BinaryNode, BinaryNode] = {
    tirx.LT: lambda a, b: tirx.And(tirx.Not(a), b),
    tirx.LE: lambda a, b: tirx.Or(tirx.Not(a), b),
    tirx.GT: lambda a, b: tirx.And(a, tirx.Not(b)),
    tirx.GE: lambda a, b: tirx.Or(a, tirx.Not(b)),
}
"""By the node that compares; false is before true."""
