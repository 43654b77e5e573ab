"""``tile.watch`` and ``tile.find_nan``: what a kernel's reference computes with given arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Argument, Array
from tile_core.debugging.kernels import kernel_of, require_line
from tile_core.debugging.names import VisibleNames
from tile_core.errors.base import Where
from tile_core.errors.debugging import NoSuchName
from tile_core.errors.launch import BadSetting
from tile_core.ir import nodes
from tile_core.ir.visit import role
from tile_core.records import dataclass
from tile_core.reference.nonfinite import FirstBad, Made, block_of, block_text
from tile_core.reference.observe import Observer, Site
from tile_runtime.errors.guess import hint

if TYPE_CHECKING:
    from tile_core.ir.program import Program
    from tile_core.reference.state import State
    from tile_core.runtime.kernel import Kernel

__all__ = ["Snapshot", "Watcher", "find_nan", "types_of", "watch"]


@dataclass(frozen=True)
class Snapshot:
    """A tile, or a variable, after one execution of a line.

    Attributes
    ----------
    name
        Its name.
    where
        The line.
    block
        Indices of the block, x first.
    loops
        Values of the variables of enclosing loops, which all lanes share.
    values
        Its numbers: floats of fewer than 16 bits and bfloat16 as float32.
    """

    name: str
    where: Where
    block: tuple[int, ...]
    loops: Mapping[str, int]
    values: Array

    def __str__(self) -> str:
        loops = "".join(f", {name} = {value}" for name, value in self.loops.items())
        head = f"{self.name} after line {self.where.line}, block {block_text(self.block)}{loops}:"
        return f"{head}\n{np.array2string(self.values, precision=4, threshold=64, suppress_small=True)}"


def watch(
    kernel: Kernel | Program, name: str, *args: Argument, line: int | None = None,
    block: int | Sequence[int] | None = None, **kwargs: Argument,
) -> tuple[Snapshot, ...]:  # fmt: skip
    """Return a tile of a kernel's reference after each execution of a line.

    Parameters
    ----------
    kernel
        A kernel, or a program without a target.
    name
        A tile, parameter or variable of the kernel.
    *args, **kwargs
        As for a call of the kernel; they are not written. Without arguments random ones are made, as by ``verify``.
    line
        A line of the kernel's file; by default every line that writes the tile.
    block
        Indices of the only block to watch; by default all.

    Raises
    ------
    NoSuchName
        The program has no such tile or variable.
    NoSuchLine
        It has no statement in that line.
    KernelError
        See ``Kernel.verify``: the program relies on undefined behaviour.
    """
    made = kernel_of(kernel, "watch")
    program = made.program
    assert program is not None
    if line is not None:
        require_line(program, line)
    known = sorted({*names_of(program)})
    if name not in known:
        raise NoSuchName(name=name, hint=hint(name, known, f"its names are {', '.join(known)}"), where=program.where)
    watcher = Watcher(name, line, _block(block))
    made.observe(watcher, *args, **kwargs)
    return tuple(watcher.snapshots)


def find_nan(kernel: Kernel | Program, *args: Argument, infinities: bool = False, **kwargs: Argument) -> Made | None:
    """Return the first operation of a kernel's reference that makes a NaN from numbers.

    Parameters
    ----------
    kernel
        A kernel, or a program without a target.
    *args, **kwargs
        As for a call of the kernel; they are not written.
    infinities
        Also find what makes an infinity from finite numbers, such as an overflow.

    Returns
    -------
    Made | None
        ``None`` if no operation does. NaN of the arguments do not count.
    """
    bad = FirstBad(infinities)
    kernel_of(kernel, "find_nan").observe(bad, *args, **kwargs)
    return bad.found


class Watcher(Observer):
    """Keeps the values of a name.

    Parameters
    ----------
    name
        A tile or variable.
    line
        A line, or ``None`` for those that write it.
    block
        A block, or ``None`` for all.
    """

    def __init__(self, name: str, line: int | None, block: tuple[int, ...] | None) -> None:
        self.name, self.line, self.block = name, line, block
        self.snapshots: list[Snapshot] = []
        self._loops: list[tuple[str, int]] = []
        self._types: dict[int, str] = {}
        self._base: Mapping[int, int] = {}

    def start(self, compiled: Any, state: State) -> None:
        """Keep the types of variables."""
        self._types, self._base = types_of(compiled), compiled.scope.base

    def before(self, state: State, site: Site) -> None:
        """Enter a loop."""
        if isinstance(site.statement, tirx.For) and role(site.statement) != "parallel":
            self._loops.append((str(site.statement.loop_var.name), site.loop))

    def after(self, state: State, site: Site) -> None:
        """Keep the value behind a statement."""
        if isinstance(site.statement, tirx.For) and role(site.statement) != "parallel":
            self._loops.pop()
        if site.where is None or (self.block is not None and block_of(state) != self.block):
            return
        if (site.where.line != self.line) if self.line is not None else not self._writes(site):
            return
        value = VisibleNames(state, site, self._types).value(self.name)
        if value is not None:
            loops = {name: int(state.values[n]) for name, n in self._loops if np.ndim(state.values[n]) == 0}
            self.snapshots.append(Snapshot(self.name, site.where, block_of(state), loops, np.array(value)))

    def _writes(self, site: Site) -> bool:
        number = site.tiles.get(self.name)
        if number is None:
            return isinstance(site.statement, tirx.Bind) and str(site.statement.var.name) == self.name
        return any(self._base[n] == self._base[number] for n in site.writes)


def types_of(compiled: Any) -> dict[int, str]:
    """Return the types of a compiled program's variables by their number."""
    return {n: nodes.dtype_of(v) for v, n in compiled.scope.variables.items()}


def names_of(program: Program) -> list[str]:
    from tile_core.ir.visit import collect

    body = program.func.body
    buffers = [s.buffer for s in collect(body, (tirx.AllocBuffer, tirx.DeclBuffer))]
    variables = [*(s.loop_var for s in collect(body, tirx.For)), *(s.var for s in collect(body, tirx.Bind))]
    return [str(v.name) for v in (*program.func.params, *program.symbols.values(), *buffers, *variables)]


def _block(given: int | Sequence[int] | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    block = (given,) if isinstance(given, int) else tuple(given) if isinstance(given, (list, tuple)) else None
    if block is None or not all(isinstance(i, int) and not isinstance(i, bool) for i in block):
        raise BadSetting(
            function="watch", name="block", found=repr(given), expected="an index, or one for each axis of the grid",
            instead="leave it out to watch all blocks",
        )  # fmt: skip
    return block
