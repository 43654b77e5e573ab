"""The *form* of a call: every input of its checks except addresses and scalar values.

That is types, shapes, strides or contiguity, element types and flags. A call that passed all checks leaves a `Form`:
the checks that a later call of the same form still needs, the conversion of its arguments to launch values, and its
allocations. `specialise` compiles that to one function.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping

from tile_runtime.abi.adapter import HOST_DEVICE, AdapterFacts, Location
from tile_runtime.abi.signature import Signature
from tile_runtime.calls import checks
from tile_runtime.calls.allocate import Make, allocator
from tile_runtime.calls.arrays import ArrayFacts
from tile_runtime.calls.convert import Convert, converts, output_convert
from tile_runtime.calls.wide import has_many_elements
from tile_runtime.dtypes import dtype
from tile_runtime.records import dataclass
from tile_runtime.types import Argument, Array, Torch, TorchTensor

_NUMPY_OWNS = 4  # NPY_ARRAY_OWNDATA
_HANDLE_ALIGN = 16


@dataclass(frozen=True)
class Bound:
    """The checked arguments of one launch.

    Attributes
    ----------
    values
        The arguments of the launch callable, see ``RuntimeAdapter.load``.
    arrays
        The user's arguments and outputs, one per parameter in order (scalars included).
    result
        The return value: ``None``, the output, or a tuple of the outputs of ``out_idx``.
    location
        The location of the arrays.
    wide
        Whether offsets in the arrays need 64 bits, see ``runtime/wide.py``.
    """

    values: tuple[Argument, ...]
    arrays: tuple[Argument, ...]
    result: Argument
    location: Location
    wide: bool = False


@dataclass(frozen=True)
class Output:
    """An array that a call allocates.

    Attributes
    ----------
    position
        Its parameter.
    number
        Its index among the call's results.
    make
        Returns the array to launch with and the array to return.
    convert
        From the former to the value of a launch; ``None`` if it is taken unchanged.
    """

    position: int
    number: int
    make: Make
    convert: Convert | None


@dataclass(frozen=True)
class Overlaps:
    """Pairs of arguments that must not share memory, by the cheapest sound test.

    Attributes
    ----------
    same
        NumPy arrays that own their memory: they overlap only when they are the same object.
    bounds
        Other NumPy arrays.
    spans
        Torch tensors: ``(i, j, low, high)`` where the address of ``j`` less that of ``i`` may not be between ``low``
        and ``high``, both excluded.
    mixed
        Whether there is a pair that needs the full check.
    """

    same: tuple[tuple[int, int], ...]
    bounds: tuple[tuple[int, int], ...]
    spans: tuple[tuple[int, int, int, int], ...]
    mixed: bool


@dataclass(frozen=True)
class Form:
    """Facts common to all calls of one form. Arguments are numbered as passed.

    Attributes
    ----------
    types
        The types of the arguments.
    inputs
        The parameter of each argument, by position.
    numpy, torch
        Arguments that are NumPy arrays, and torch tensors, in order.
    aligned
        Non-empty torch tensors, and bits that are zero in their addresses.
    multiples
        Other arrays and pointers that need more than natural alignment, and the required alignment.
    overlaps
        The arguments that must not overlap.
    ranges
        Arguments that are numbers: ``(i, low, high)``.
    exact
        Numeric arguments whose values are part of the form, with these values.
    converts
        Conversions of the arguments that a launch does not take unchanged.
    outputs
        Arrays to allocate, by parameter.
    symbols
        The values that a launch takes after the parameters.
    location
        The location of the arrays.
    strided
        Whether strides are part of the form.
    repeatable
        Whether the checks of this record suffice for a call of the form.
    returned
        The number of outputs that a call returns, the first by number; the others are workspaces.
    wide
        Whether offsets in the arrays need 64 bits, see ``runtime/wide.py``.
    graded
        Whether a tensor requires gradients: such calls are legal only while gradients are not recorded.
    """

    types: tuple[type, ...]
    inputs: tuple[int, ...]
    numpy: tuple[int, ...]
    torch: tuple[int, ...]
    aligned: tuple[tuple[int, int], ...]
    multiples: tuple[tuple[int, int], ...]
    overlaps: Overlaps
    ranges: tuple[tuple[int, float, float], ...]
    exact: tuple[tuple[int, int], ...]
    converts: tuple[tuple[int, Convert], ...]
    outputs: tuple[Output, ...]
    symbols: tuple[int, ...]
    location: Location
    strided: bool
    repeatable: bool
    returned: int
    wide: bool = False
    graded: bool = False

    def bind(self, args: tuple[Argument, ...]) -> Bound:
        """Convert the checked arguments of a call of this form, and allocate its outputs."""
        values, arrays = list(args), list(args)
        for i, convert in self.converts:
            values[i] = convert(values[i])
        values.extend(self.symbols)
        results: list[Argument] = [None] * len(self.outputs)
        # In order of position, so that inserting them one by one puts each at its position.
        for output in self.outputs:
            memory, result = output.make()
            results[output.number] = result
            values.insert(output.position, memory if output.convert is None else output.convert(memory))
            arrays.insert(output.position, result)
        del results[self.returned :]
        found = None if not results else results[0] if len(results) == 1 else tuple(results)
        return Bound(tuple(values), tuple(arrays), found, self.location, self.wide)


def form_of(
    signature: Signature,
    adapter: AdapterFacts,
    hidden: tuple[str, ...],
    args: tuple[Argument, ...],
    arrays: Mapping[int, ArrayFacts],
    symbols: Mapping[str, int],
) -> Form:
    """Return the form of a call that passed all checks.

    Parameters
    ----------
    signature, adapter, hidden
        The kernel, see `Binder`.
    args
        The arguments of the call.
    arrays
        Facts of those that are arrays, by parameter.
    symbols
        The values of all symbols.
    """
    packed = adapter.convention == "packed"
    at = {position: i for i, position in enumerate(signature.inputs)}
    facts = {at[position]: f for position, f in arrays.items()}
    location = _location(adapter, arrays)
    like = args[at[next(iter(arrays))]] if arrays else None
    torch = tuple(sorted(i for i, f in facts.items() if f.library == "torch"))
    overlaps = _overlaps(signature, args, facts)
    defined = is_defined_by_numbers(signature)
    # Handles are aligned like objects in memory, buffers more: larger alignments need the full check.
    handles = any(f.handle and signature.params[signature.inputs[i]].align > _HANDLE_ALIGN for i, f in facts.items())
    return Form(
        types=tuple(map(type, args)),
        inputs=signature.inputs,
        numpy=tuple(sorted(i for i, f in facts.items() if f.library == "numpy")),
        torch=torch,
        aligned=tuple(
            (i, max(signature.params[signature.inputs[i]].align, facts[i].itemsize) - 1) for i in torch if facts[i].size
        ),
        multiples=_multiples(signature, arrays),
        overlaps=overlaps,
        ranges=_ranges(signature, args),
        exact=tuple((i, a) for i, a in enumerate(args) if type(a) is int and defined),
        converts=converts(signature, args, arrays, symbols, packed=packed),
        outputs=_outputs(signature, adapter, location, like, symbols),
        symbols=tuple(symbols[s] for s in hidden),
        location=location,
        strided=is_strided(signature),
        repeatable=not (overlaps.mixed or handles),
        returned=len(signature.results),
        wide=has_many_elements(signature, arrays, symbols),
        graded=any(f.requires_grad for f in facts.values()),
    )


class FormKeys:
    """Makes keys of calls: calls of one kernel with one form have equal keys.

    A value of an unknown type has none: ``KeyError``.
    """

    def __init__(self, signature: Signature) -> None:
        import numpy

        self.strided = strided = is_strided(signature)
        form = ("shape", "strides", "flags.num", "dtype") if strided else ("shape", "flags.num", "dtype")
        # The value of a scalar that defines a symbol is part of the form; of any other scalar only the type is.
        self.parts: dict[type, Callable[[Argument], object]] = {
            numpy.ndarray: operator.attrgetter(*form),
            int: operator.index if is_defined_by_numbers(signature) else type,
            float: type,
            bool: type,
        }

    def learn(self, args: tuple[Argument, ...]) -> tuple[object, ...] | None:
        """Return the key of a call with its torch tensors; ``None`` if it has none."""
        torch: Torch = sys.modules.get("torch")
        for value in () if torch is None else args:
            if type(value) is torch.Tensor or type(value) is torch.nn.Parameter:
                self.parts[type(value)] = _torch_strided_form if self.strided else _torch_form
        if not all(type(a) in self.parts for a in args):
            return None
        return tuple([self.parts[type(a)](a) for a in args])


def is_strided(signature: Signature) -> bool:
    """Whether a kernel's arrays may have any strides, so that forms include strides."""
    return any(p.strides is not None for p in signature.params)


