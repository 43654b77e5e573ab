"""Generate the function of a form's calls: only checks that can differ, and the launch.

The text of a function depends on the kind of the call (how many arrays, which bits, which pairs); everything else is
a constant, so that the forms of a kernel usually share one text, which is compiled once. A call that fails a check
is passed on to another function, which finds the reason.

A form has two functions. The one that *recognises* its form compares every property of the form (NumPy arrays by
their attributes, torch tensors by one check in torch's own code), so that the functions of the last few forms can be
tried one after the other. The one found by the form's key need not.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tile_runtime.calls.allocate import Alone
from tile_runtime.calls.convert import address_of
from tile_runtime.calls.form import Form, Output
from tile_runtime.calls.guards import tensor_guards
from tile_runtime.calls.profiling import TorchRecord
from tile_runtime.calls.repeat import PreparedLaunches, Repeat
from tile_runtime.errors.base import TileError
from tile_runtime.types import Argument

Call = Callable[[tuple[Argument, ...]], Argument]
"""Makes a call, given its arguments."""

Link = Callable[[Call], Call]
"""From the function for the calls that are not of a form, or fail its checks, to the function for all calls."""

Wrong = Callable[[Exception], TileError]
"""Makes the error for what a launch raised."""

_NUMBERS = (int, float, bool)


def by_key(
    form: Form, launch: Callable[..., object], wrong: Wrong, *, packed: bool, record: TorchRecord | None = None
) -> Link:
    """Return the function for calls that were matched by the form's key.

    Parameters
    ----------
    form
        The form.
    launch
        The launch callable.
    wrong
        Makes the error for what it raises.
    packed
        Whether it has the convention ``"packed"``.
    record
        Records launches with torch tensors while ``torch.profiler`` does.
    """
    text = _FunctionText(form, record)
    text.check_addresses()
    return text.link(text.long_launch(launch, packed=packed), wrong)


def telling(
    form: Form,
    args: tuple[Argument, ...],
    values: Sequence[Argument],
    launch: Callable[..., object],
    wrong: Wrong,
    *,
    packed: bool,
    record: TorchRecord | None = None,
) -> Link | None:
    """Return a function that recognises calls of its form; ``None`` without a cheap one.

    Parameters
    ----------
    form, launch, wrong, packed, record
        See `by_key`. If all arrays are torch tensors and the launch has a method ``repeat``, the function launches in
        that way, see `calls.repeat`.
    args, values
        The arguments of a call that was made just now, and the values of its launch: torch's modes count.
    """
    text = _FunctionText(form, record)
    if not text.check_form(args, packed=packed):
        return None
    if packed or form.numpy or not form.torch:
        text.check_addresses()
        return text.link(text.long_launch(launch, packed=packed), wrong)
    repeat = getattr(launch, "repeat", None)
    fixed = {form.inputs[i] for i, _ in form.exact}
    moving = tuple(p for p in sorted((*form.inputs, *(o.position for o in form.outputs))) if p not in fixed)
    found: Repeat | None = None if repeat is None else repeat(values, form.location, moving)
    if found is None or any(p not in moving for p, _ in found.masks):
        return None
    text.check_addresses(found.masks)
    return text.short_link(found, moving, values, wrong)


class _FunctionText:
    """The text of a function: ``x1`` argument, ``p1`` address, ``y1`` output, ``c1`` constant."""

    def __init__(self, form: Form, record: TorchRecord | None) -> None:
        self.form, self.record = form, record if form.torch else None
        self.constants: list[object] = []
        self.count = len(form.types)
        self.tests: list[str] = []  # of the arguments as they are
        self.addresses: list[int] = []  # tensors whose addresses are needed
        self.address_tests: list[str] = []
        self.output_tests: list[str] = []
        self.outputs = {o.position: self.count + k for k, o in enumerate(form.outputs)}
        self.at = {p: i for i, p in enumerate(form.inputs)} | self.outputs
        if form.graded:  # not part of a key: torch may begin to record between two calls
            self.tests.append(f"{self.constant(sys.modules['torch'].is_grad_enabled)}()")

    def constant(self, value: object) -> str:
        """Return the name of a constant."""
        self.constants.append(value)
        return f"c{len(self.constants) - 1}"

    # Checks

    def check_form(self, args: tuple[Argument, ...], *, packed: bool) -> bool:
        """Emit comparisons with every property of the form, if possible."""
        form = self.form
        numbers = [i for i in range(self.count) if i not in (*form.numpy, *form.torch)]
        if any(form.types[i] not in _NUMBERS for i in numbers):
            return False
        if form.torch:
            guards = tensor_guards()
            if guards is None:
                return False
            tensors = [args[i] for i in form.torch]
            # Torch's check ends the process at a nested tensor, which is of the same class.
            for i in form.torch if packed else ():
                self.tests += [f"type(x{i}) is not {self.constant(form.types[i])}", f"x{i}.is_nested"]
            check = guards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check
            self.tests.append(f"not {self.constant(check)}({', '.join(f'x{i}' for i in form.torch)})")
        names = ("shape", "strides", "flags.num") if form.strided else ("shape", "flags.num")
        for i in form.numpy:
            self.tests.append(f"type(x{i}) is not {self.constant(form.types[i])}")
            self.tests += [f"x{i}.{name} != {self.constant(operator.attrgetter(name)(args[i]))}" for name in names]
            # Types that are equal are nearly always one object; the others are found by the key.
            self.tests.append(f"x{i}.dtype is not {self.constant(args[i].dtype)}")
        for i in numbers:
            self.tests.append(f"type(x{i}) is not {self.constant(form.types[i])}")
        self.tests += [f"x{i} != {self.constant(value)}" for i, value in form.exact]
        return True

    def check_addresses(self, masks: Sequence[tuple[int, int]] = ()) -> None:
        """Check what is not part of the form: values of numbers, alignment and overlap.

        Parameters
        ----------
        masks
            Parameters, and bits that are zero in the values that a launch may be given for them.
        """
        form, tests = self.form, self.address_tests
        exact = {i for i, _ in form.exact}
        for i, low, high in form.ranges:
            if i not in exact:
                self.tests.append(f"not {self.constant(low)} <= x{i} <= {self.constant(high)}")
        tests += [f"x{i} is x{j}" for i, j in form.overlaps.same]
        if form.overlaps.bounds:
            import numpy

            may_persist = self.constant(numpy.may_share_memory)
            tests += [f"{may_persist}(x{i}, x{j})" for i, j in form.overlaps.bounds]
        self.addresses = [i for i, _ in form.aligned]
        if form.aligned:
            # A tensor whose memory was freed has no address.
            tests.append(f"not ({' and '.join(f'p{i}' for i, _ in form.aligned)})")
        bits: dict[int, int] = dict(form.aligned)
        for position, mask in masks:
            bits[self.at[position]] = bits.get(self.at[position], 0) | mask
        shared: dict[int, list[int]] = {}
        for i, mask in sorted(bits.items()):
            shared.setdefault(mask, []).append(i)
        for mask, positions in shared.items():
            if mask:
                test = f"({' | '.join(map(self._number, positions))}) & {self.constant(mask)}"
                (self.output_tests if positions[-1] >= self.count else tests).append(test)
        for i, j, low, high in form.overlaps.spans:
            tests.append(f"{self.constant(low)} < p{j} - p{i} < {self.constant(high)}")
        for i, by in form.multiples:
            number = f"x{i}" if form.types[i] is int else f"{self.constant(address_of)}(x{i})"
            tests.append(f"{number} % {self.constant(by)}")

    # The launch

    def long_launch(self, launch: Callable[..., object], *, packed: bool) -> list[str]:
        """Return the lines of a launch by the adapter's convention."""
        form, lines = self.form, []
        values = {p: f"x{i}" for i, p in enumerate(form.inputs)}
        for i, convert in form.converts:
            values[form.inputs[i]] = f"{self.constant(convert)}(x{i})"
        if not packed:
            self.addresses = list(form.torch)
            values |= {form.inputs[i]: f"p{i}" for i in form.torch}
        for output in form.outputs:
            name = f"y{self.outputs[output.position]}"
            lines.append(self._made(output))
            made = name if output.convert is None else f"{self.constant(output.convert)}({name})"
            values[output.position] = made
        passed = [values[p] for p in sorted(values)] + [self.constant(s) for s in form.symbols]
        whole = (
            ", ".join(passed) if packed else f"({''.join(f'{v}, ' for v in passed)}), {self.constant(form.location)}"
        )
        return [*lines, *self._launched(f"{self.constant(launch)}({whole})"), self._result()]

    def short_link(self, repeat: Repeat, moving: Sequence[int], values: Sequence[Argument], wrong: Wrong) -> Link:
        """Return the function of a launch whose values at some positions vary.

        All arrays are torch tensors.

        The addresses that were checked once need no second check.
        """
        form = self.form
        passed, kinds = [], set()
        for position in moving:
            i, value = self.at[position], values[position]
            is_tensor = i >= self.count or i in form.torch
            kinds.add(int if is_tensor else type(value))
            plain = is_tensor or type(value) is form.types[i]
            passed.append(self._number(i) if plain else f"{type(value).__name__}(x{i})")
        self.addresses = list(form.torch)
        tests = [*self.address_tests, *self.output_tests]
        key, result = "".join(f"{value}, " for value in passed), self._result()
        lines = [self._made(o) for o in form.outputs]
        lines += [f"p{i} = y{i}.data_ptr()" for i in self.outputs.values()]
        learn = ""
        # Floats that are equal may have other bits, so they are no keys.
        if repeat.prepare is not None and kinds == {int}:
            prepared = PreparedLaunches(repeat.prepare)
            learn = f"{self.constant(prepared.learn)}(key)"
            lines += [
                f"key = {key}", f"ready = {self.constant(prepared.get)}(key)", "if ready is not None:",
                *(f" {line}" for line in self._launched(f"{self.constant(repeat.again)}(ready, key)")), f" {result}",
            ]  # fmt: skip
        if tests:
            lines += [f"if {' or '.join(tests)}:", " return otherwise(args)"]
        lines += [*self._launched(f"{self.constant(repeat.launch)}({key})"), *([learn] if learn else []), result]
        self.address_tests = []
        return self.link(lines, wrong)

    def link(self, launch: list[str], wrong: Wrong) -> Link:
        """Return the function, to be completed by the one for all other calls."""
        pass_on = " return otherwise(args)"
        lines = [
            "try:",
            f" {''.join(f'x{i}, ' for i in range(self.count)) or '()'} = args",
            "except ValueError:",
            pass_on,
        ]
        if self.tests:
            lines += [f"if {' or '.join(self.tests)}:", pass_on]
        if self.addresses:
            # Tensors that represent others inside a transformation have none.
            lines += ["try:", *(f" p{i} = x{i}.data_ptr()" for i in self.addresses), "except RuntimeError:", pass_on]
        if self.address_tests:
            lines += [f"if {' or '.join(self.address_tests)}:", pass_on]
        lines += ["try:", *(f" {line}" for line in launch)]
        lines += ["except known:", " raise", "except Exception as error:", " raise wrong(error) from error"]
        names = "".join(f", c{n}" for n in range(len(self.constants)))
        head = f"def make(otherwise, known, wrong{names}):"
        make = _compiled("\n".join([head, " def call(args):", *(f"  {line}" for line in lines), " return call"]))
        constants = tuple(self.constants)
        return lambda otherwise: make(otherwise, TileError, wrong, *constants)

    def _launched(self, call: str) -> list[str]:
        """Return the lines of a launch, which torch's profiler may record."""
        if self.record is None:
            return [call]
        profiler, begin = self.constant(self.record.profiler), self.constant(self.record.begin)
        return [f"if {profiler}._is_profiler_enabled:", f" with {begin}():", f"  {call}", "else:", f" {call}"]

    def _made(self, output: Output) -> str:
        y, r = f"y{self.outputs[output.position]}", f"r{output.number}"
        if isinstance(output.make, Alone):
            return f"{y} = {r} = {self.constant(output.make.make)}()"
        return f"{y}, {r} = {self.constant(output.make)}()"

    def _number(self, i: int) -> str:
        return f"p{i}" if i in self.form.torch or i >= self.count else f"x{i}"

    def _result(self) -> str:
        return f"return {', '.join(f'r{n}' for n in range(self.form.returned)) or None}"


@functools.lru_cache(maxsize=1024)
def _compiled(text: str) -> Callable[..., Call]:
    """Return the function that makes the functions of one text from their constants."""
    space: dict[str, Any] = {}
    exec(compile(text, "<the function of a form of calls>", "exec"), space)
    made: Callable[..., Call] = space["make"]
    return made
