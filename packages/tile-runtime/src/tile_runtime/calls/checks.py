"""Check the arguments of a call by their facts, before the launch."""

from __future__ import annotations

import contextlib
import ctypes
import math
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from tile_runtime.abi.adapter import AdapterFacts
from tile_runtime.abi.signature import (
    SYMBOL_HEADROOM,
    Dim,
    Equation,
    Param,
    Signature,
    Solution,
    dim_text,
    evaluate,
    shape_text,
    solve,
    symbols_of,
)
from tile_runtime.calls.arrays import (
    IMMUTABLE_LIBRARIES,
    ArrayFacts,
    ForeignByteOrder,
    NoArray,
    Unreadable,
    device_text,
    facts_of,
    share_memory,
)
from tile_runtime.compat.devices import device_name
from tile_runtime.dtypes import DTYPES, dtype
from tile_runtime.errors import launch as errors
from tile_runtime.types import Argument, Array

Arrays = Mapping[int, ArrayFacts]


def check_arrays(signature: Signature, adapter: AdapterFacts, values: Mapping[int, Argument]) -> dict[int, ArrayFacts]:
    """Return facts of all array arguments after the checks of type, device, rank and access."""
    arrays: dict[int, ArrayFacts] = {}
    for position, value in values.items():
        param = signature.params[position]
        if param.kind == "tensor":
            arrays[position] = _read(signature, adapter, param, value)
            check_kind(signature, param, arrays[position])
        elif param.kind == "pointer" and not isinstance(value, (int, ctypes.c_void_p)):
            arrays[position] = _read_pointee(signature, param, value)
    _check_devices(signature, adapter, arrays)
    for position, facts in arrays.items():
        if signature.params[position].writes:
            _check_writable(signature, adapter, signature.params[position], facts)
    return arrays


def check_kind(signature: Signature, param: Param, facts: ArrayFacts) -> None:
    """Check element type and rank of a tensor argument."""
    _check_dtype(signature, param, facts)
    _check_rank(signature, param, facts)


def check_scalar(signature: Signature, param: Param, value: Argument) -> int | float | bool:
    """The Python number that a launch gets for a scalar argument."""
    kind = dtype(param.dtype)
    number = value
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        # Types of ml_dtypes have their own kind; dates, text and records are not numbers.
        with contextlib.suppress(TypeError, ValueError):
            number = value.item() if value.dtype.kind in "biuf" else float(value)
    if kind.kind == "bool":
        if not isinstance(number, bool):
            _scalar_type(signature, param, value, "a bool", "pass True or False")
        return number
    wanted = "an int" if kind.is_integer else "a float or an int"
    if isinstance(number, bool) or not isinstance(number, int if kind.is_integer else (int, float)):
        advice = f"pass a Python or NumPy number, for example int({param.name})"
        _scalar_type(signature, param, value, wanted, advice if kind.is_integer else advice.replace("int(", "float("))
    low, high = scalar_range(param.dtype)
    if not low <= number <= high and (isinstance(number, int) or math.isfinite(number)):
        raise errors.ScalarRange(
            kernel=signature.name, name=param.name, dtype=param.dtype, low=low, high=high, found=number
        )
    return number if kind.is_integer else float(number)


def scalar_range(name: str) -> tuple[float, float]:
    """Smallest and largest finite value of a scalar parameter of this type."""
    kind = dtype(name)
    if kind.kind == "bool":
        return 0, 1
    if kind.kind == "int":
        return -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1
    if kind.kind == "uint":
        return 0, (1 << kind.bits) - 1
    if kind.is_narrow:
        return -math.inf, math.inf
    bias = (1 << (kind.exponent - 1)) - 1
    largest = math.ldexp(2.0 - math.ldexp(1.0, -kind.mantissa), bias)
    return -largest, largest


