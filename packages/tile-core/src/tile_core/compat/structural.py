"""TVM's structural walk, map and mutation for the many small calls of passes.

A pass looks through thousands of small expressions. TVM's Python functions check their arguments anew at each call and
look up the kinds of nodes by name, which takes seven times as long as a small walk itself; here that happens once per
kind. The kinds to collect are passed to TVM once per thread, and a third of all expressions are constants and
variables, which are not walked. The version of ``tvm_ffi`` is pinned, and a test compares their results.

TVM's classes are abstract to Python: ``isinstance`` takes as long as a call where it fails. The kinds of nodes have no
subclasses, so frequent checks in passes compare types.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tile_core.compat.tvm import ir, tirx, tvm, tvm_ffi
from tile_core.compat.types import Expr, Node, Stmt, UnaryNode

_POST_ORDER = int(tvm_ffi.structural.WalkOrder.POSTORDER)
_walk: Callable[..., object] = tvm_ffi.structural._ffi_api.StructuralWalk
_map: Callable[..., Any] = tvm_ffi.structural._ffi_api.StructuralMap
_mutate: Callable[..., Any] = tvm_ffi.structural._ffi_api.StructuralMutate
item: Callable[[Any, int], Any] = tvm_ffi.container._ffi_api.ArrayGetItem
"""Returns an element of a TVM array by its index, which is not negative."""
size: Callable[[Any], int] = tvm_ffi.container._ffi_api.ArraySize
"""Returns the number of elements of a TVM array."""
_attributes: Callable[[Any], Any] = tvm.ir._ffi_api.DictAttrsGetDict
_entry: Callable[[Any, Any], Any] = tvm_ffi.container._ffi_api.MapGetItemOrMissing
_sequence: Callable[..., Any] = tirx._ffi_api.SeqStmt
_call: Callable[..., Any] = tvm.ir._ffi_api.Call
_forward: Callable[[Any], Callable[[int], Any]] = tvm_ffi.container._ffi_api.MapForwardIterFunctor
_MISSING = tvm_ffi.core.MISSING

identity: Callable[[Node], int] = tvm_ffi.Object.__chandle__
"""Returns a number of a node while it lives: a node has many Python objects, and comparing them is slow."""
is_same: Callable[[Node, Node], bool] = tvm_ffi.Object.same_as
"""Whether two Python objects are one node."""

_NONE = tvm_ffi.convert([])
_CONSTANTS = frozenset((tirx.IntImm, tirx.FloatImm))
ATOMS = frozenset((tirx.IntImm, tirx.FloatImm, tirx.Var))
"""The kinds of constants and variables."""

#: Faster than ``isinstance``, which TVM's classes define in Python.
_is_subclass = functools.lru_cache(maxsize=1024)(issubclass)
op_texts: dict[int, tuple[str, Any]] = {}
"""The names of operators in TVM's spelling, by the number of the operator."""
texts: dict[int, tuple[str, Any]] = {}
"""The texts of types, by the number of the type."""
scalar_texts: dict[int, tuple[str, Any]] = {}
"""The texts of types without the number of lanes, by the number of the type."""


class _Collectors(threading.local):
    """For each tuple of kinds a list, and what makes a walk append to it."""

    def __init__(self) -> None:
        self.of: dict[Any, tuple[list[Any], Any]] = {}


_collectors = _Collectors()


def sequence(statements: Sequence[Stmt]) -> Stmt:
    """Return several statements as one.

    TVM's own constructor looks for forms that it no longer has.
    """
    made: Stmt = tirx.SeqStmt.__new__(tirx.SeqStmt)
    made.__init_handle_by_constructor__(_sequence, statements, None)
    return made


def call(op: Expr, args: Sequence[Expr], attrs: Any, kind: Any, span: Any = None) -> Expr:
    """Return a call of an operator.

    TVM's own constructor imports the classes that it compares arguments with.
    """
    made: Expr = ir.Call.__new__(ir.Call)
    made.__init_handle_by_constructor__(_call, kind, op, args, attrs, [], span)
    return made


def entries(mapping: Any) -> dict[Any, Any]:
    """Return the attributes of a call, or the entries of a map, by text.

    There are none in ``None``.
    """
    given = _attributes(mapping) if type(mapping) is ir.DictAttrs else mapping
    if type(given) is not tvm_ffi.Map:
        return {str(k): v for k, v in dict(given).items()} if given else {}
    at, found = _forward(given), dict[Any, Any]()
    for _ in range(len(given)):
        found[str(at(0))] = at(1)
        at(2)
    return found


