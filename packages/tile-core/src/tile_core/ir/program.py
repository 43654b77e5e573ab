"""``Program``: the frontend's output for a kernel function, and the input of every later stage."""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Union

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, PrimFunc, Stmt, Var
from tile_core.errors import InternalError, Where
from tile_core.errors.language import NotCompiled
from tile_core.errors.locations import placed
from tile_core.ir import nodes
from tile_core.ir.attributes import CLUSTER, Attrs
from tile_core.records import dataclass

#: An extent or stride: an int, the name of a symbol, or an operation on two of them (``("mul", "m", 2)``).
Dim = Union[int, str, "tuple[str, Dim, Dim]"]

_OPERATIONS: tuple[tuple[str, str], ...] = (
    ("Add", "add"), ("Sub", "sub"), ("Mul", "mul"), ("FloorDiv", "floordiv"), ("FloorMod", "mod"), ("Max", "max"),
    ("Min", "min"),
)  # fmt: skip


@dataclass(frozen=True)
class ParamInfo:
    """A parameter as the user declared it.

    Attributes
    ----------
    name
        Its name.
    kind
        ``"tensor"``, ``"scalar"`` or ``"pointer"``.
    dtype
        Element type, or type of the scalar; of a pointer the pointee, or ``""``.
    shape, strides
        Extents, and strides in elements (``None``: contiguous), as ``Dim``.
    addresses
        Whether the elements are addresses.
    """

    name: str
    kind: str
    dtype: str = ""
    shape: tuple[Dim, ...] = ()
    strides: tuple[Dim, ...] | None = None
    addresses: bool = False


