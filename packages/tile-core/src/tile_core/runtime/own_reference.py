"""Call a user's reference of a kernel, check its results, and set tolerances."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.abi.signature import Param, Signature
from tile_core.compat.types import Argument, Array, Expr, Stmt
from tile_core.dtypes import dtype
from tile_core.errors.launch import BadSetting
from tile_core.runtime.verify import tolerance_for

if TYPE_CHECKING:
    from tile_core.ir.program import Program

__all__ = ["inputs_of", "outputs_of", "tolerances"]

#: An order of additions changes a sum of n random terms by about n units of the root mean square of such results.
_ORDERS = 4.0


def inputs_of(signature: Signature, arrays: Sequence[Argument], copies: Sequence[Array]) -> list[Argument]:
    """Return the arguments of a user's reference: copies of all inputs before a launch.

    Parameters
    ----------
    arrays
        The user's arguments and outputs, one per parameter.
    copies
        NumPy copies of them, of storage elements.
    """
    made = []
    for n, (param, value, copy) in enumerate(zip(signature.params, arrays, copies, strict=True)):
        if n in signature.out_idx or (param.kind == "tensor" and param.access == "write"):
            continue
        if param.kind != "tensor":
            made.append(value)
            continue
        host = copy.copy() if param.packed else copy.view(dtype(param.dtype).numpy()).copy()
        made.append(_tensor(host, param, value.device) if _is_torch(value) else host)
    return made


def outputs_of(
    reference: Any, signature: Signature, written: Mapping[int, tuple[int, ...]], inputs: Sequence[Argument]
) -> dict[int, Array]:
    """Return the results of a user's reference by the position of the written parameter.

    Parameters
    ----------
    reference
        A function of ``inputs``, an array, or a sequence or mapping of arrays.
    written
        The shapes of the parameters that the kernel writes, by position.

    Raises
    ------
    BadSetting
        The function raises, or the arrays are others than the kernel's outputs.
    """
    import numpy as np

    params = signature.params
    given = _called(reference, inputs, [params[n] for n in signature.inputs]) if callable(reference) else reference
    names = [params[n].name for n in written]
    if isinstance(given, Mapping):
        if set(given) != set(names):
            raise _bad(f"of {', '.join(map(str, given)) or 'nothing'}", names)
        values = [given[name] for name in names]
    else:
        several = isinstance(given, (tuple, list)) and any(hasattr(x, "shape") for x in given)
        values = list(given) if several else [given]
    if len(values) != len(written):
        raise _bad(f"of {len(values)} arrays", names)
    found = {}
    for n, name, value in zip(written, names, values, strict=True):
        if value is None:
            raise _bad("of None", names)
        array = _numbers(value)
        if array.dtype == object or array.dtype.kind not in "fiub":
            raise _bad(f"of {type(value).__name__} for {name}", names)
        if array.shape != written[n]:
            raise _bad(f"of shape {array.shape} for {name}", [f"{name} of shape {written[n]}"])
        found[n] = array.astype(np.float64) if array.dtype.kind == "f" else array
    return found


def tolerances(
    program: Program | None, param: Param, expected: Array, rtol: float | None, atol: float | None,
    sizes: Mapping[str, int],
) -> tuple[float, float]:  # fmt: skip
    """Return the tolerances of an output against a user's reference.

    The reference may add in another order and round elsewhere.

    That is the tolerance of the coarsest type that the program rounds to on the way, and an absolute part for the
    length of its longest reduction.

    Parameters
    ----------
    rtol, atol
        Tolerances that are used as they are; ``None`` for these.
    sizes
        Values of symbolic sizes.
    """
    import numpy as np

    relative, absolute = tolerance_for(param, rtol, atol)
    if program is None or param.packed or not dtype(param.dtype).is_float:
        return relative, absolute
    if rtol is None:
        relative = max(
            [relative, *(tolerance_for(Param("", "tensor", t), None, None)[0] for t in _rounded_to(program))]
        )
    if atol is None:
        size = expected[np.isfinite(expected)]
        rms = float(np.sqrt(np.mean(size * size))) if size.size else 0.0
        unit = 2.0**-53 if param.dtype == "float64" else 2.0**-24
        absolute += _ORDERS * unit * longest_reduction(program, sizes) * rms
    return relative, absolute


def longest_reduction(program: Program, sizes: Mapping[str, int]) -> int:
    """Return the length of a program's longest reduction.

    Loops of unknown length count as one iteration.
    """
    return max((n for n in _reduction_lengths(program.func.body, [], sizes)), default=1)


def _reduction_lengths(s: Stmt, around: list[Any], sizes: Mapping[str, int]) -> Iterator[int]:
    """Yield the lengths of reductions in a statement, including the enclosing loops that accumulate."""
    from tile_core.compat.tvm import tirx
    from tile_core.ir import nodes
    from tile_core.ir.visit import bodies_of, loads_of, role, statements

    if isinstance(s, tirx.SeqStmt):
        for part in statements(s):
            yield from _reduction_lengths(part, around, sizes)
        return
    if isinstance(s, tirx.For):
        yield from _reduction_lengths(s.body, [*around, s] if role(s) != "grid" else around, sizes)
        return
    if isinstance(s, tirx.BufferStore):
        if any(x.source.same_as(s.buffer) for x in loads_of(s.value)):
            yield _times(s.buffer, around, sizes)
        return
    if isinstance(s, tirx.Evaluate) and nodes.is_tile_call(s.value):
        yield from _call_reductions(s, around, sizes)
        return
    for body in bodies_of(s):
        yield from _reduction_lengths(body, around, sizes)


def _call_reductions(s: Stmt, around: list[Any], sizes: Mapping[str, int]) -> Iterator[int]:
    from tile_core.ops.base import OpCall, View

    call = OpCall.decode(s)
    views = [a for a in call.args if isinstance(a, View)]
    lengths = [math.prod(_number(e, sizes) for e in v.extents) for v in views]
    if call.name.startswith("gemm") and len(views) >= 3:
        # K follows from the sizes of A (M K), B (K N) and C (M N); half of A is stored where it is sparse.
        a, b, c = lengths[0], lengths[1 if call.name == "gemm" else 2], lengths[2 if call.name == "gemm" else -1]
        k = math.isqrt(max(1, a * b // max(1, c))) * (2 if call.name == "gemm_sp" else 1)
        yield k * _times(views[2 if call.name == "gemm" else -1].buffer, around, sizes)
    elif call.name in ("reduce", "scan") and len(views) == 2:
        yield max(1, lengths[0] // max(1, lengths[1] if call.name == "reduce" else 1)) * _times(
            views[1].buffer, around, sizes
        )


def _times(buffer: Any, around: Sequence[Any], sizes: Mapping[str, int]) -> int:
    """Return how often enclosing loops repeat a reduction before its buffer is reset."""
    from tile_core.compat.tvm import tirx
    from tile_core.ir.visit import collect, loads_of
    from tile_core.ops.base import OpCall

    count = 1
    for loop in reversed(around):
        starts = any(
            st.buffer.same_as(buffer) and not any(x.source.same_as(buffer) for x in loads_of(st.value))
            for st in collect(loop.body, tirx.BufferStore)
        )
        for st in collect(loop.body, tirx.Evaluate):
            if _is_call(st) and not starts:
                call = OpCall.decode(st)
                starts = call.name in ("fill", "copy") and bool(call.args) and _into(call, buffer)
        if starts:
            break
        count *= max(1, _number(loop.extent, sizes))
    return count


def _into(call: Any, buffer: Any) -> bool:
    from tile_core.ops.base import View

    views = [a for a in call.args if isinstance(a, View)]
    return bool(views) and bool(views[-1].buffer.same_as(buffer))


def _is_call(s: Stmt) -> bool:
    from tile_core.ir import nodes

    return bool(nodes.is_tile_call(s.value))


def _number(e: Expr, sizes: Mapping[str, int]) -> int:
    """Return the value of an extent; 1 where it is not known."""
    from tile_core.compat.tvm import tirx
    from tile_core.ir import nodes

    known = nodes.as_int(e) if not isinstance(e, int) else e
    if isinstance(known, int):
        return known
    if isinstance(e, tirx.Var):
        return sizes.get(str(e.name), 1)
    sides = [_number(x, sizes) for x in (getattr(e, "a", None), getattr(e, "b", None)) if x is not None]
    if len(sides) != 2:
        return 1
    x, y = sides
    kinds = {"Add": x + y, "Sub": x - y, "Mul": x * y, "FloorDiv": x // y if y else 1}
    return max(1, int(kinds.get(type(e).__name__, 1)))


def _rounded_to(program: Program) -> set[str]:
    """Return the float types that values of wider ones are rounded to within a program."""
    from tile_core.compat.tvm import tirx
    from tile_core.ir import nodes
    from tile_core.ir.visit import collect
    from tile_core.ops.base import OpCall, View

    pairs = [(nodes.dtype_of(c.value), nodes.dtype_of(c)) for c in collect(program.func.body, tirx.Cast)]
    for s in collect(program.func.body, tirx.Evaluate):
        if nodes.is_tile_call(s.value):
            call = OpCall.decode(s)
            views = [a.dtype for a in call.args if isinstance(a, View)]
            pairs += [(views[0], views[-1])] if call.name in ("copy", "transpose", "reduce") and len(views) >= 2 else []
    floats = [(a, b) for a, b in pairs if dtype(a).is_float and dtype(b).is_float]
    return {b for a, b in floats if dtype(a).bits > dtype(b).bits}


def _called(function: Any, inputs: Sequence[Argument], params: Sequence[Param]) -> Any:
    """Call a function of the user, with tensors if it is a torch function."""
    try:
        try:
            return function(*inputs)
        except TypeError:
            if "torch" not in sys.modules or any(map(_is_torch, inputs)):
                raise
            return function(*(_tensor(x, p, "cpu") if hasattr(x, "dtype") and hasattr(x, "shape") else x
                              for x, p in zip(inputs, _reading(params), strict=False)))  # fmt: skip
    except Exception as error:
        found = f"a function that raises {type(error).__name__}: {error}"
        raise BadSetting(
            function="verify", name="reference", found=found, expected="a function of the kernel's inputs",
            instead=f"it is called with {', '.join(p.name for p in _reading(params)) or 'no arguments'}",
        ) from error  # fmt: skip


def _reading(params: Sequence[Param]) -> list[Param]:
    return [p for p in params if p.kind != "tensor" or p.access != "write"]


def _is_torch(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _tensor(array: Array, param: Param, device: Any) -> Any:
    """Return a tensor of torch with the elements of an array."""
    import numpy as np

    torch: Any = sys.modules["torch"]
    kind = getattr(torch, param.dtype, None)
    raw = np.ascontiguousarray(array)
    if raw.dtype.kind in "fiub" and raw.dtype.name == param.dtype:
        return torch.from_numpy(raw.copy()).to(device)
    bits = torch.from_numpy(
        raw.view(f"u{raw.dtype.itemsize}" if raw.dtype.itemsize == 1 else f"i{raw.dtype.itemsize}").copy()
    )
    return (bits if kind is None or param.packed else bits.view(kind)).to(device)


def _numbers(value: Any) -> Array:
    """Return an array of any library as NumPy numbers."""
    import numpy as np

    if _is_torch(value):
        value = value.detach().cpu()
        return np.asarray((value.double() if value.is_floating_point() else value).numpy())
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return np.empty((), object)
    return array.astype(np.float64) if array.dtype.kind == "V" or "float" in array.dtype.name else array


def _bad(found: str, names: Sequence[str]) -> BadSetting:
    return BadSetting(
        function="verify", name="reference", found=found, expected=f"arrays of {', '.join(names)}",
        instead="return them in this order, or in a dict by name",
    )  # fmt: skip