def items(array: Any) -> list[Any]:
    """Return the elements of a TVM array, whose own iterator checks each index anew."""
    count = size(array)
    if count == 1:
        return [item(array, 0)]
    if count == 2:
        return [item(array, 0), item(array, 1)]
    return list(map(item, itertools.repeat(array), range(count)))


def entry(mapping: Any, key: str, default: Any = None) -> Any:
    """Return an entry of a TVM map, or a default value."""
    found = _entry(mapping, key)
    return default if _MISSING.same_as(found) else found


def attribute(call: Expr, key: str, default: Any = None) -> Any:
    """Return an attribute of a call, or a default value."""
    attrs = call.attrs
    found = _MISSING if attrs is None else _entry(_attributes(attrs), key)
    return default if _MISSING.same_as(found) else found


def is_atom(e: Node) -> bool:
    """Whether an expression is a constant or a scalar's variable, without parts in its type."""
    kind = type(e)
    return kind in _CONSTANTS or (kind is tirx.Var and type(e.ty) is ir.PrimType)


def collect(node: Node, kinds: Any) -> list[Node]:
    """Return the nodes of ``kinds``, a class or a tuple of classes; children first."""
    kind: Any = type(node)
    if kind in _CONSTANTS or (kind is tirx.Var and type(node.ty) is ir.PrimType):  # ``is_atom``
        return [node] if _is_subclass(kind, kinds) else []
    made = _collectors.of.get(kinds)
    if made is None:
        box: list[Any] = []
        made = _collectors.of[kinds] = box, tvm_ffi.convert([(number, box.append) for number in numbers_of(kinds)])
    box, handlers = made
    try:
        _walk(node, handlers, _NONE, _POST_ORDER)
        return box.copy()
    finally:
        box.clear()


def walk(node: Node, kinds: Any, callback: Callable[[Node], None]) -> None:
    """Call a function that returns ``None`` on each node of ``kinds``, children first."""
    _walk(node, [(kind, callback) for kind in numbers_of(kinds)], [], _POST_ORDER)


def mapped(node: Node, kinds: Any, callback: UnaryNode) -> Node:
    """Replace each node of ``kinds`` by a function's result for it, children first."""
    kind: Any = type(node)
    if kind in _CONSTANTS or (kind is tirx.Var and type(node.ty) is ir.PrimType):  # ``is_atom``
        return callback(node) if _is_subclass(kind, kinds) else node
    numbers = numbers_of(kinds)
    handlers = [(numbers[0], callback)] if len(numbers) == 1 else [(number, callback) for number in numbers]
    return _map(node, handlers, [], _POST_ORDER)


def mutated(node: Expr, handlers: Sequence[tuple[Any, Callable[[Any, Any], Any]]]) -> Expr:
    """Replace nodes by the result of the first handler of their kind.

    A handler gets the node and a mutator of its parts.
    """
    return _mutate(node, [(kind, handler, False) for kinds, handler in handlers for kind in numbers_of(kinds)])


def op_name(call: Any) -> str:
    """Return the operator name of a call in TVM's spelling; empty for other calls."""
    op = call.op
    known = op_texts.get(op.__chandle__())
    if known is None:
        if type(op) is not ir.Op:
            return ""
        known = op_texts[op.__chandle__()] = str(op.name), op  # there is one object for each operator
    return known[0]


def type_text(kind: Any) -> str:
    """Return the text of a type."""
    if type(kind) is not ir.PrimType:
        return str(kind)
    known = texts.get(kind.__chandle__())
    if known is None:
        # TVM has one object for each scalar type; the table keeps it, so that no other one gets its address.
        known = texts[kind.__chandle__()] = str(kind), kind
    return known[0]


def scalar_text(kind: Any) -> str:
    """Return the text of a type without the number of lanes."""
    known = scalar_texts.get(kind.__chandle__())
    if known is None:
        text = type_text(kind).split("x", 1)[0]
        if type(kind) is not ir.PrimType:
            return text
        known = scalar_texts[kind.__chandle__()] = text, kind
    return known[0]


@functools.lru_cache(maxsize=1024)
def numbers_of(kinds: Any) -> tuple[int, ...]:
    """Return TVM's numbers of a kind of nodes, or of each of a tuple."""
    number = tvm_ffi.structural._callback_type_to_type_index
    return tuple(number(kind, api_name="walk") for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
