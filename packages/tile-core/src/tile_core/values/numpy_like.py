"""Handle calls of NumPy and ``math`` on our values, or refuse them with a remedy."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tile_core.errors.language import BadOperand, NotAMethod
from tile_core.values.foreign_names import WORDS
from tile_core.vocabulary import NAMES

if TYPE_CHECKING:
    import numpy as np


_LOOP = "compute element by element: `for i, j in T.Parallel(M, N): {name}[i, j] = ...`"
#: NumPy's functions of two operands that Python writes as operators, as (ours on the left, ours on the right).
_OPERATORS: dict[str, tuple[str, str]] = {
    "add": ("__add__", "__radd__"), "subtract": ("__sub__", "__rsub__"), "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"), "true_divide": ("__truediv__", "__rtruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"), "remainder": ("__mod__", "__rmod__"),
    "power": ("__pow__", "__rpow__"), "bitwise_and": ("__and__", "__rand__"), "bitwise_or": ("__or__", "__ror__"),
    "bitwise_xor": ("__xor__", "__rxor__"), "left_shift": ("__lshift__", "__rlshift__"),
    "right_shift": ("__rshift__", "__rrshift__"), "less": ("__lt__", "__gt__"), "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"), "greater_equal": ("__ge__", "__le__"), "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
}  # fmt: skip
_RENAMED = {
    "arctan": "atan", "arctan2": "atan2", "arcsin": "asin", "arccos": "acos", "absolute": "abs",
    "rint": "round", "maximum": "max", "fmax": "max", "minimum": "min", "fmin": "min", "power": "pow",
    "mod": "floormod", "concatenate": "copy", "amax": "max", "amin": "min",
}  # fmt: skip
#: The meaning of a method of an elementwise function: ``np.add.reduce`` is a sum.
_FOLDS: dict[tuple[str, str], str] = {
    ("add", "reduce"): "sum", ("multiply", "reduce"): "prod", ("maximum", "reduce"): "max",
    ("minimum", "reduce"): "min", ("logical_or", "reduce"): "any", ("logical_and", "reduce"): "all",
    ("bitwise_and", "reduce"): "bitand", ("bitwise_or", "reduce"): "bitor", ("bitwise_xor", "reduce"): "bitxor",
    ("add", "accumulate"): "cumsum", ("maximum", "accumulate"): "cummax",
}  # fmt: skip
_ATTRIBUTES = "buffers have shape, dtype, ndim and scope, values have dtype; all else is a function of T"
#: Methods and attributes of arrays that ours do not have.
_METHODS = frozenset(
    "sum mean max min prod any all argmax argmin std var cumsum cumprod dot matmul T mT transpose reshape view flatten "
    "ravel squeeze unsqueeze expand fill zero_ copy copy_ clone contiguous permute sort exp exp2 log log2 sqrt rsqrt "
    "abs sin cos tan tanh sigmoid relu floor ceil round clip clamp pow neg add sub mul div to float half int bool long "
    "double item tolist numpy cpu size numel".split()
)


def instead_of(function: str, name: str, tile: bool, elementwise: bool = False) -> str:
    """Return the replacement for a NumPy function or an array method.

    Parameters
    ----------
    function
        Its name there.
    name
        Name of the object that it was applied to.
    tile
        Whether that is a whole tile, not one element.
    elementwise
        Whether it is elementwise: ``np.maximum``, not ``np.max``.
    """
    from tile_core.values.checks import arguments

    ours = _RENAMED.get(function, function)
    reduction = f"reduce_{ours}"
    if tile and not elementwise and reduction in NAMES:
        return f"T.{reduction}({name}, out, dim=...) reduces a tile into another one"
    if ours in ("T", "mT"):
        return f"T.transpose({name}, out), or transpose_A=True and transpose_B=True of T.gemm"
    if ours in NAMES:
        if not tile or ours in ("reshape", "view", "fill", "copy", "transpose", "cumsum"):
            return f"T.{ours}({name}{', ...' if tile else ''})"
        return f"T.{ours}({name}{', ...' if len(arguments(ours)) > 1 else ''})"
    return WORDS.get(function, _LOOP.format(name=name) if tile else "compute with T's functions and operators")


def called(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], owner: object, name: str, tile: bool) -> Any:
    """Handle NumPy operators with a NumPy scalar, and refuse its other functions."""
    pair = _OPERATORS.get(ufunc.__name__)
    if method == "__call__" and pair is not None and len(inputs) == 2:
        left = inputs[0] is owner
        other = inputs[1] if left else inputs[0]
        if getattr(other, "shape", None) == ():
            return getattr(owner, pair[0] if left else pair[1])(other.item())
    other = next((x for x in inputs if x is not owner and getattr(x, "shape", ()) != ()), None)
    if pair is not None and other is not None and not tile:
        raise BadOperand(found=f"an array of type {type(other).__name__}")
    if method == "__call__":
        refuse_function(f"numpy.{ufunc.__name__}", ufunc.__name__, name, tile, elementwise=True)
    function = _FOLDS.get((ufunc.__name__, method), ufunc.__name__)
    refuse_function(f"numpy.{ufunc.__name__}.{method}", function, name, tile)


def refuse_function(shown: str, function: str, name: str, tile: bool, elementwise: bool = False) -> NoReturn:
    """Refuse a function of another library."""
    raise NotAMethod(what=f"{shown} on {'the tile' if tile else 'the runtime value'} {name}",
                     fix=instead_of(function, name, tile, elementwise))  # fmt: skip


Ours = TypeVar("Ours")


def adopt(kind: type[Ours], name_of: Callable[[Ours], str], is_tile: Callable[[Ours], bool]) -> None:
    """Give one of our classes the handlers of NumPy's protocols and of unknown attributes."""

    def __array_ufunc__(self: Ours, ufunc: np.ufunc, method: str, *inputs: object, **keywords: object) -> Any:
        return called(ufunc, method, inputs, self, name_of(self), is_tile(self))

    def __array_function__(
        self: Ours, function: FunctionType, types: object, args: object, keywords: object
    ) -> NoReturn:
        refuse_function(f"numpy.{function.__name__}", function.__name__, name_of(self), is_tile(self))

    def __array__(self: Ours, *args: object, **keywords: object) -> NoReturn:
        if is_tile(self):
            refuse_function("numpy.asarray", "asarray", name_of(self), True)
        what = f"an array of NumPy with the runtime value {name_of(self)} as an index or element"
        fix = 'pass the array to the kernel as a parameter, such as W: T.Tensor((64,), "float32")'
        raise NotAMethod(what=what, fix=fix)

    def __getattr__(self: Ours, attribute: str) -> NoReturn:
        if attribute.startswith("_"):
            raise AttributeError(f"{kind.__name__!r} object has no attribute {attribute!r}")
        name = name_of(self)
        fix = instead_of(attribute, name, is_tile(self)) if attribute in _METHODS else _ATTRIBUTES
        raise NotAMethod(what=f"{name}.{attribute}", fix=fix)

    for function in (__array_ufunc__, __array_function__, __array__, __getattr__):
        setattr(kind, function.__name__, function)