def check_pointer(signature: Signature, param: Param, value: Argument) -> int:
    """The address in an ``int`` or ``ctypes.c_void_p``."""
    address = (value.value or 0) if isinstance(value, ctypes.c_void_p) else value
    if isinstance(address, bool) or not 0 <= address < 1 << 64:
        raise errors.BadPointer(kernel=signature.name, name=param.name, found=repr(value))
    _check_aligned(signature, param, address, dtype(param.dtype).bits // 8 if param.dtype else 1)
    return int(address)


def solve_symbols(signature: Signature, arrays: Arrays, scalars: Mapping[int, float]) -> dict[str, int]:
    """Solve all symbols from all arguments, then check every declared extent and stride."""
    solution = solve_extents(signature, arrays, scalars)
    for position, facts in arrays.items():
        if signature.params[position].kind == "tensor":
            check_layout(signature, signature.params[position], facts, solution.values)
    for symbol in signature.symbols:
        if symbol not in solution.values:
            _unsolvable(signature, symbol)
        if solution.values[symbol] < 0:
            source = solution.origins[symbol]
            raise errors.NegativeExtent(
                kernel=signature.name, what=symbol, found=solution.values[symbol], source=source
            )
    return solution.values


def solve_extents(signature: Signature, arrays: Arrays, scalars: Mapping[int, float]) -> Solution:
    """Solve all symbols from all arguments, then check every declared extent."""
    shapes, strides, idle = _equations(signature, arrays, scalars)
    solution = solve([*shapes, *strides])
    if any(s not in solution.values for s in signature.symbols):
        # The stride of an axis of extent 0 or 1 is unused; it only counts where nothing better is known.
        solution = solve([*shapes, *strides, *idle])
    for equation in shapes:
        _check_equation(signature, equation, solution)
    return solution


def check_layout(signature: Signature, param: Param, facts: ArrayFacts, values: Mapping[str, int]) -> None:
    """Strides, alignment and size of one array argument."""
    expected = None if param.strides is None else tuple(evaluate(s, values) for s in param.strides)
    if expected is None and not facts.contiguous:
        _refuse_strides(signature, param, facts, "of contiguous row-major memory")
    moving = [s for s, extent in zip(facts.strides or (), facts.shape, strict=False) if extent > 1 and facts.size]
    if expected is not None and (facts.strides is None or min(moving, default=0) < 0):
        _refuse_strides(signature, param, facts, shape_text(param.strides or ()))
    for want, have, extent in zip(expected or (), facts.strides or (), facts.shape, strict=False):
        if want is not None and want != have and extent > 1 and facts.size:
            symbolic = any(isinstance(s, (str, tuple)) for s in param.strides or ())
            declared = f"{shape_text(param.strides or ())} = " if symbolic else ""
            _refuse_strides(signature, param, facts, f"{declared}{expected}")
    if facts.size:
        _check_aligned(signature, param, facts.pointer, facts.itemsize)
    check_size(signature, param, facts.span * (2 if param.packed else 1), facts.shape)
    check_narrow(signature, param, values)
    if param.writes and not facts.contiguous and not facts.distinct:
        raise errors.SelfOverlap(kernel=signature.name, name=param.name, shape=facts.shape, found=facts.strides)


def check_size(signature: Signature, param: Param, elements: int, shape: Sequence[int]) -> None:
    """Refuse more elements than the kernel's index type can count.

    Kernels round symbolic sizes up to whole tiles.
    """
    bits = max(signature.index_bits, signature.offset_bits if param.is_constant else signature.symbolic_bits)
    headroom = SYMBOL_HEADROOM if any(not isinstance(d, int) for d in param.shape) else 0
    narrow, limit = ((1 << (n - 1)) - 1 - headroom for n in (signature.index_bits, bits))
    extent, reason = max(shape, default=0), ""
    if extent > narrow and not param.is_constant and elements <= limit:
        # Offsets have 64 bits, sizes and coordinates do not.
        limit, reason = narrow, f": a dimension of {extent} elements needs 64-bit sizes"
    if elements > limit:
        raise errors.TooManyElements(
            kernel=signature.name, name=param.name, found=elements, expected=limit, bits=signature.index_bits,
            reason=reason,
        )  # fmt: skip


def check_narrow(signature: Signature, param: Param, values: Mapping[str, int]) -> None:
    """Refuse extents beyond the reach of the 32-bit arithmetic that indexes them."""
    limit = (1 << 31) - 1 - SYMBOL_HEADROOM
    for dim, index in param.narrow:
        extent = evaluate(dim, values)
        if extent is not None and extent > limit:
            raise errors.NarrowIndex(
                kernel=signature.name, name=param.name, found=extent, extent=dim_text(dim), index=index, expected=limit
            )


def check_overlap(signature: Signature, arrays: Arrays) -> None:
    """Refuse a written array that overlaps any other array."""
    for i in arrays:
        for j in arrays:
            if i != j and signature.params[i].writes and share_memory(arrays[i], arrays[j]):
                raise errors.Overlap(
                    kernel=signature.name, name=signature.params[i].name, other=signature.params[j].name
                )


def output_shape(signature: Signature, param: Param, values: Mapping[str, int]) -> tuple[int, ...]:
    """Logical extents of an output that the call allocates."""
    shape = []
    for axis, dim in enumerate(param.shape):
        extent = evaluate(dim, values)
        source = f"{param.name}.shape[{axis}] = {dim_text(dim)}"
        if extent is None:
            raise errors.UnsolvableSymbol(kernel=signature.name, symbol=dim_text(dim), occurrences=source)
        if extent < 0:
            raise errors.NegativeExtent(
                kernel=signature.name, what=f"{param.name}.shape[{axis}]", found=extent, source=dim_text(dim)
            )
        shape.append(extent)
    check_size(signature, param, math.prod(shape), shape)
    check_narrow(signature, param, values)
    return tuple(shape)


def accepted_dtypes(param: Param) -> tuple[str, ...]:
    """Names of the element types that a tensor parameter takes."""
    kind = dtype(param.dtype)
    if kind.is_packed:
        packed = ("uint8", "int8")
        return (*packed, str(kind)) if kind.is_float else packed
    if not kind.is_computed:
        return (str(kind), kind.storage)
    return (str(kind),)


def _read(signature: Signature, adapter: AdapterFacts, param: Param, value: Array) -> ArrayFacts:
    try:
        describe = getattr(adapter, "describe", None)  # older adapters have none
        facts = (None if describe is None else describe(value)) or facts_of(value)
        if facts.requires_grad and not param.writes:  # those that are written have an error of their own
            _refuse_gradient(signature, param)
        return facts
    except NoArray as reason:
        expected = f"{param.dtype}{shape_text(param.shape)}"
        raise errors.NotAnArray(kernel=signature.name, name=param.name, expected=expected, found=reason) from None
    except ForeignByteOrder as reason:
        raise errors.ByteOrder(kernel=signature.name, name=param.name, found=reason) from None
    except Unreadable as reason:
        raise errors.UnsupportedArray(kernel=signature.name, name=param.name, found=reason) from None


def _refuse_gradient(signature: Signature, param: Param) -> None:
    """Refuse a tensor that requires gradients while gradients are recorded."""
    torch = sys.modules.get("torch")
    if torch is None or torch.is_grad_enabled():
        raise errors.GradientLost(kernel=signature.name, name=param.name)


def _read_pointee(signature: Signature, param: Param, value: Argument) -> ArrayFacts:
    try:
        facts = facts_of(value)
    except NoArray as reason:
        raise errors.BadPointer(kernel=signature.name, name=param.name, found=reason) from None
    except Unreadable as reason:
        raise errors.UnsupportedArray(kernel=signature.name, name=param.name, found=reason) from None
    if not facts.contiguous:
        _refuse_strides(signature, param, facts, "of contiguous row-major memory")
    if param.dtype:
        _check_dtype(signature, param, facts)
    if facts.size:
        _check_aligned(signature, param, facts.pointer, facts.itemsize)
    return facts


#: How codes of 4 bits in integers of 8 are packed.
_PACK = "of codes: c[..., 0::2] & 15 | c[..., 1::2] << 4"


def _check_dtype(signature: Signature, param: Param, facts: ArrayFacts) -> None:
    accepted = accepted_dtypes(param)
    unpacked = param.packed and facts.library == "numpy" and facts.dtype not in ("uint8", "int8")
    if facts.dtype in accepted and not unpacked:
        return
    found = f"{facts.dtype} (one element per byte)" if unpacked and facts.dtype == param.dtype else facts.dtype
    names = " or ".join(accepted)
    ways = f"two elements per byte, low nibble first, as {names}; {_PACK}" if param.packed else f"an array of {names}"
    if not param.packed and facts.dtype in DTYPES:  # converting would be wrong where words are metadata or codes
        ways += f", or declare {param.name!r} as {facts.dtype}"
    raise errors.DTypeMismatch(kernel=signature.name, name=param.name, expected=param.dtype, found=found, accepted=ways)


def _check_rank(signature: Signature, param: Param, facts: ArrayFacts) -> None:
    if len(facts.shape) != len(param.shape):
        raise errors.RankMismatch(
            kernel=signature.name, name=param.name, expected=len(param.shape), declared=shape_text(param.shape),
            found=len(facts.shape), shape=facts.shape,
        )  # fmt: skip


def _check_devices(signature: Signature, adapter: AdapterFacts, arrays: Arrays) -> None:
    first: int | None = None
    for position, facts in arrays.items():
        name, found = signature.params[position].name, device_text(facts.device)
        if facts.device[0] not in adapter.devices:
            expected = " or ".join(device_name(kind) for kind in sorted(adapter.devices))
            raise errors.WrongDevice(
                kernel=signature.name, name=name, found=found, runtime=adapter.name, expected=expected
            )
        if first is None:
            first = position
        if facts.device != arrays[first].device:
            other, expected = signature.params[first].name, device_text(arrays[first].device)
            raise errors.DeviceConflict(kernel=signature.name, name=name, found=found, other=other, expected=expected)


def _check_writable(signature: Signature, adapter: AdapterFacts, param: Param, facts: ArrayFacts) -> None:
    if facts.requires_grad:
        raise errors.GradientOutput(kernel=signature.name, name=param.name)
    renewed = facts.library in IMMUTABLE_LIBRARIES and facts.library in adapter.renews
    if not (facts.writable or renewed):
        note = "" if facts.library == "numpy" else f", or compile with out_idx so that {param.name} is returned"
        raise errors.ReadOnlyOutput(kernel=signature.name, name=param.name, found=facts.why_read_only, note=note)


def _check_aligned(signature: Signature, param: Param, address: int, itemsize: int) -> None:
    align = max(param.align, itemsize, 1)
    if address % align:
        raise errors.Misaligned(kernel=signature.name, name=param.name, expected=align, found=hex(address))


def _equations(
    signature: Signature, arrays: Arrays, scalars: Mapping[int, float]
) -> tuple[list[Equation], list[Equation], list[Equation]]:
    shapes: list[Equation] = []
    strides: list[Equation] = []
    idle: list[Equation] = []
    for position, param in enumerate(signature.params):
        scalar = scalars.get(position)
        if scalar is not None and not isinstance(scalar, float) and param.name in signature.symbols:
            shapes.append(Equation(param.name, scalar, f"argument {param.name}"))
        facts = arrays.get(position)
        if facts is None or param.kind != "tensor":
            continue
        for axis, (dim, extent) in enumerate(zip(param.shape, facts.shape, strict=True)):
            half = param.packed and axis == len(param.shape) - 1
            source = f"{param.name}.shape[{axis}]"
            shapes.append(Equation(*_packed(dim, extent), f"2*{source}") if half else Equation(dim, extent, source))
        for axis, (dim, stride) in enumerate(zip(param.strides or (), facts.strides or (), strict=False)):
            moving = facts.size > 0 and facts.shape[axis] > 1
            source = f"{param.name}.strides[{axis}]"
            # Unused strides may even be negative; declared strides are not.
            (strides if moving else idle).append(Equation(dim, stride if moving else max(stride, 0), source))
    return shapes, strides, idle


def _packed(dim: Dim, stored: int) -> tuple[Dim, int]:
    """The equation of a packed axis: an odd constant extent still fills whole bytes."""
    if isinstance(dim, int):
        return dim + dim % 2, 2 * stored
    return dim, 2 * stored


def _check_equation(signature: Signature, equation: Equation, solution: Solution) -> None:
    dim, source = equation.dim, equation.origin
    expected = evaluate(dim, solution.values)
    if expected == equation.value:
        return
    if isinstance(dim, str):
        raise errors.SymbolConflict(
            kernel=signature.name, symbol=dim, first=expected, first_source=solution.origins[dim],
            second_text=equation.value, second_source=source, declared=_uses(signature, dim),
        )  # fmt: skip
    undivided = [symbol for e, symbol in solution.undivided if e is equation]
    if expected is None and not undivided:
        missing = next((s for s in symbols_of(dim) if s not in solution.values), dim_text(dim))
        _unsolvable(signature, missing)
    want = f"{dim_text(dim)} for an integer {undivided[0]}" if expected is None else str(expected)
    because = "" if isinstance(dim, int) or expected is None else f" = {dim_text(dim)}{_known(dim, solution)}"
    _refuse_shape(signature, equation, want, because)


def _refuse_shape(signature: Signature, equation: Equation, want: str, because: str) -> NoReturn:
    packed = equation.origin.startswith("2*")
    source = equation.origin[2:] if packed else equation.origin
    name, _, tail = source.partition(".shape[")
    param = next(p for p in signature.params if p.name == name)
    found: int | str = equation.value
    if packed:
        found = f"{equation.value} ({equation.value // 2} bytes of two elements)"
    declared = shape_text(param.shape)
    if packed:
        last = (param.shape[-1] + 1) // 2 if isinstance(param.shape[-1], int) else "half of that, rounded up"
        declared += f" with two elements of the last axis per byte, whose extent in bytes is {last}"
    raise errors.ShapeMismatch(
        kernel=signature.name, name=name, axis=tail.rstrip("]"), expected=want, because=because, found=found,
        shape=f"{name}: {shape_text(param.shape)}", declared=declared,
    )  # fmt: skip


def _known(dim: Dim, solution: Solution) -> str:
    facts = [f"{s} = {solution.values[s]} by {solution.origins[s]}" for s in dict.fromkeys(symbols_of(dim))]
    return f" with {', '.join(facts)}"


def _uses(signature: Signature, symbol: str) -> str:
    users = [str(p) for p in signature.params if symbol in {s for d in p.shape for s in symbols_of(d)}]
    return "the kernel declares " + ", ".join(users)


def _unsolvable(signature: Signature, symbol: str) -> NoReturn:
    occurrences = [
        f"{p.name}.{what}[{axis}] = {dim_text(dim)}"
        for p in signature.params
        for what, dims in (("shape", p.shape), ("strides", p.strides or ()))
        for axis, dim in enumerate(dims)
        if symbol in symbols_of(dim)
    ]
    raise errors.UnsolvableSymbol(
        kernel=signature.name, symbol=symbol, occurrences=", ".join(occurrences) or "no argument"
    )


def _refuse_strides(signature: Signature, param: Param, facts: ArrayFacts, expected: str) -> NoReturn:
    found = "bytes that are not a multiple of the element size" if facts.strides is None else str(facts.strides)
    advice = "pass a contiguous copy (numpy.ascontiguousarray, tensor.contiguous())"
    if facts.strides is not None and min(facts.strides, default=0) < 0:
        advice += "; negative strides are never accepted"
    elif param.strides is None and facts.strides is not None:
        advice += ", or declare the parameter as T.StridedTensor"
    raise errors.StrideMismatch(
        kernel=signature.name, name=param.name, expected=expected, found=found, shape=facts.shape, advice=advice
    )


def _scalar_type(signature: Signature, param: Param, value: Argument, wanted: str, advice: str) -> NoReturn:
    found = f"{type(value).__name__} {value!r}"
    found = found if len(found) <= 60 else found[:57] + "..."
    raise errors.ScalarType(
        kernel=signature.name, name=param.name, expected=f"{wanted} ({param.dtype})", found=found, advice=advice
    )