@dataclass(frozen=True)
class Program:
    """A traced kernel.

    Attributes
    ----------
    func
        The tirx function: parameters in the user's order, the body as ``ir/grammar.py`` describes it.
    name
        The user's name of the function.
    params
        The declarations, in the order of ``func.params``.
    symbols
        Variables of symbolic dimensions by name. They occur in the shapes and strides of parameters and are not
        parameters themselves.
    outputs
        Positions of parameters that the kernel returns (eager style); otherwise empty.
    where
        Location of the definition.
    layouts
        Layouts that ``T.annotate_layout`` gave to buffers, by the name of the buffer in the IR.
    reducers
        ``{"op", "replication"}`` of buffers made by ``T.alloc_reducer``, by name in the IR.
    attrs
        Annotations of the launch: ``swizzle``, ``cluster``, ``l2_hit_ratio``, ``safe_values``; also in ``func.attrs``.
    launches
        The annotations of each launch, in order. With several of them the body is a sequence of their grids; each is
        compiled as a program of its own, see ``stages``.
    workspaces
        Names of tensor parameters, the last ones, that the runtime allocates for a call.
    offset_bits
        Width of the integers that count the elements of tensors with 32-bit symbols in their shapes; 64 for the version
        of a kernel that serves launches with larger arrays.
    """

    func: PrimFunc
    name: str
    params: tuple[ParamInfo, ...]
    symbols: Mapping[str, Var] = field(default_factory=dict)
    outputs: tuple[int, ...] = ()
    where: Where | None = None
    layouts: Mapping[str, Any] = field(default_factory=dict)
    reducers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    attrs: Attrs = field(default_factory=dict)
    launches: tuple[Attrs, ...] = ()
    workspaces: tuple[str, ...] = ()
    offset_bits: int = 32

    @property
    def stages(self) -> tuple[Program, ...]:
        """The launches in order, each as a program with the parameters that it uses."""
        return (self,) if len(self.launches) <= 1 else self._several

    @functools.cached_property
    def _several(self) -> tuple[Program, ...]:
        return tuple(_one(self, n, launch) for n, launch in enumerate(self.func.body.seq))

    @placed
    def __call__(self, *arguments: object, **keywords: object) -> Any:
        """Refuse: a program runs when it has been compiled for a target.

        Raises
        ------
        NotCompiled
            Always.
        """
        raise NotCompiled(kernel=self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the operators, which another process lacks before it traces."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return _restored, (nodes.registered_ops(), pickle.dumps(fields))

    def script(self) -> str:
        """Return the IR as text."""
        return str(self.func.script())

    def __str__(self) -> str:
        return self.script()

    def __repr__(self) -> str:
        return f"<tile program {self.name}({', '.join(p.name for p in self.params)})>"


def _one(program: Program, number: int, body: Stmt) -> Program:
    """Return a launch as a program of its own."""
    used = set(tirx.analysis.undefined_vars(body, []))
    pairs = list(zip(program.func.params, program.params, strict=True))
    tensors = [v for v, _ in pairs if tirx.is_buffer_var(v) and v in used]
    for v in tensors:
        for dim in [*v.shape, *(v.ty.strides or [])]:
            used |= set(tirx.analysis.undefined_vars(tirx.Evaluate(dim), []))
    kept = [(v, p) for v, p in pairs if v in used]
    symbols = {name: var for name, var in program.symbols.items() if var in used}
    attrs = dict(program.launches[number])
    func = tirx.PrimFunc([v for v, _ in kept], body).with_attr("global_symbol", f"{program.name}_{number + 1}")
    if symbols:
        func = func.with_attr("tile.symbols", list(symbols.values()))
    for key, value in attrs.items():
        func = func.with_attr(f"tile.{key}", value)
    return dataclasses.replace(
        program, func=func, name=f"{program.name}_{number + 1}", params=tuple(p for _, p in kept), symbols=symbols,
        outputs=(), attrs=attrs, launches=(attrs,), workspaces=(),
    )  # fmt: skip


def cluster_of(attrs: Attrs) -> tuple[int, int, int]:
    """Return the blocks along x, y and z of a launch's clusters."""
    x, y, z = (int(n) for n in attrs.get(CLUSTER, (1, 1, 1)))
    return x, y, z


def dim_of(expr: Expr) -> Dim:
    """Return an IR extent as plain data.

    Raises
    ------
    InternalError
        If it uses an operation that the runtime cannot compute.
    """
    if isinstance(expr, int):
        return expr
    if isinstance(expr, tirx.IntImm):
        return int(expr.value)
    if isinstance(expr, tirx.Var):
        return str(expr.name)
    if isinstance(expr, tirx.Cast):
        kind, source = nodes.dtype_of(expr), nodes.dtype_of(expr.value)
        value = dim_of(expr.value)
        return value if _bits(source) <= _bits(kind) and not kind.startswith("u") else _wrapped(value, kind)
    for node, name in _OPERATIONS:
        if isinstance(expr, getattr(tirx, node)):
            return (name, dim_of(expr.a), dim_of(expr.b))
    called = nodes.operator_name(expr)
    if called.startswith(nodes.WRAPPING_PREFIX):
        a, b = map(dim_of, expr.args)
        return _wrapped((called.removeprefix(nodes.WRAPPING_PREFIX), a, b), nodes.dtype_of(expr))
    raise InternalError(stage="frontend", detail=f"the extent {expr} cannot be computed by the host")


def _wrapped(dim: Dim, kind: str) -> Dim:
    """Return a dim, computed exactly on the host, wrapped to an integer type."""
    bits = _bits(kind)
    half = 0 if kind.startswith("u") else 2 ** (bits - 1)
    return ("sub", ("mod", ("add", dim, half), 2**bits), half)


def _bits(kind: str) -> int:
    """Return the bits of an integer type; the host computes no other types."""
    bits = kind.lstrip("uint")
    if not bits.isdigit():
        raise InternalError(stage="frontend", detail=f"a number of type {kind} cannot be computed by the host")
    return int(bits)


def _restored(ops: Mapping[str, bool], fields: bytes) -> Program:
    nodes.register_ops(ops)
    return Program(**pickle.loads(fields))
