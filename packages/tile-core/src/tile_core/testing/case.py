"""A test case: kernel text in parts, launches with data, and expected results.

A ``Unit`` is one kernel. It is text, so that a failing case prints as a runnable program. Its ``parts`` are statements
with outputs of their own, its ``launches`` are data; every pair of a part and a launch is one ``Case``, which is
reported separately. Parts share a compilation and launches share a kernel, because compiling dominates the time; if a
target rejects or breaks the whole, each part is compiled alone.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from tile_core.abi.signature import shape_text
from tile_core.records import dataclass

Data = dict[str, Any]
Size = int | str


@dataclass(frozen=True)
class Param:
    """A parameter of a kernel.

    Attributes
    ----------
    name, dtype
        Its name and element type.
    shape
        Extents: ints, or texts over the sizes of a launch (``"m"``, ``"2 * n"``); ``None`` for a scalar.
    out
        Whether it is compared after the launch. It is full of 0xFF bytes before, unless the launch gives it values.
    strides
        In elements, for a tensor that is not contiguous.
    of
        Of a table of addresses: the tensors at them.
    """

    name: str
    dtype: str
    shape: tuple[Size, ...] | None = None
    out: bool = False
    strides: tuple[Size, ...] | None = None
    of: tuple[str, ...] = ()

    @property
    def annotation(self) -> str:
        """The parameter as a kernel declares it."""
        if self.shape is None:
            return f"{self.name}: T.{self.dtype}"
        dims = shape_text(self.shape)
        if self.of:
            return f'{self.name}: T.Tensor({dims}, T.ptr("{self.dtype}"))'
        if self.strides is not None:
            return f'{self.name}: T.StridedTensor({dims}, {shape_text(self.strides)}, "{self.dtype}")'
        return f'{self.name}: T.Tensor({dims}, "{self.dtype}")'


@dataclass(frozen=True)
class Tolerance:
    """How close an output must be.

    Attributes
    ----------
    rtol, atol
        ``|found - expected| <= atol + rtol * |expected|``; both 0 require the same value.
    zeros
        Whether the sign of a zero counts.
    """

    rtol: float = 0.0
    atol: float = 0.0
    zeros: bool = True


#: Name, in the inputs of a reference, of the threads of the target's warps.
LANES = "#lanes"

EXACT = Tolerance()
#: The same value, but a zero may have either sign (reductions).
VALUE = Tolerance(zeros=False)

Reference = Callable[[Data], Any]


@dataclass(frozen=True)
class Part:
    """Statements of a kernel with outputs of their own.

    Attributes
    ----------
    params
        Parameters that only this part uses.
    body
        Statements.
    want
        From the inputs and sizes of a launch to the expected values: one array for one output, else a mapping.
        Values before rounding to the output's type may be float64. ``None``: what the kernel's text gives, executed
        as plain Python.
    tolerance
        How close.
    needs
        Features beyond those of the unit, see ``needs``.
    """

    params: tuple[Param, ...]
    body: str
    want: Reference | None
    tolerance: Tolerance = EXACT
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Launch:
    """Data of a launch.

    Attributes
    ----------
    data
        From a NumPy generator to the arrays (of storage elements, see ``data.stored``) and scalars by name; sizes that
        symbolic shapes name are among them.
    parts
        Names of the parts that it is meant for; empty for all.
    """

    data: Callable[[Any], Data]
    parts: frozenset[str] = frozenset()


@dataclass
class Unit:
    """One kernel with its cases.

    Attributes
    ----------
    op
        The row of the summary.
    name
        The unit within the op; op and name are unique.
    params
        Parameters of all parts.
    body
        Statements before the parts.
    parts, launches
        By name.
    grid, threads, axes
        Of the launch: texts, a count (or up to three), and the names of the block numbers.
    symbols
        Names of symbolic sizes.
    before
        Lines at the top of the file (macros, constants).
    needs
        Features that a target may declare absent: element types (those of parameters are added), ``"threads"``,
        ``"warps"``, ``"atomic:add:float16"``, ``"shared:65536"`` (bytes), ``"clusters"``,
        ``"name:alloc_barrier"`` (of a package).
    optional
        Why a target may refuse it with an ``UnsupportedError``; empty if it may not.
    refusals
        Error codes, one of which any target may raise instead.
    illegal
        Error codes, one of which every target must raise; the parts' references are then unused.
    cluster
        Blocks along the axes of the grid that run together, as a text; empty for a launch without clusters.
    reported
        Error codes, one of which the reference must report when it executes the program. Targets only compile it: its
        blocks race, so it has no defined results.
    own_launches
        Whether the statements are those of the function, with the launches among them.
    whole
        Names of tensors that an op takes as a whole, and no slice of them.
    packed
        Names of tensors that targets get in the order of ``tile.pack_weights``.
    """

    op: str
    name: str
    params: tuple[Param, ...] = ()
    body: str = ""
    parts: Mapping[str, Part] = field(default_factory=dict)
    launches: Mapping[str, Launch] = field(default_factory=dict)
    grid: str = "1"
    threads: int | tuple[int, ...] = 128
    axes: str = "bx"
    symbols: tuple[str, ...] = ()
    before: str = ""
    needs: frozenset[str] = frozenset()
    optional: str = ""
    refusals: tuple[str, ...] = ()
    illegal: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    own_launches: bool = False
    cluster: str = ""
    whole: tuple[str, ...] = ()
    packed: tuple[str, ...] = ()

    def cases(self) -> list[Case]:
        """Return every pair of a part and a launch."""
        return [
            Case(self, part, launch)
            for launch, x in self.launches.items()
            for part in self.parts
            if not x.parts or part in x.parts
        ]

    def text(self, parts: Sequence[str] | None = None) -> str:
        """Return the kernel with some of its parts, as a Python file that defines ``main``."""
        chosen = [self.parts[p] for p in (self.parts if parts is None else parts)]
        params = [*self.params, *(p for part in chosen for p in part.params)]
        lines = ["import tile_core as tile", "import tile_core.language as T", ""]
        if self.symbols:
            names = ", ".join(self.symbols)
            lines += [f'{names} = T.dynamic("{names}")', ""]
        if self.before:
            lines += [textwrap.dedent(self.before).strip("\n"), ""]
        lines += ["", "@T.prim_func", "def main(", *(f"    {p.annotation}," for p in params), "):"]
        depth = 4
        if not self.own_launches:
            dims = f"cluster_dims={self.cluster}, " if self.cluster else ""
            kind = "ClusterKernel" if self.cluster else "Kernel"
            lines.append(f"    with T.{kind}({self.grid}, {dims}threads={self.threads}) as {self.axes}:")
            depth = 8
        for body in (self.body, *(part.body for part in chosen)):
            lines += textwrap.indent(textwrap.dedent(body).strip("\n"), " " * depth).splitlines()
        lines += [f"# targets compile tile.with_packed_weights(main, {name!r})" for name in self.packed]
        return "\n".join(lines) + "\n"

    def features(self, part: str) -> frozenset[str]:
        """Return the features that one part needs, element types included."""
        chosen = self.parts[part]
        types = {p.dtype for p in (*self.params, *chosen.params)}
        inner = set(re.findall(r'"(u?int4|tfloat32|b?float\w+|u?int\d+|bool)"', self.body + chosen.body))
        return frozenset({self.op, *types, *inner, *self.needs, *chosen.needs})


@dataclass(frozen=True)
class Case:
    """One part of a unit under one launch."""

    unit: Unit
    part: str
    launch: str

    @property
    def id(self) -> str:
        """Name of the case: op, unit, part and launch."""
        return "/".join(x for x in (self.unit.op, self.unit.name, self.part, self.launch) if x)


def one(
    op: str, name: str, params: Sequence[Param], body: str, want: Reference | None,
    launches: Mapping[str, Callable[[Any], Data]], tolerance: Tolerance = EXACT, **rest: Any,
) -> Unit:  # fmt: skip
    """Return a unit with a single part."""
    part = Part((), body, want, tolerance)
    return Unit(op, name, tuple(params), "", {"": part}, {k: Launch(v) for k, v in launches.items()}, **rest)


def refused(op: str, name: str, body: str, *codes: str, params: Sequence[Param] = (), **rest: Any) -> Unit:
    """Return a unit that every target must refuse with one of ``codes``."""
    part = Part((), body, lambda d: {})
    return Unit(op, name, tuple(params), "", {"": part}, {"": Launch(lambda rng: {})}, illegal=codes, **rest)


def tensor(name: str, dtype: str, *shape: Size) -> Param:
    """Return an input."""
    return Param(name, dtype, shape)


def output(name: str, dtype: str, *shape: Size) -> Param:
    """Return an output."""
    return Param(name, dtype, shape, out=True)


def scalar(name: str, dtype: str = "int32") -> Param:
    """Return a scalar parameter."""
    return Param(name, dtype)
