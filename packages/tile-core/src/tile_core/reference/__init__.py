"""The reference interpreter of traced programs over NumPy, independent of any backend.

It reads the program as the frontend made it (``ir/grammar.py``), before any pass, and simplifies nothing. Integer
arithmetic wraps in the width of its type, division is Python's, floats are rounded once per operation in the type that
the program says. Iterations of ``T.Parallel`` and the threads of a block run side by side as lanes of NumPy arrays
(``lanes``), blocks one after another. ``Kernel.verify``, the conformance kit and the fuzzer compare with it.

With ``check`` memory is watched (``sanitizer``): uninitialized reads and races are errors of the catalogue.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from tile_core.compat.types import Argument
from tile_core.dtypes import DTYPES
from tile_core.numerics.levels import STANDARD
from tile_runtime.compat.exits import check_thread
from tile_runtime.numerics.literals import round_number

if TYPE_CHECKING:
    from tile_core.ir.program import Program
    from tile_core.reference.arguments import Unwritten
    from tile_core.reference.observe import Observer
    from tile_core.reference.program import Compiled

__all__ = ["execute"]

#: Recently executed programs, with their compiled functions.
_compiled: dict[tuple[int, bool, bool], tuple[Program, Compiled]] = {}
_MOST = 16
_lock = threading.Lock()


def execute(
    program: Program,
    arrays_and_scalars: Sequence[Argument] | Mapping[str, Argument],
    *,
    check: bool = True,
    width: int = 32,
    symbols: Mapping[str, int] | None = None,
    unwritten: Collection[int] | None = None,
    bounds: bool = False,
    loops: bool = False,
    shake: int | None = None,
    level: str = STANDARD,
    printed: list[str] | None = None,
    observer: Observer | None = None,
) -> tuple[Unwritten, ...]:
    """Execute a traced program, which ``@T.prim_func`` returned; its outputs are written in place.

    Parameters
    ----------
    arrays_and_scalars
        One per parameter, in order or by name: NumPy arrays with the elements that a launch takes (``uint8`` or the
        type itself for 8-bit floats, packed bytes for 4-bit types), numbers, addresses (or arrays) for pointers.
        Workspaces may be left out.
    check, width
        Watch memory: refuse uninitialized reads, and races; threads of a warp.
    symbols
        Values of symbols that no array's shape gives.
    unwritten
        Positions of tensors that hold nothing yet, for ``check``; by default the program's own outputs.
    bounds
        Also refuse accesses outside scratch buffers, which are defined but rarely meant.
    loops
        Execute tile ops by the loops of their meaning.
    shake, level
        Seed of changes of floats, as large as a level of numerics admits, see ``Shaker``.
    printed
        Receives the texts of ``T.print``, one per execution of it by a lane; they are printed nowhere.
    observer
        Called before and after each statement, see ``observe``.

    Returns
    -------
    tuple
        With ``check``: the elements of ``unwritten`` that are never written.

    Raises
    ------
    ExecutionError, DeviceAssertFailed, NoReferenceMeaning
        Undefined behaviour, an assertion that fails, an operation of a backend.
    """
    from tile_core.reference.arguments import bind, unbind, unwritten_of

    check_thread()
    compiled = _made(program, loops, observer is not None)
    arrays_and_scalars, nothing = _given(program, arrays_and_scalars, symbols or {}, unwritten)
    state = compiled.state(width, bounds if check or bounds else None, shake, printed, level)
    bind(compiled, state, arrays_and_scalars, symbols or {}, nothing)
    compiled.run(state, observer)
    unbind(compiled, state, arrays_and_scalars)
    return unwritten_of(compiled, state, nothing)


def _given(
    program: Program,
    arguments: Sequence[Argument] | Mapping[str, Argument],
    symbols: Mapping[str, int],
    unwritten: Collection[int] | None,
) -> tuple[Sequence[Argument], frozenset[int]]:
    """Return all arguments in order, with workspaces, and the positions of those that hold nothing."""
    from tile_core.reference.arguments import workspaces

    own = len(program.params) - len(program.workspaces)
    if isinstance(arguments, Mapping):
        names = [p.name for p in program.params]
        arguments = [arguments[n] for n in names if n in arguments or n not in program.workspaces]
    if len(arguments) == own:
        arguments = [*arguments, *workspaces(program, arguments, symbols)]
    rounded = {i: p.dtype for i, p in enumerate(program.params) if p.kind == "scalar" and DTYPES[p.dtype].is_reduced}
    if rounded:  # elsewhere a scalar of the type is one of its container
        arguments = [round_number(x, rounded[i]) if i in rounded else x for i, x in enumerate(arguments)]
    nothing = frozenset(program.outputs if unwritten is None else unwritten)
    return arguments, nothing | frozenset(range(own, len(program.params)))


def _made(program: Program, loops: bool, observed: bool) -> Compiled:
    from tile_core.reference.program import Compiled

    key = (id(program), loops, observed)
    with _lock:
        found = _compiled.get(key)
    if found is not None and found[0] is program:
        return found[1]
    made = Compiled(program, loops, observed)
    with _lock:
        while len(_compiled) >= _MOST:
            del _compiled[next(iter(_compiled))]
        _compiled[key] = (program, made)
    return made
