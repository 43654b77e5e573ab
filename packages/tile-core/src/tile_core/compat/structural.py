"""TVM's structural walk, map and mutation for the many small calls of passes.

A pass looks through thousands of small expressions. TVM's Python functions check their arguments anew at each call and
look up the kinds of nodes by name, which takes seven times as long as a small walk itself; here that happens once per
kind. The version of ``tvm_ffi`` is pinned, and a test compares their results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tile_core.compat.tvm import tvm_ffi
from tile_core.compat.types import Expr, Node, UnaryNode

_POST_ORDER = int(tvm_ffi.structural.WalkOrder.POSTORDER)
_walk: Callable[..., object] = tvm_ffi.structural._ffi_api.StructuralWalk
_map: Callable[..., Any] = tvm_ffi.structural._ffi_api.StructuralMap
_mutate: Callable[..., Any] = tvm_ffi.structural._ffi_api.StructuralMutate
_item: Callable[[Any, int], Any] = tvm_ffi.container._ffi_api.ArrayGetItem


def items(array: Any) -> list[Any]:
    """Return the elements of a TVM array, whose own iterator checks each index anew."""
    return [_item(array, n) for n in range(len(array))]


def walk(node: Node, kinds: Any, callback: Callable[[Node], None]) -> None:
    """Call a function that returns ``None`` on each node of ``kinds``, children first."""
    _walk(node, [(kind, callback) for kind in numbers_of(kinds)], [], _POST_ORDER)


def mapped(node: Node, kinds: Any, callback: UnaryNode) -> Node:
    """Replace each node of ``kinds`` by a function's result for it, children first."""
    return _map(node, [(kind, callback) for kind in numbers_of(kinds)], [], _POST_ORDER)


def mutated(node: Expr, handlers: Sequence[tuple[Any, Callable[[Any, Any], Any]]]) -> Expr:
    """Replace nodes by the result of the first handler of their kind, given the node and a mutator of its parts."""
    return _mutate(node, [(kind, handler, False) for kinds, handler in handlers for kind in numbers_of(kinds)])


@functools.lru_cache(maxsize=1024)
def numbers_of(kinds: Any) -> tuple[int, ...]:
    """Return TVM's numbers of a kind of nodes, or of each of a tuple."""
    number = tvm_ffi.structural._callback_type_to_type_index
    return tuple(number(kind, api_name="walk") for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
