"""The short way of a call whose form has been seen before: torch tensors and numbers, launched by their addresses.

One check in torch's own code compares everything that the form of the tensors is made of; then come the addresses, the
comparisons of integers that alignment and overlap need, and the launch. A call that fails any of it goes the long way,
which knows why. The code of a way is made once per kind of call (how many tensors, which bits, which pairs); the ways
of its forms differ by constants.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tile_core.abi.adapter import Place
from tile_core.errors.base import InternalError, TileError, Where

Call = Callable[[tuple[Any, ...]], Any]
"""Makes a call, given its arguments."""

Link = Callable[[Call], Call]
"""From the way of the calls that are not of a form to the way of all calls."""


@dataclass(frozen=True)
class Repeat:
    """Launches that differ from one that has been made in the values at a few positions only.

    Attributes
    ----------
    launch
        Called with the values at those positions, in their order.
    masks
        Positions, and the bits that are zero in every value that ``launch`` may be given there.
    """

    launch: Callable[..., None]
    masks: tuple[tuple[int, int], ...] = ()


class Repeatable(Protocol):
    """A launch callable of the convention ``"pointers"`` that has a shorter way for launches that are alike."""

    def __call__(self, values: Sequence[Any], place: Place) -> None:
        """Launch, see ``RuntimeAdapter.load``."""

    def repeat(self, values: Sequence[Any], place: Place, moving: Sequence[int]) -> Repeat | None:
        """Return the shorter way.

        Parameters
        ----------
        values, place
            Of a launch that has succeeded.
        moving
            Positions of values that differ from launch to launch, ascending.

        Returns
        -------
        Repeat or None
            ``None`` if there is no shorter way.
        """


@dataclass(frozen=True)
class Form:
    """What is known about all calls of one form.

    Attributes
    ----------
    args
        The arguments of one of them.
    inputs
        The parameter of each argument, by position.
    tensors
        Arguments that are torch tensors, in order.
    aligned
        Arguments that are tensors with elements, and bits that are zero in their addresses.
    spans
        Pairs of tensors that must not overlap: ``(i, j, low, high)`` where the address of ``j`` less that of ``i`` may
        not be between ``low`` and ``high``, both excluded.
    ranges
        Arguments that are numbers: ``(i, low, high)``.
    exact
        Arguments that are numbers and belong to the form by their values.
    outputs
        Arrays to allocate, ``(parameter, number of the result, function)``, by parameter.
    place
        Where the tensors are.
    """

    args: tuple[Any, ...]
    inputs: tuple[int, ...]
    tensors: tuple[int, ...]
    aligned: tuple[tuple[int, int], ...]
    spans: tuple[tuple[int, int, int, int], ...]
    ranges: tuple[tuple[int, float, float], ...]
    exact: tuple[int, ...]
    outputs: tuple[tuple[int, int, Callable[[], tuple[Any, Any]]], ...]
    place: Place


def short_way(launch: Any, form: Form, values: Sequence[Any], where: Where | None) -> Link | None:
    """Return the short way of the calls of a form, to be completed by that of all others; ``None`` if there is none.

    Parameters
    ----------
    launch
        The launch callable; it must be `Repeatable` for there to be a short way.
    form
        The form.
    values
        The values that ``launch`` got for ``form.args``.
    where
        The place of the kernel, for messages.
    """
    repeat, guards = getattr(launch, "repeat", None), _tensor_guards()
    numbers = [i for i in range(len(form.args)) if i not in form.tensors]
    if repeat is None or guards is None or not form.tensors or any(type(form.args[i]) not in _NUMBERS for i in numbers):
        return None
    fixed = {form.inputs[i] for i in form.exact}
    moving = tuple(p for p in sorted((*form.inputs, *(o[0] for o in form.outputs))) if p not in fixed)
    found: Repeat | None = repeat(values, form.place, moving)
    if found is None or any(p not in moving for p, _ in found.masks):
        return None
    kind, constants = _kind_of(form, found, moving, values)
    tensors = [form.args[i] for i in form.tensors]
    check = guards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check

    def wrong(error: Exception) -> InternalError:
        return InternalError(stage="launch", detail=f"{type(error).__name__}: {error}", where=where)

    make, short = _maker(kind), found.launch
    return lambda otherwise: make(otherwise, check, short, wrong, TileError, *constants)


_NUMBERS = (int, float, bool)


@dataclass(frozen=True)
class _Kind:
    """What the code of a short way depends on; positions are those of arguments, outputs are counted after them."""

    count: int
    tensors: tuple[int, ...]
    full: tuple[int, ...]  # tensors with elements
    numbers: tuple[tuple[int, bool], ...]  # and whether the value is a constant
    masks: tuple[tuple[int, ...], ...]  # arguments that share a mask, one constant each
    pairs: tuple[tuple[int, int], ...]  # two constants each
    outputs: tuple[int, ...]  # the number of the result of each, one constant each
    passed: tuple[tuple[int, str], ...]  # what the launch gets, and the type it is converted to


def _kind_of(form: Form, found: Repeat, moving: Sequence[int], values: Sequence[Any]) -> tuple[_Kind, tuple[Any, ...]]:
    """Return the kind of a form, and the constants of its code in the order of `_source`."""
    at = {p: i for i, p in enumerate(form.inputs)}
    at |= {o[0]: len(form.args) + k for k, o in enumerate(form.outputs)}
    bits: dict[int, int] = dict(form.aligned)
    for position, mask in found.masks:
        bits[at[position]] = bits.get(at[position], 0) | mask
    masks: dict[int, list[int]] = {}
    for i, mask in sorted(bits.items()):
        masks.setdefault(mask, []).append(i)
    masks.pop(0, None)
    ranges = {i: (low, high) for i, low, high in form.ranges}
    numbers = tuple((i, i in form.exact) for i in range(len(form.args)) if i not in form.tensors)
    constants: list[Any] = []
    for i, exact in numbers:
        constants += [type(form.args[i]), *((form.args[i],) if exact else ranges[i])]
    constants += masks
    for _, _, low, high in form.spans:
        constants += [low, high]
    constants += [make for _, _, make in form.outputs]
    kind = _Kind(
        count=len(form.args),
        tensors=form.tensors,
        full=tuple(i for i in form.tensors if form.args[i].numel()),
        numbers=numbers,
        masks=tuple(map(tuple, masks.values())),
        pairs=tuple((i, j) for i, j, _, _ in form.spans),
        outputs=tuple(number for _, number, _ in form.outputs),
        passed=tuple((at[p], _conversion(form, at[p], values[p])) for p in moving),
    )
    return kind, tuple(constants)


def _conversion(form: Form, i: int, value: Any) -> str:
    """Return the type that a number is converted to for the launch; empty if it is passed as it is."""
    number = i < len(form.args) and i not in form.tensors
    return type(value).__name__ if number and type(value) is not type(form.args[i]) else ""


@functools.lru_cache(maxsize=1024)
def _maker(kind: _Kind) -> Callable[..., Call]:
    """Return the function that makes the ways of a kind from their constants."""
    space: dict[str, Any] = {}
    exec(compile(_source(kind), "<the short way of a call>", "exec"), space)
    made: Callable[..., Call] = space["make"]
    return made


def _source(kind: _Kind) -> str:
    """Return the text of a function: a ``x1`` is an argument, ``p1`` its address, ``c1`` a constant."""
    constants = iter(f"c{n}" for n in range(10_000))
    names: list[str] = []

    def constant() -> str:
        names.append(next(constants))
        return names[-1]

    tests: list[str] = []
    for i, exact in kind.numbers:
        test = f"type(x{i}) is not {constant()} or "
        tests.append(test + (f"x{i} != {constant()}" if exact else f"not {constant()} <= x{i} <= {constant()}"))
    first = [f"not check({', '.join(f'x{i}' for i in kind.tensors)})", *tests]
    # A tensor whose memory was freed has no address.
    second = [f"not ({' and '.join(f'p{i}' for i in kind.full)})"] if kind.full else []
    third: list[str] = []  # of outputs
    for shared in kind.masks:
        bits = " | ".join(f"{'p' if _is_address(kind, i) else 'x'}{i}" for i in shared)
        (third if any(i >= kind.count for i in shared) else second).append(f"({bits}) & {constant()}")
    second += [f"{constant()} < p{j} - p{i} < {constant()}" for i, j in kind.pairs]
    lines = [f"({', '.join(f'x{i}' for i in range(kind.count))},) = args"]
    lines = ["try:", f" {lines[0]}", "except ValueError:", " return otherwise(args)"]
    lines += [f"if {' or '.join(first)}:", " return otherwise(args)"]
    lines += [f"p{i} = x{i}.data_ptr()" for i in kind.tensors]
    lines += [f"if {' or '.join(second)}:", " return otherwise(args)"] if second else []
    launch = [f"x{kind.count + k}, r{n} = {constant()}()" for k, n in enumerate(kind.outputs)]
    launch += [f"p{kind.count + k} = x{kind.count + k}.data_ptr()" for k in range(len(kind.outputs))]
    launch += [f"if {' or '.join(third)}:", " return otherwise(args)"] if third else []
    passed = [(f"p{i}" if _is_address(kind, i) else f"x{i}", convert) for i, convert in kind.passed]
    launch.append(f"launch({', '.join(f'{convert}({v})' if convert else v for v, convert in passed)})")
    results = [f"r{n}" for n in sorted(kind.outputs)]
    launch.append(f"return {', '.join(results) or None}")
    lines += ["try:", *(f" {line}" for line in launch)]
    lines += ["except known:", " raise", "except Exception as error:", " raise wrong(error) from error"]
    head = f"def make(otherwise, check, launch, wrong, known{''.join(f', {name}' for name in names)}):"
    return "\n".join([head, " def call(args):", *(f"  {line}" for line in lines), " return call"])


def _is_address(kind: _Kind, i: int) -> bool:
    return i in kind.tensors or i >= kind.count


def _tensor_guards() -> Any:
    """Return torch's check of many tensors at once if this torch has it and it does what it is needed for."""
    torch: Any = sys.modules.get("torch")
    return None if torch is None else _tested_guards(torch)


@functools.lru_cache(maxsize=1)
def _tested_guards(torch: Any) -> Any:
    try:
        guards = sys.modules["torch._C._dynamo.guards"].TensorGuards
        with torch.inference_mode(False):
            right, wrong = _examples(torch)
            check = guards(right, dynamic_dims_sizes=None, dynamic_dims_strides=None).check
            return guards if check(right) and check(right.clone()) and not any(map(check, wrong)) else None
    except (KeyError, AttributeError, TypeError, RuntimeError, ValueError, ImportError):
        return None


def _examples(torch: Any) -> tuple[Any, list[Any]]:
    """Return a tensor, and arguments that differ from it in all that the form of a call is made of."""
    right, device = torch.zeros((2, 3), device="cpu"), "cpu"
    return right, [
        torch.nn.Parameter(right.clone(), requires_grad=False),
        torch.zeros((2, 3), dtype=torch.int32, device=device),
        torch.zeros((2, 3, 1), device=device),
        torch.zeros((3, 3), device=device),
        torch.zeros((3, 2), device=device).t(),
        torch.zeros((2, 3), requires_grad=True, device=device),
        torch._neg_view(right),
        right.to_sparse(),
        torch.zeros((2, 3), device="meta"),
        1,
    ]
