"""The arguments of a compiled kernel as plain data, and the symbols in their shapes.

A `Dim` is an extent or stride: an ``int``, the name of a symbol, or a tuple ``(op, a, b)`` of dims with ``op`` one of
``add sub mul floordiv mod ceildiv max min``. Symbols are solved from all given arguments at once, so their order does
not matter; then every dim is checked against them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Literal, Union

from tile_runtime.dtypes import dtype
from tile_runtime.errors.base import InternalError, Where
from tile_runtime.records import dataclass

Dim = Union[int, str, "tuple[str, Dim, Dim]"]
Kind = Literal["tensor", "scalar", "pointer"]
Access = Literal["read", "write", "readwrite"]


#: Headroom of symbolic sizes below the greatest index, so that kernels can round them up to whole tiles (K422).
SYMBOL_HEADROOM = 2**16

#: Operations of a dim.
OPERATORS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "ceildiv": lambda a, b: -(-a // b),
    "max": max,
    "min": min,
}
_INFIX = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "floordiv": ("//", 2), "mod": ("%", 2)}


@dataclass(frozen=True)
class Param:
    """One parameter of a kernel.

    Attributes
    ----------
    name
        As the user wrote it; also its keyword.
    kind
        ``"tensor"``, ``"scalar"`` or ``"pointer"``.
    dtype
        Element type of a tensor, type of a scalar, pointee of a pointer (empty: any).
    shape
        Logical extents in elements; packed 4-bit types store two elements of the last axis in a byte.
    strides
        Declared strides in elements, or ``None`` for contiguous row-major memory.
    access
        How the kernel accesses the memory.
    align
        Required alignment of the first element in bytes, a power of two; 0 means the size of an element.
    addresses
        Whether the elements are addresses, through which the kernel accesses other memory.
    narrow
        Extents with an index that is computed in 32 bits and may overflow them, each with the text of that index.
    """

    name: str
    kind: Kind
    dtype: str = ""
    shape: tuple[Dim, ...] = ()
    strides: tuple[Dim, ...] | None = None
    access: Access = "read"
    align: int = 0
    addresses: bool = False
    narrow: tuple[tuple[Dim, str], ...] = ()

    def __post_init__(self) -> None:
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise InternalError(stage="signature", detail=f"{self.name}: {len(self.strides)} strides for its shape")
        if self.align & (self.align - 1) or self.align < 0:
            raise InternalError(stage="signature", detail=f"{self.name}: alignment {self.align} is not a power of two")
        if self.packed and self.kind == "tensor" and (not self.shape or self.strides is not None):
            raise InternalError(stage="signature", detail=f"{self.name}: a packed tensor is contiguous of rank >= 1")

    @property
    def writes(self) -> bool:
        """Whether the kernel writes this parameter's memory."""
        return self.access != "read"

    @property
    def packed(self) -> bool:
        """Whether two elements share a byte."""
        return bool(self.dtype) and dtype(self.dtype).is_packed

    @property
    def is_constant(self) -> bool:
        """Whether all extents and strides are constants."""
        return all(isinstance(d, int) for d in (*self.shape, *(self.strides or ())))

    @property
    def storage(self) -> str:
        """Name of the type that memory and launches use."""
        return dtype(self.dtype).storage if self.dtype else ""

    def __str__(self) -> str:
        if self.kind == "tensor":
            layout = "" if self.strides is None else f", strides {shape_text(self.strides)}"
            return f"{self.name}: {self.dtype}{shape_text(self.shape)}{layout}"
        return f"{self.name}: {self.dtype or 'void'}{'*' if self.kind == 'pointer' else ''}"


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel, in order.

    Attributes
    ----------
    name
        The kernel's name.
    params
        All parameters, those of ``out_idx`` included.
    out_idx
        Positions that a call allocates and returns instead of taking; normalised to 0 <= i < len(params).
    index_bits
        Width of the integers that compute element offsets: 32 or 64.
    offset_bits
        The same for tensors of constant shape; at least ``index_bits``.
    where
        Location of the kernel's definition, for messages.
    workspaces
        The number of the last positions in ``out_idx`` that a call does not return.
    symbolic_bits
        The same for tensors of symbolic shape if more than ``index_bits``. It is not exported: an artefact has the
        version of ``index_bits`` only.
    """

    name: str
    params: tuple[Param, ...]
    out_idx: tuple[int, ...] = ()
    index_bits: int = 32
    where: Where | None = None
    offset_bits: int = 32
    workspaces: int = 0
    symbolic_bits: int = 32

    @property
    def results(self) -> tuple[int, ...]:
        """Positions of the parameters that a call returns."""
        return self.out_idx[: len(self.out_idx) - self.workspaces]

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Positions of the parameters that the caller passes."""
        return tuple(i for i in range(len(self.params)) if i not in self.out_idx)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """All symbols of shapes and strides, in order of first occurrence."""
        found: dict[str, None] = {}
        for param in self.params:
            for dim in (*param.shape, *(param.strides or ())):
                found.update(dict.fromkeys(symbols_of(dim)))
        return tuple(found)

    @property
    def usage(self) -> str:
        """A sample call: ``c = gemm(a, b)``."""
        call = f"{self.name}({', '.join(self.params[i].name for i in self.inputs)})"
        outs = ", ".join(self.params[i].name for i in self.results)
        return f"{outs} = {call}" if outs else call

    def __str__(self) -> str:
        ins = ", ".join(str(self.params[i]) for i in self.inputs)
        outs = ", ".join(str(self.params[i]) for i in self.results)
        return f"{self.name}({ins})" + (f" -> {outs}" if outs else "")

    def to_json(self) -> dict[str, object]:
        """A value of lists, dicts, strings and ints that `from_json` reads."""
        where = None if self.where is None else [self.where.file, self.where.line]
        params = [
            {
                "name": p.name, "kind": p.kind, "dtype": str(p.dtype), "shape": [plain_dim(d) for d in p.shape],
                "strides": None if p.strides is None else [plain_dim(d) for d in p.strides], "access": p.access,
                "align": p.align, **({"addresses": True} if p.addresses else {}),
                **({"narrow": [[plain_dim(d), text] for d, text in p.narrow]} if p.narrow else {}),
            }
            for p in self.params
        ]  # fmt: skip
        facts: dict[str, object] = {"name": self.name, "params": params, "out_idx": list(self.out_idx)}
        facts |= {"workspaces": self.workspaces} if self.workspaces else {}
        return {**facts, "index_bits": self.index_bits, "offset_bits": self.offset_bits, "where": where}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Signature:
        """Read what `to_json` wrote."""
        params = tuple(
            Param(
                p["name"], p["kind"], p["dtype"], tuple(map(dim_from, p["shape"])),
                None if p["strides"] is None else tuple(map(dim_from, p["strides"])), p["access"], p["align"],
                p.get("addresses", False), tuple((dim_from(d), text) for d, text in p.get("narrow", ())),
            )
            for p in data["params"]
        )  # fmt: skip
        where = None if data["where"] is None else Where(*data["where"])
        bits = data["index_bits"]
        younger = (data.get("offset_bits", bits), data.get("workspaces", 0))
        return Signature(data["name"], params, tuple(data["out_idx"]), bits, where, *younger)


