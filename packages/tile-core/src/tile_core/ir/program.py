"""``Program``: the frontend's output for a kernel function, and the input of every later stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.errors import InternalError, Where
from tile_core.errors.language import NotCompiled
from tile_core.errors.places import placed

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
    """

    name: str
    kind: str
    dtype: str = ""
    shape: tuple[Dim, ...] = ()
    strides: tuple[Dim, ...] | None = None


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
        Place of the definition.
    layouts
        Layouts that ``T.annotate_layout`` gave to buffers, by the name of the buffer in the IR.
    reducers
        ``{"op", "replication"}`` of buffers made by ``T.alloc_reducer``, by name in the IR.
    attrs
        Annotations of the launch: ``swizzle``, ``l2_hit_ratio``, ``safe_values``; also in ``func.attrs``.
    """

    func: Any
    name: str
    params: tuple[ParamInfo, ...]
    symbols: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[int, ...] = ()
    where: Where | None = None
    layouts: Mapping[str, Any] = field(default_factory=dict)
    reducers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @placed
    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Refuse: a program runs when it has been compiled for a target.

        Raises
        ------
        NotCompiled
            Always.
        """
        raise NotCompiled(kernel=self.name)

    def script(self) -> str:
        """Return the IR as text."""
        return str(self.func.script())

    def __str__(self) -> str:
        return self.script()

    def __repr__(self) -> str:
        return f"<tile program {self.name}({', '.join(p.name for p in self.params)})>"


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
        return dim_of(expr.value)
    for node, name in _OPERATIONS:
        if isinstance(expr, getattr(tirx, node)):
            return (name, dim_of(expr.a), dim_of(expr.b))
    raise InternalError(stage="frontend", detail=f"the extent {expr} cannot be computed by the host")
