"""Find parameters whose words an op interprets as codes.

Not every bit pattern is legal metadata of ``T.gemm_sp``, and the codes of narrow floats in unsigned words lie close
together. So generators of inputs query which parameters hold them. A parameter holds what an op reads if its elements
reach the op unchanged in number: through copies, views, variables and elementwise stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.program import Program
from tile_core.ir.visit import collect
from tile_core.ops.base import OpCall, View, is_op

#: Metadata of groups of four, and of pairs, which are a part of those.
METADATA = {4: "metadata of 4", 2: "metadata of 2"}
#: The bits of a group that every instruction accepts, by what a parameter holds: two indices that increase, of which a
#: pair has the halves of one element.
LEGAL_NIBBLES = {METADATA[4]: (4, 8, 12, 9, 13, 14), METADATA[2]: (4, 14)}
#: Positions of the operands that an op moves from and to.
_MOVES = {"copy": (0, 1), "copy_to_block": (0, 1), "transpose": (0, 1), "gather": (0, 2), "scatter": (0, 1)}


def held_codes(program: Program | None) -> dict[str, str]:
    """Return the codes of parameters by op: one of ``METADATA``, or a type.

    Nothing is known of the parameters of ``None``.
    """
    if program is None or not any(True for _ in _goals(program.func.body)):
        return {}
    flow = Origins(program.func.body)
    own = {str(v.name): p for v, p in zip(program.func.params, program.params, strict=True)}
    found: dict[str, set[str]] = {}
    for view, held in _goals(program.func.body):
        for name in flow.sources(view):
            if name in own and own[name].kind == "tensor" and DTYPES[own[name].dtype].is_integer:
                found.setdefault(own[name].name, set()).add(held)
    # Any bits are a float, and legal metadata of pairs are legal of four, too.
    return {name: min(kinds, key=lambda k: (not k.startswith("metadata"), k)) for name, kinds in found.items()}


class Origins:
    """Where the elements of buffers come from.

    Parameters
    ----------
    body
        A program.
    """

    def __init__(self, body: Stmt) -> None:
        self._from: dict[Any, set[Any]] = {}
        for view in collect(body, tirx.DeclBuffer):
            names = {str(v.name) for v in collect(view.data, tirx.Var)}
            self._add(str(view.buffer.name), names)
            for name in names:  # what is written through the view is in its buffer, too
                self._add(name, {str(view.buffer.name)})
        for store in collect(body, tirx.BufferStore):
            self._add(str(store.buffer.name), set(_origins(store.value)))
        for bind in collect(body, tirx.Bind):
            if not nodes.is_tile_call(bind.value):
                self._add(structural.identity(bind.var), set(_origins(bind.value)))
        for call in _calls(body):
            if call.name in _MOVES:
                source, to = (call.args[p] for p in _MOVES[call.name])
                assert isinstance(source, View)
                assert isinstance(to, View)
                self._add(to.name, {source.name})

    def sources(self, view: View) -> list[str]:
        """Return the names of the buffers whose elements reach a region, its own included."""
        found: dict[Any, None] = {}
        rest: list[Any] = [view.name]
        while rest:
            at = rest.pop()
            if at not in found:
                found[at] = None
                rest += self._from.get(at, ())
        return [name for name in found if isinstance(name, str)]

    def _add(self, to: Any, sources: set[Any]) -> None:
        self._from.setdefault(to, set()).update(sources)


def _goals(body: Stmt) -> Iterator[tuple[View, str]]:
    """Yield the operands that hold codes, and what these are."""
    for call in _calls(body):
        if call.name == "gemm_sp":
            assert isinstance(call.args[1], View)
            yield call.args[1], METADATA[int(call.attrs[attributes.GROUP])]
        elif call.name == "gemm_scaled":
            for view, held in zip(call.args[:4], call.attrs[attributes.TYPES], strict=False):
                assert isinstance(view, View)
                if view.dtype != str(held):
                    yield view, str(held)


def _calls(body: Stmt) -> Iterator[OpCall]:
    return (OpCall.decode(s) for s in collect(body, tirx.Evaluate) if is_op(s))


def _origins(e: Expr) -> Iterator[Any]:
    """Yield the buffers that an expression loads from, and its variables outside indices."""
    loads = collect(e, ir.TensorLoad)
    indices = [i for load in loads for i in load.indices]
    located = {structural.identity(x) for i in indices for x in collect(i, ir.TensorLoad)}
    yield from (str(load.source.name) for load in loads if structural.identity(load) not in located)
    counted = {structural.identity(v) for i in indices for v in collect(i, tirx.Var)}
    yield from {structural.identity(v) for v in collect(e, tirx.Var)} - counted