@dataclass(frozen=True)
class Equation:
    """``dim == value``, as read from an argument.

    Attributes
    ----------
    dim
        A dim of the signature.
    value
        The value found in the argument.
    origin
        Source of the value, for messages: ``"A.shape[0]"``.
    """

    dim: Dim
    value: int
    origin: str


@dataclass
class Solution:
    """Values of symbols and where each came from.

    Attributes
    ----------
    values
        Symbol to value.
    origins
        Symbol to the argument that defined it.
    undivided
        Equations whose symbol would not be an integer, with that symbol.
    """

    values: dict[str, int] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    undivided: list[tuple[Equation, str]] = field(default_factory=list)


def solve(equations: Iterable[Equation]) -> Solution:
    """Solve the symbols of all equations, whatever their order.

    Bare symbols first, then every expression that is linear in its one unknown symbol (``2*m``, ``m + 1``, ``n - m``
    with known ``n``), repeated until nothing new follows. Consistency of the equations is not checked here.
    """
    solution = Solution()
    pending = sorted(equations, key=lambda e: not isinstance(e.dim, str))
    progress = True
    while progress and pending:
        progress, waiting = False, []
        for equation in pending:
            if _solve_one(equation, solution):
                progress = True
            elif any(s not in solution.values for s in symbols_of(equation.dim)):
                waiting.append(equation)
        pending = waiting
    return solution


