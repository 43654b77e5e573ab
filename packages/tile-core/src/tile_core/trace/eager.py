"""The eager style: a kernel function called with arrays and specialised for their shapes.

The function runs twice. The first run stops after the declarations and finds the values of ``T.const`` names; the
second is the trace, with these names as Python ints.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.compat.types import Array, BufferVar, DTypeLike, Expr
from tile_core.dtypes import DType
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors import TileError
from tile_core.errors.language import (
    BadArgument,
    BadParameter,
    BadReturn,
    OutsideKernel,
    PythonError,
    ShapeDisagrees,
    UndeterminedConst,
    UnknownSize,
)
from tile_core.ir.program import ParamInfo, Program
from tile_core.trace.names import parameters
from tile_core.trace.parameters import declare, tensor
from tile_core.trace.source import definition, rewritten
from tile_core.trace.tracer import evaluate, finish, located, return_of, run
from tile_core.values.builder import Builder, current
from tile_core.values.types import TensorType
from tile_core.values.value import Buffer, Index, constant_of
from tile_runtime.errors.interrupts import watched

if TYPE_CHECKING:
    from tile_core.errors.base import Where


def is_eager(fn: Callable[..., object]) -> bool:
    """Whether a function is itself a kernel, rather than a factory of kernels."""
    node = definition(fn).node
    params = parameters(node.args)
    return any(_is_kernel_statement(s, params) for s in _own(node))


def trace_eager(
    fn: Callable[..., object],
    arguments: Mapping[str, object],
    scope: Mapping[str, object],
    sizes: Mapping[str, Index] | None = None,
) -> Program:
    """Return the program of an eager kernel for these arguments.

    Parameters
    ----------
    fn
        The kernel function.
    arguments
        All its parameters, defaults included; ``DEFERRED`` for arrays and scalars that calls will give.
    scope
        Names in the scope that defines it.
    sizes
        Values of names of ``T.const``, instead of those that arrays would give: ints, or symbols of ``T.dynamic``.

    Returns
    -------
    Program
        Its parameters are the tensors and runtime scalars in the order of the signature, then the outputs in the order
        of the ``return``.
    """
    where = definition(fn).where
    notes = {n: p.annotation for n, p in inspect.signature(fn).parameters.items()}
    notes = {n: None if a is inspect.Parameter.empty else evaluate(a, fn, scope) for n, a in notes.items()}
    code = rewritten(fn, scope)
    with watched(), located(where):
        state = _State(arguments, notes, dict(sizes or {}), probing=True)
        has_const = state.names_of_const(fn)
        state.check_deferred(fn)
        if has_const:
            state.probe(fn, code)
        if sizes and (unknown := sizes.keys() - state.asked):
            raise UnknownSize(name=min(unknown), kernel=fn.__name__, known=", ".join(sorted(state.asked)) or "none")
        state = _State(arguments, notes, state.consts, probing=False)
        return state.trace(fn, code, where)


class _Deferred:
    """An argument that the calls of a kernel give, which is compiled before."""

    def __repr__(self) -> str:
        return "an argument of a later call"


DEFERRED = _Deferred()


class _DeclarationsEnd(BaseException):
    """Ends the first run; not an ``Exception``, so that no handler catches it."""


class _Unknown:
    """A dimension of ``T.const`` during the first run; arithmetic on it is unknown too."""

    is_unknown_size = True

    def __init__(self, name: str = "") -> None:
        self.name = name

    def _other(self, *others: Any) -> _Unknown:
        return _Unknown()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _other
    __mod__ = __rmod__ = __neg__ = __truediv__ = __rtruediv__ = __pow__ = __lshift__ = __rshift__ = _other


class _State:
    """The state of one run; ``Builder.eager``."""

    def __init__(
        self, arguments: Mapping[str, Any], notes: Mapping[str, object], consts: dict[str, Any], *, probing: bool
    ) -> None:
        self.arguments = arguments
        self.notes = notes
        self.consts = consts
        self.probing = probing
        self.waiting: set[str] = set()
        self.asked: set[str] = set()
        self.params: dict[str, tuple[Expr, object, ParamInfo]] = {}
        self.outputs: list[tuple[BufferVar, Buffer, ParamInfo]] = []
        self.builder: Builder | None = None

    def names_of_const(self, fn: Callable[..., object]) -> bool:
        """Whether the function uses ``T.const``; also records which tensors it declares in its body."""
        node = definition(fn).node
        params = set(parameters(node.args))
        for statement in _own(node):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                self.waiting.update({statement.target.id} & params)
        return any(_calls(s, ("const",)) for s in _own(node))

    def check_deferred(self, fn: Callable[..., object]) -> None:
        """Refuse a missing argument that is no array or runtime scalar by its declaration.

        Raises
        ------
        PythonError
            As Python does for a missing argument.
        """
        for name, argument in self.arguments.items():
            note = self.notes.get(name)
            if argument is DEFERRED and name not in self.waiting and not isinstance(note, (TensorType, DType)):
                detail = f"{fn.__name__}() missing a required argument: {name!r}"
                raise PythonError(kind="TypeError", detail=detail)

    def probe(self, fn: Callable[..., object], code: Callable[..., object]) -> None:
        """Find the names of ``T.const`` from the shapes of the arguments."""
        builder = Builder(fn.__name__)
        builder.eager = self
        problem: Exception | None = None
        with builder.active():
            try:
                run(code, [], self._bound(builder))
            except _DeclarationsEnd:
                pass
            except TileError as error:
                problem = error
        unknown = [n for n, v in self.consts.items() if isinstance(v, _Unknown)]
        if isinstance(problem, ShapeDisagrees) or (problem is not None and (unknown or not self.consts)):
            raise problem
        if unknown:
            raise UndeterminedConst(name=unknown[0])

    def trace(self, fn: Callable[..., object], code: Callable[..., object], where: Where) -> Program:
        """Run the function and collect its program."""
        builder = self.builder = Builder(fn.__name__)
        builder.eager = self
        with builder.active():
            result = run(code, [], self._bound(builder))
            try:
                outputs = self._returned(fn.__name__, result)
            except BadReturn as error:
                raise error.at(return_of(fn)) from None
            for name, argument in self.arguments.items():
                if name not in self.params and is_array(argument):
                    expected = f'a declaration such as `{name}: T.Tensor[(M, N), "float16"]`'
                    found, fix = "an array without one", f"add {expected}"
                    raise BadParameter(name=name, kernel=fn.__name__, found=found, expected=expected, fix=fix)
            ordered = [self.params[n] for n in self.arguments if n in self.params] + outputs
            first = len(ordered) - len(outputs)
            positions = tuple(range(first, len(ordered)))
            return finish(builder, [p[0] for p in ordered], [p[2] for p in ordered], where, positions)

    def _bound(self, builder: Builder) -> dict[str, object]:
        bound = dict(self.arguments)
        for name, note in self.notes.items():
            if isinstance(note, TensorType):
                bound[name] = self.declare(name, note, bound[name])
            elif type(note) is DType and not self.probing:
                self.params[name] = declare(builder, name, note)
                bound[name] = self.params[name][1]
        return bound

    # ------------------------------------------------------------------ called by the kernel

    def const(self, name: str) -> object:
        """Return the value of a name of ``T.const``."""
        self.asked.add(name)
        if self.probing:
            return self.consts.setdefault(name, _Unknown(name))
        if name not in self.consts:
            raise UndeterminedConst(name=name)
        return self.consts[name]

    def declare(self, name: str, annotation: object, argument: object) -> object:
        """Follow ``name: T.Tensor[...]``."""
        if not isinstance(annotation, TensorType):
            return argument
        if argument is not DEFERRED and not is_array(argument):
            raise ShapeDisagrees(name=name, what="the argument", found=type(argument).__name__, expected="an array")
        if argument is not DEFERRED:
            self._compare(name, annotation, argument)
        if self.probing:
            if self.waiting == {name}:
                raise _DeclarationsEnd
            self.waiting.discard(name)
            return argument
        if name not in self.params:
            self.params[name] = tensor(current(), name, annotation)
        return self.params[name][1]

    def _compare(self, name: str, declared: TensorType, argument: Array) -> None:
        shape = tuple(int(d) for d in argument.shape)
        if len(shape) != len(declared.shape):
            expected = f"{len(declared.shape)} dimensions"
            raise ShapeDisagrees(name=name, what="its rank", found=f"{len(shape)} dimensions", expected=expected)
        found = to_dtype(getattr(argument.dtype, "name", argument.dtype))
        if found not in (declared.dtype, declared.dtype.storage):
            raise ShapeDisagrees(name=name, what="its element type", found=found, expected=declared.dtype)
        for d, (have, want) in enumerate(zip(shape, declared.shape, strict=True)):
            if isinstance(want, _Unknown):
                if want.name and isinstance(self.consts.get(want.name), _Unknown):
                    self.consts[want.name] = have
                want = self.consts.get(want.name, want) if want.name else want
            constant = None if isinstance(want, _Unknown) else constant_of(want)
            if declared.dtype.is_packed and found != declared.dtype and d == len(shape) - 1:
                continue
            if constant is not None and constant != have:
                raise ShapeDisagrees(name=name, what=f"dimension {d}", found=have, expected=constant)

    def empty(self, shape: Sequence[Any], dtype: DTypeLike) -> Buffer:
        """Declare an output."""
        if self.probing:
            raise _DeclarationsEnd
        builder = current("T.empty")
        name = builder.hints.pop(0) if builder.hints else "out"
        found = tensor(builder, name, TensorType(tuple(shape), to_dtype(dtype)))
        self.outputs.append(found)
        return found[1]

    def launching(self) -> None:
        """End of the declarations."""
        if self.probing:
            raise _DeclarationsEnd

    def _returned(self, kernel: str, result: object) -> list[tuple[BufferVar, Buffer, ParamInfo]]:
        items = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
        expected = "tensors made by T.empty"
        ordered = []
        for item in items:
            match = [o for o in self.outputs if o[1] is item]
            if not match or match[0] in ordered:
                found = f"{item.name}" if isinstance(item, Buffer) else f"an object of type {type(item).__name__}"
                raise BadReturn(kernel=kernel, found=found, expected=expected)
            ordered.append(match[0])
        missing = [o[1].name for o in self.outputs if o not in ordered]
        if missing:
            raise BadReturn(kernel=kernel, found="something else", expected=f"{missing[0]}, which T.empty made, too")
        return ordered


def is_array(x: object) -> bool:
    """Whether an argument is an array, not a Python value."""
    return hasattr(x, "shape") and hasattr(x, "dtype") and hasattr(x, "__dlpack__")


def eager_state(what: str) -> _State:
    """Return the state of the eager kernel being traced."""
    builder = current(what)
    if builder.eager is None:
        raise OutsideKernel(what=f"{what}, which belongs to the eager style,")
    return builder.eager


def const_names(text: object) -> list[str]:
    """Return the names in the argument of ``T.const``."""
    names = [n for n in text.replace(",", " ").split() if n] if isinstance(text, str) else []
    if not names or not all(n.isidentifier() for n in names):
        instead = 'write M, N = T.const("M, N")'
        raise BadArgument(function="const", name="names", found=repr(text), expected="identifiers", instead=instead)
    return names


def _own(node: ast.FunctionDef) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    todo: list[ast.stmt] = list(node.body)
    while todo:
        statement = todo.pop(0)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        found.append(statement)
        for name in ("body", "orelse", "finalbody"):
            todo.extend(getattr(statement, name, []))
    return found


def _is_kernel_statement(statement: ast.stmt, params: list[str]) -> bool:
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id in params
    if isinstance(statement, ast.With):
        return any(_is_call(i.context_expr, ("Kernel", "ClusterKernel")) for i in statement.items)
    return _calls(statement, ("const", "empty"))


def _calls(statement: ast.stmt, names: tuple[str, ...]) -> bool:
    value = getattr(statement, "value", None)
    values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
    return any(isinstance(v, ast.expr) and _is_call(v, names) for v in values)


def _is_call(node: ast.expr, names: tuple[str, ...]) -> bool:
    # T.const(...): the language under any name, but not np.empty, which is a call in a factory like any other.
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in names:
        return False
    return not (isinstance(node.func.value, ast.Name) and node.func.value.id in ("np", "numpy", "torch", "jnp", "mx"))