def is_defined_by_numbers(signature: Signature) -> bool:
    """Whether a scalar defines a symbol, so that forms include integer values."""
    return any(p.kind == "scalar" and p.name in signature.symbols for p in signature.params)


_torch_attributes = operator.attrgetter("shape", "dtype", "device", "layout", "requires_grad")


def _torch_form(tensor: TorchTensor) -> object:
    return _torch_attributes(tensor), tensor.is_contiguous(), tensor.is_neg()


def _torch_strided_form(tensor: TorchTensor) -> object:
    return _torch_form(tensor), tensor.stride()


def _location(adapter: AdapterFacts, arrays: Mapping[int, ArrayFacts]) -> Location:
    first = next(iter(arrays.values()), None)
    if first is not None:
        return Location(first.device, first.library)
    return Location() if HOST_DEVICE in adapter.devices else Location((min(adapter.devices), 0))


def _outputs(
    signature: Signature, adapter: AdapterFacts, location: Location, like: Array, symbols: Mapping[str, int]
) -> tuple[Output, ...]:
    found: list[Output] = []
    for position, number in sorted((p, k) for k, p in enumerate(signature.out_idx)):
        param = signature.params[position]
        shape = checks.output_shape(signature, param, symbols)
        make = allocator(signature, param, shape, location, like, adapter)
        convert = output_convert(param, location, shape, packed=adapter.convention == "packed")
        found.append(Output(position, number, make, convert))
    return tuple(found)