def _solve_one(equation: Equation, solution: Solution) -> bool:
    unknown = {s for s in symbols_of(equation.dim) if s not in solution.values}
    if len(unknown) != 1:
        return False
    (symbol,) = unknown
    form = _linear(equation.dim, symbol, solution.values)
    if form is None or form[0] == 0:
        return False
    # Values may be symbolic integers of another library, which have no divmod.
    value = equation.value if form == (1, 0) else (equation.value - form[1]) // form[0]
    if form != (1, 0) and (equation.value - form[1]) % form[0]:
        if all(equation is not e for e, _ in solution.undivided):
            solution.undivided.append((equation, symbol))
        return False
    solution.values[symbol], solution.origins[symbol] = value, equation.origin
    return True


def _linear(dim: Dim, symbol: str, values: Mapping[str, int]) -> tuple[int, int] | None:
    """Return ``(a, b)`` of a linear ``dim == a * symbol + b``, else ``None``."""
    if isinstance(dim, int):
        return 0, dim
    if isinstance(dim, str):
        return (1, 0) if dim == symbol else (0, values[dim])
    a, b = _linear(dim[1], symbol, values), _linear(dim[2], symbol, values)
    if a is None or b is None:
        return None
    if dim[0] == "add":
        return a[0] + b[0], a[1] + b[1]
    if dim[0] == "sub":
        return a[0] - b[0], a[1] - b[1]
    if dim[0] == "mul" and (a[0] == 0 or b[0] == 0):
        return a[0] * b[1] + b[0] * a[1], a[1] * b[1]
    if a[0] == b[0] == 0:
        value = evaluate(dim, values)
        return None if value is None else (0, value)
    return None


def evaluate(dim: Dim, values: Mapping[str, int]) -> int | None:
    """Return the value of a dim; ``None`` with unknown symbols or zero divisors."""
    if isinstance(dim, int):
        return dim
    if isinstance(dim, str):
        return values.get(dim)
    a, b = evaluate(dim[1], values), evaluate(dim[2], values)
    if a is None or b is None or (b == 0 and dim[0] in ("floordiv", "mod", "ceildiv")):
        return None
    return OPERATORS[dim[0]](a, b)


def symbols_of(dim: Dim) -> Iterator[str]:
    """Symbols of a dim, from left to right, with repetition."""
    if isinstance(dim, str):
        yield dim
    elif isinstance(dim, tuple):
        yield from symbols_of(dim[1])
        yield from symbols_of(dim[2])


def solvable(dims: Sequence[Dim], known: Iterable[str] = ()) -> set[str]:
    """Return the symbols that `solve` finds for values in general position of all ``dims``."""
    found = set(known)
    size = -1
    while size != len(found):
        size = len(found)
        for dim in dims:
            unknown = set(symbols_of(dim)) - found
            if len(unknown) == 1:
                (symbol,) = unknown
                # Large different values: a coefficient that vanishes for them vanishes always.
                form = _linear(dim, symbol, {s: 1009 + 2 * i for i, s in enumerate(sorted(found))})
                if form is not None and form[0] != 0:
                    found.add(symbol)
    return found


def dim_text(dim: Dim, level: int = 0) -> str:
    """A dim as Python text: ``2*n``, ``ceildiv(m, 16)``."""
    if not isinstance(dim, tuple):
        return str(dim)
    op, a, b = dim
    if op not in _INFIX:
        return f"{op}({dim_text(a)}, {dim_text(b)})"
    sign, own = _INFIX[op]
    spaced = f" {sign} " if own == 1 else sign
    text = f"{dim_text(a, own)}{spaced}{dim_text(b, own + 1)}"
    return f"({text})" if own < level else text


def shape_text(shape: Sequence[Dim]) -> str:
    """A shape as a Python tuple: ``(m, 2*n)``, ``(m,)``, ``()``."""
    inner = ", ".join(dim_text(d) for d in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def renamed_dim(dim: Dim, names: Mapping[str, str]) -> Dim:
    """Return a dim with other names of parameters."""
    if isinstance(dim, tuple):
        return (dim[0], renamed_dim(dim[1], names), renamed_dim(dim[2], names))
    return names.get(dim, dim) if isinstance(dim, str) else dim


def plain_dim(dim: Dim) -> Any:
    """Return a dim as lists, strings and numbers that `dim_from` reads."""
    return [plain_dim(part) if isinstance(part, tuple) else part for part in dim] if isinstance(dim, tuple) else dim


def dim_from(data: Any) -> Dim:
    """Read what `plain_dim` wrote."""
    return (data[0], dim_from(data[1]), dim_from(data[2])) if isinstance(data, list) else data
