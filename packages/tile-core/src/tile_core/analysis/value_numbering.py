"""Value numbering: equal numbers for iterations that provably compute the same value."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

import numpy as np

from tile_core.analysis.accesses import choice_of, parts_of
from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Array, BufferVar, Expr, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.numerics.regions import region_of

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


class Fingerprint:
    """Value numbers of expressions.

    Parameters
    ----------
    env
        Values of variables, as arrays over the executions of an access.
    binds
        Names with the values bound to them.
    element
        Maps a load to identifiers of the elements that it reads, an array over the executions.
    """

    def __init__(
        self, env: Mapping[Var, Array], binds: Mapping[Var, Expr], element: Callable[[Expr, Mapping[Var, Array]], Array]
    ) -> None:
        self.env, self.binds, self.element = env, binds, element
        #: Numbers of names: each value is computed once, however often its name is used.
        self._bound: dict[Var, Array | None] = {}

    def of(self, e: Expr) -> Array:
        """Return the numbers of an expression.

        Raises
        ------
        Unknown
            If it calls a function that is not known to be pure.
        """
        try:
            return number_of(evaluate(e, self.env))
        except Unknown:
            pass
        if isinstance(e, ir.TensorLoad):
            return self.element(e, self.env)
        if isinstance(e, tirx.Var):
            return self._name(e) if e in self.binds else mixed("var", _text(f"{e.name} {identity(e)}"))
        sides = choice_of(e)
        if sides is not None:
            return self._choice(*sides)
        if nodes.is_tile_call(e):
            raise Unknown
        parts = [self.of(p) for p in parts_of(e)]
        name = nodes.operator_name(e) or type(e).__name__
        if not parts:
            return mixed(name, _text(str(e)))
        return mixed(f"{name} {nodes.dtype_of(e)} {region_of(e)}", *parts)

    def _name(self, v: Var) -> Array:
        # What a name depends on comes first: a chain of names may be longer than Python's stack is deep.
        open_names = [v]
        while open_names:
            name = open_names[-1]
            missing = [w for w in collect(self.binds[name], tirx.Var) if w in self.binds and w not in self._bound]
            if name not in self._bound and missing:
                open_names += missing
                continue
            open_names.pop()
            if name not in self._bound:
                try:
                    self._bound[name] = self.of(self.binds[name])
                except Unknown:
                    self._bound[name] = None
        found = self._bound[v]
        if found is None:
            raise Unknown
        return found

    def _choice(self, condition: Expr, then: Expr, other: Expr) -> Array:
        try:
            chosen = np.asarray(evaluate(condition, self.env), bool)
        except Unknown:
            return mixed("choice", self.of(condition), self.of(then), self.of(other))
        return np.where(chosen, self.of(then), self.of(other))


def number_of(value: Array) -> Array:
    """Return the numbers of integers."""
    return mixed("int", np.asarray(value, np.int64).view(np.uint64))


def element_number(buffer: BufferVar, at: Array) -> Array:
    """Return the numbers of elements ``at`` of a buffer."""
    return mixed("element", _text(f"{buffer.name} {hash(buffer)}"), np.asarray(at, np.int64).view(np.uint64))


def apart(iteration: Array) -> Array:
    """Return numbers that differ between iterations, for unknown values."""
    return mixed("apart", np.asarray(iteration, np.int64).view(np.uint64))


def _text(text: str) -> Array:
    return np.uint64(zlib.crc32(text.encode()) | zlib.adler32(text.encode()) << 32)


def mixed(name: str, *parts: Array) -> Array:
    """Return the numbers of an operation on values with the given numbers."""
    with np.errstate(over="ignore"):
        value: Array = np.atleast_1d(_text(name))
        for part in parts:
            value = (value ^ part) * _MIX
            value = value ^ (value >> _SHIFT)
        return value