def _overlaps(signature: Signature, args: tuple[Argument, ...], arrays: Mapping[int, ArrayFacts]) -> Overlaps:
    """Sort pairs of arrays by the cheapest sound test that they do not overlap."""
    same: list[tuple[int, int]] = []
    bounds: list[tuple[int, int]] = []
    spans: list[tuple[int, int, int, int]] = []
    mixed = False
    for i, a in arrays.items():
        for j, b in arrays.items():
            writes_i, writes_j = (signature.params[signature.inputs[k]].writes for k in (i, j))
            if i == j or not writes_i or (writes_j and j < i) or not a.size or not b.size:
                continue
            if a.library == b.library == "numpy":
                both = args[i].flags.num & args[j].flags.num & _NUMPY_OWNS
                (same if both else bounds).append((i, j))
            elif a.library == b.library == "torch":
                (a_low, a_high), (b_low, b_high) = a.address_range, b.address_range
                low, high = (a_low - a.pointer) - (b_high - b.pointer), (a_high - a.pointer) - (b_low - b.pointer)
                spans.append((i, j, low, high))
            else:
                mixed = True
    return Overlaps(tuple(same), tuple(bounds), tuple(spans), mixed)


def _ranges(signature: Signature, args: tuple[Argument, ...]) -> tuple[tuple[int, float, float], ...]:
    found: list[tuple[int, float, float]] = []
    for i, position in enumerate(signature.inputs):
        param = signature.params[position]
        if param.kind == "scalar":
            found.append((i, *checks.scalar_range(param.dtype)))
        elif param.kind == "pointer" and type(args[i]) is int:
            found.append((i, 0, (1 << 64) - 1))
    return tuple(found)


def _multiples(signature: Signature, arrays: Mapping[int, ArrayFacts]) -> tuple[tuple[int, int], ...]:
    """Return alignments to check: of pointers, and of NumPy arrays beyond their flags.

    Torch has its own check.
    """
    found = []
    for i, position in enumerate(signature.inputs):
        param, facts = signature.params[position], arrays.get(position)
        if facts is not None and facts.size:
            align = max(param.align, facts.itemsize)
            if facts.library == "numpy" and align > facts.itemsize:
                found.append((i, align))
        elif facts is None and param.kind == "pointer":
            align = max(param.align, dtype(param.dtype).bits // 8 if param.dtype else 1)
            if align > 1:
                found.append((i, align))
    return tuple(found)
