"""From the arguments of a call to the arguments of a launch: checked fully once per form, then by a short plan.

The *form* of a call is all that the checks depend on, except addresses and the values of scalars: types, shapes,
strides or contiguity, dtypes, flags. A form that passed has a plan; the plan repeats only what can differ between two
calls of the same form (overlap of the memory, alignment, scalar ranges) and falls back to the full checks when one of
them fails, so that every refusal has its full text. Calls with arrays other than NumPy and torch are always checked
fully. A form of torch tensors that is seen again gets a still shorter way, see `runtime.repeat`.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tile_core.abi.adapter import HOST_DEVICE, AdapterFacts, HostMemory, Place
from tile_core.abi.signature import Param, Signature, shape_text, solvable
from tile_core.dtypes import dtype
from tile_core.errors import launch as errors
from tile_core.errors.base import InternalError, TileError, Where
from tile_core.errors.setup import OutOfMemory
from tile_core.runtime import checks
from tile_core.runtime.allocate import Make, allocator
from tile_core.runtime.arrays import ArrayFacts
from tile_core.runtime.convert import Convert, address_of, converts, output_convert
from tile_core.runtime.repeat import Call, Form, Link, short_way

_MOST_PLANS = 4096
_MOST_WAYS = 4
_NUMPY_OWNS = 4  # NPY_ARRAY_OWNDATA
_HANDLE_ALIGN = 16


@dataclass(frozen=True)
class Bound:
    """The checked arguments of one launch.

    Attributes
    ----------
    values
        What the launch callable gets, see ``RuntimeAdapter.load``.
    arrays
        What the user passed or gets, one per parameter in order (scalars included).
    result
        What the call returns: ``None``, the output, or a tuple of the outputs of ``out_idx``.
    place
        Where the arrays live.
    """

    values: tuple[Any, ...]
    arrays: tuple[Any, ...]
    result: Any
    place: Place


class Binder:
    """Checks the arguments of calls of one kernel and launches it.

    Parameters
    ----------
    signature
        What the kernel expects.
    launch
        What ``RuntimeAdapter.load`` returned.
    adapter
        The adapter that loaded it; host memory by default.
    hidden
        Symbols whose values the launch takes after the parameters. By default none if it is ``"packed"``, which reads
        them off the shapes, and all symbols of the signature if it takes ``"pointers"``.

    Raises
    ------
    UnsolvableSymbol, BadOutIdx
        The signature cannot be called at all.
    """

    def __init__(
        self,
        signature: Signature,
        launch: Callable[..., Any],
        adapter: AdapterFacts | None = None,
        hidden: Sequence[str] | None = None,
    ) -> None:
        import numpy

        self.signature = signature
        self.launch = launch
        self.adapter: AdapterFacts = adapter or HostMemory()
        self._packed = self.adapter.convention == "packed"
        self.hidden = tuple(hidden if hidden is not None else () if self._packed else signature.symbols)
        self._plans: dict[Any, _Plan] = {}
        self._ways: tuple[tuple[_Plan, Link], ...] = ()
        self.call: Call = self._long_way
        """Does the same as calling the binder, for arguments by position, given as one tuple."""
        strided = any(p.strides is not None for p in signature.params)
        self.defining = any(p.kind == "scalar" and p.name in signature.symbols for p in signature.params)
        form = ("shape", "strides", "flags.num", "dtype") if strided else ("shape", "flags.num", "dtype")
        self._torch_form = _torch_strided_form if strided else _torch_form
        # A scalar that defines a symbol belongs to the form by its value, any other one by its type.
        self._forms: dict[type, Callable[[Any], Any]] = {
            numpy.ndarray: operator.attrgetter(*form),
            int: operator.index if self.defining else type,
            float: type,
            bool: type,
        }
        check_signature(signature)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Check, allocate the outputs of ``out_idx``, launch, and return them."""
        return self.call(self._arrange(args, kwargs) if kwargs else args)

    def _long_way(self, args: tuple[Any, ...]) -> Any:
        try:
            return self._call(args)
        except TileError:
            raise
        except Exception as error:
            # All that can be wrong with arguments has been refused, so this is not the caller's mistake.
            raise _defect("launch", error, self.signature.where, self.signature.name) from error

    def _call(self, args: tuple[Any, ...]) -> Any:
        forms = self._forms
        try:
            plan = self._plans.get(tuple([forms[type(a)](a) for a in args]))
        except (KeyError, AttributeError, RuntimeError):
            plan = None
        if plan is None:
            return self._run(self.bind(*args))
        for i, j in plan.owned:
            if args[i] is args[j]:
                return self._run(self.bind(*args))
        if plan.careful and not plan.holds(args):
            return self._run(self.bind(*args))
        if plan.direct:
            self.launch(*args)
            return None
        values, result = plan.fill(args)
        if self._packed:
            self.launch(*values)
        else:
            self.launch(tuple(values), plan.place)
            plan.calls = plan.calls + 1 & 63
            if plan.calls == 1:
                self._shorten(plan, args, values)
        return result

    def _shorten(self, plan: _Plan, args: tuple[Any, ...], values: Sequence[Any]) -> None:
        """Make a short way for a form that is seen again, and one again from time to time if others displaced it."""
        form = plan.form(self.signature, args)
        # Torch's modes are no part of a plan but of a way, so that one plan may need two.
        if form is None or sum(known is plan for known, _ in self._ways) > 1:
            return
        link = short_way(self.launch, form, values, self.signature.where)
        if link is not None:
            self._ways = ways = (*self._ways[1 - _MOST_WAYS :], (plan, link))
            call: Call = self._long_way
            for _, one in ways:
                call = one(call)
            self.call = call

    def bind(self, *args: Any, **kwargs: Any) -> Bound:
        """Check the arguments fully and allocate the outputs; launches nothing.

        Raises
        ------
        LaunchError
            K4xx, for everything that is wrong with the arguments.
        """
        args = self._arrange(args, kwargs)
        with only_catalogue("the checks of a call", self.signature.where):
            return self._check(args).bind(args)

    def _arrange(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        with only_catalogue("the checks of a call", self.signature.where):
            return arrange(self.signature, args, kwargs)

    def _run(self, bound: Bound) -> Any:
        run(self.launch, bound, packed=self._packed)
        return bound.result

    def _check(self, args: tuple[Any, ...]) -> _Plan:
        signature = self.signature
        values = dict(zip(signature.inputs, args, strict=True))
        arrays = checks.check_arrays(signature, self.adapter, values)
        scalars: dict[int, Any] = {}
        for i, value in values.items():
            param = signature.params[i]
            if param.kind == "scalar":
                scalars[i] = checks.check_scalar(signature, param, value)
            elif param.kind == "pointer" and i not in arrays:
                scalars[i] = checks.check_pointer(signature, param, value)
        symbols = checks.solve_symbols(signature, arrays, scalars)
        checks.check_overlap(signature, arrays)
        plan = _Plan(self, args, arrays, symbols)
        self._remember(args, plan)
        return plan

    def _remember(self, args: tuple[Any, ...], plan: _Plan) -> None:
        torch = sys.modules.get("torch")
        if torch is not None:
            for value in args:
                if type(value) is torch.Tensor or type(value) is torch.nn.Parameter:
                    self._forms[type(value)] = self._torch_form
        if plan.repeatable and all(type(a) in self._forms for a in args):
            if len(self._plans) >= _MOST_PLANS:
                self._plans.pop(next(iter(self._plans)), None)
            self._plans[tuple([self._forms[type(a)](a) for a in args])] = plan


@contextlib.contextmanager
def only_catalogue(stage: str, where: Where | None) -> Iterator[None]:
    """Turn what is not of the catalogue into an ``InternalError``: the arguments have been checked by then."""
    try:
        yield
    except TileError as error:
        raise error.at(where) from error.__cause__
    except Exception as error:
        raise _defect(stage, error, where, "the kernel") from error


def _defect(stage: str, error: Exception, where: Where | None, kernel: str) -> TileError:
    if isinstance(error, MemoryError) or "std::bad_alloc" in str(error):
        return OutOfMemory(kernel=kernel, where=where)
    return InternalError(stage=stage, detail=f"{type(error).__name__}: {error}", where=where)


def run(launch: Callable[..., Any], bound: Bound, *, packed: bool) -> None:
    """Launch with bound arguments by the adapter's convention."""
    if packed:
        launch(*bound.values)
    else:
        launch(bound.values, bound.place)


def normalise_out_idx(name: str, params: Sequence[Param], out_idx: int | Sequence[int] | None) -> tuple[int, ...]:
    """Positions of the parameters that a call allocates, negative ones counted from the end.

    Raises
    ------
    BadOutIdx
        A position is out of range, repeated, or not that of a written array.
    """
    given: tuple[Any, ...] = () if out_idx is None else (out_idx,)
    given = tuple(out_idx) if isinstance(out_idx, (tuple, list, range)) else given
    found: list[int] = []
    for index in given:
        reason = ""
        position = index + len(params) if isinstance(index, int) and index < 0 else index
        if not isinstance(position, int) or isinstance(position, bool) or not 0 <= position < len(params):
            reason = f"{index!r} is no position of {len(params)} parameters"
        elif position in found:
            reason = f"parameter {params[position].name!r} is named twice"
        elif params[position].kind != "tensor":
            reason = f"parameter {params[position].name!r} is no array"
        elif not params[position].writes:
            reason = f"parameter {params[position].name!r} is never written"
        elif params[position].access == "readwrite":
            reason = f"parameter {params[position].name!r} is read too, perhaps before it is written"
        if reason:
            raise errors.BadOutIdx(kernel=name, found=out_idx, reason=reason, low=-len(params), high=len(params) - 1)
        found.append(position)
    return tuple(found)


def check_signature(signature: Signature) -> None:
    """Refuse a kernel whose symbols can never follow from its inputs."""
    inputs = [signature.params[i] for i in signature.inputs]
    dims = [d for p in inputs if p.kind == "tensor" for d in (*p.shape, *(p.strides or ()))]
    names = {p.name for p in inputs if p.kind == "scalar" and dtype(p.dtype).is_integer}
    found = solvable(dims, names)
    for symbol in signature.symbols:
        if symbol not in found:
            users = ", ".join(str(p) for p in signature.params if symbol in shape_text((*p.shape, *(p.strides or ()))))
            error = errors.UnsolvableSymbol(kernel=signature.name, symbol=symbol, places=users)
            raise error.at(signature.where)


def arrange(signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Positional order of the arguments that the caller passes.

    Raises
    ------
    TooManyArguments, MissingArgument, UnknownKeyword, DuplicateArgument
    """
    names = [signature.params[i].name for i in signature.inputs]
    facts: dict[str, Any] = {"kernel": signature.name, "usage": signature.usage}
    if len(args) > len(names):
        outs = ", ".join(signature.params[i].name for i in signature.out_idx)
        note = f"; {outs} is allocated and returned" if outs else ""
        raise errors.TooManyArguments(found=len(args), expected=len(names), note=note, **facts)
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise errors.UnknownKeyword(name=name, expected=", ".join(names) or "none", **facts)
        if name in given:
            raise errors.DuplicateArgument(name=name, **facts)
        given[name] = value
    for name in names:
        if name not in given:
            raise errors.MissingArgument(name=name, found=len(given), expected=len(names), **facts)
    return tuple(given[name] for name in names)


class _Plan:
    """What one form of call still has to do at each call."""

    def __init__(
        self, binder: Binder, args: tuple[Any, ...], arrays: Mapping[int, ArrayFacts], symbols: Mapping[str, int]
    ) -> None:
        signature = binder.signature
        at = {position: i for i, position in enumerate(signature.inputs)}
        self._pairs(signature, args, {at[p]: f for p, f in arrays.items()})
        self.ranges = _ranges(signature, args)
        self.aligned = _alignments(signature, args, arrays)
        first = next(iter(arrays), None)
        like = None if first is None else args[at[first]]
        self.place = Place() if first is None else Place(arrays[first].device, arrays[first].library)
        if first is None and HOST_DEVICE not in binder.adapter.devices:
            self.place = Place((min(binder.adapter.devices), 0))
        self.packed = binder._packed
        self.converts = converts(signature, args, arrays, symbols, packed=self.packed)
        self.outputs: list[tuple[int, int, Make, Convert | None]] = []
        # In order of position, so that inserting them one after the other puts each in its place.
        for position, slot in sorted((p, k) for k, p in enumerate(signature.out_idx)):
            param = signature.params[position]
            shape = checks.output_shape(signature, param, symbols)
            make = allocator(signature, param, shape, self.place, like, binder.adapter)
            convert = output_convert(param, self.place, shape, packed=self.packed)
            self.outputs.append((position, slot, make, convert))
        self.symbols = tuple(symbols[s] for s in binder.hidden)
        self.arrays = tuple(sorted(at[p] for p in arrays))
        foreign = any(f.library != "torch" for f in arrays.values())
        pointers = any(signature.params[p].kind == "pointer" and p not in arrays for p in at)
        grad = any(a.requires_grad for a in arrays.values())
        self.short = not (self.packed or foreign or pointers or grad or self.place.library != "torch")
        self.exact = tuple(i for i, a in enumerate(args) if type(a) is int and binder.defining)
        self.calls = 0
        self.careful = bool(self.bounds or self.tensors or self.ranges or self.aligned)
        self.direct = self.packed and not (self.converts or self.outputs or self.symbols)

    def holds(self, args: tuple[Any, ...]) -> bool:
        """Whether the checks of addresses and values pass, ``owned`` aside; when not, the full checks say why."""
        for i, j in self.bounds:
            if self.may_share(args[i], args[j]):
                return False
        if self.tensors:
            try:
                at = {i: args[i].data_ptr() for i, _ in self.tensors}
            except RuntimeError:  # it stands for a tensor, in a transformation
                return False
            for i, mask in self.tensors:
                if not at[i] or at[i] & mask:
                    return False
            for i, low_i, high_i, j, low_j, high_j in self.spans:
                if at[i] + low_i < at[j] + high_j and at[j] + low_j < at[i] + high_i:
                    return False
        for i, low, high in self.ranges:
            if not low <= args[i] <= high:
                return False
        return not self.aligned or not any(address_of(args[i]) % align for i, align in self.aligned)

    def fill(self, args: tuple[Any, ...]) -> tuple[list[Any], Any]:
        """Convert and allocate: the values of a launch and what the call returns."""
        values = list(args)
        for i, convert in self.converts:
            values[i] = convert(values[i])
        values.extend(self.symbols)
        if not self.outputs:
            return values, None
        results = [None] * len(self.outputs)
        for position, slot, make, convert_output in self.outputs:
            memory, results[slot] = make()
            values.insert(position, memory if convert_output is None else convert_output(memory))
        return values, results[0] if len(results) == 1 else tuple(results)

    def form(self, signature: Signature, args: tuple[Any, ...]) -> Form | None:
        """What a short way of calls like this one is made from; ``None`` if there is none."""
        if not self.short:
            return None
        spans = tuple((i, j, low_i - high_j, high_i - low_j) for i, low_i, high_i, j, low_j, high_j in self.spans)
        return Form(
            args, signature.inputs, self.arrays, self.tensors, spans, self.ranges, self.exact,
            tuple(output[:3] for output in self.outputs), self.place,
        )  # fmt: skip

    def bind(self, args: tuple[Any, ...]) -> Bound:
        """The same, with the arrays as the user knows them."""
        values, result = self.fill(args)
        arrays = list(args)
        for position, slot, _, _ in self.outputs:
            arrays.insert(position, result if len(self.outputs) == 1 else result[slot])
        return Bound(tuple(values), tuple(arrays), result, self.place)

    def _pairs(self, signature: Signature, args: tuple[Any, ...], arrays: Mapping[int, ArrayFacts]) -> None:
        """Sort the pairs of arrays that must not overlap by the cheapest sound test of their kind."""
        import numpy

        self.may_share = numpy.may_share_memory
        owned: list[tuple[int, int]] = []
        bounds: list[tuple[int, int]] = []
        spans: list[tuple[int, int, int, int, int, int]] = []
        # Whether gradients are recorded is asked at every call, by the full checks.
        self.repeatable = not any(a.requires_grad for a in arrays.values())
        for i, a in arrays.items():
            for j, b in arrays.items():
                writes_i, writes_j = (signature.params[signature.inputs[k]].writes for k in (i, j))
                if i == j or not writes_i or (writes_j and j < i) or not a.size or not b.size:
                    continue
                if a.library == b.library == "numpy":
                    # Two arrays that own their memory overlap only when they are the same object.
                    both = args[i].flags.num & args[j].flags.num & _NUMPY_OWNS
                    (owned if both else bounds).append((i, j))
                elif a.library == b.library == "torch":
                    (a_low, a_high), (b_low, b_high) = a.address_range, b.address_range
                    span = (i, a_low - a.pointer, a_high - a.pointer, j, b_low - b.pointer, b_high - b.pointer)
                    spans.append(span)
                else:
                    self.repeatable = False
        self.owned, self.bounds, self.spans = tuple(owned), tuple(bounds), tuple(spans)
        # Torch tensors by place in the call, with the bits of an address that alignment wants to be zero.
        self.tensors = tuple(
            (i, max(signature.params[signature.inputs[i]].align, a.itemsize) - 1)
            for i, a in arrays.items()
            if a.library == "torch" and a.size
        )
        # Handles are aligned to what objects in memory are, buffers to more: larger alignments need the full check.
        if any(a.handle and signature.params[signature.inputs[i]].align > _HANDLE_ALIGN for i, a in arrays.items()):
            self.repeatable = False


_torch_attributes = operator.attrgetter("shape", "dtype", "device", "layout", "requires_grad")


def _torch_form(tensor: Any) -> Any:
    return _torch_attributes(tensor), tensor.is_contiguous(), tensor.is_neg()


def _torch_strided_form(tensor: Any) -> Any:
    return _torch_form(tensor), tensor.stride()


def _ranges(signature: Signature, args: tuple[Any, ...]) -> tuple[tuple[int, float, float], ...]:
    found: list[tuple[int, float, float]] = []
    for i, position in enumerate(signature.inputs):
        param = signature.params[position]
        if param.kind == "scalar":
            found.append((i, *checks.scalar_range(param.dtype)))
        elif param.kind == "pointer" and type(args[i]) is int:
            found.append((i, 0, (1 << 64) - 1))
    return tuple(found)


def _alignments(
    signature: Signature, args: tuple[Any, ...], arrays: Mapping[int, ArrayFacts]
) -> tuple[tuple[int, int], ...]:
    """Alignments of pointers and those of NumPy arrays that their flags do not imply; torch has its own check."""
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
