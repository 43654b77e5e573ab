"""Check the barriers, copies and waits of emitted kernels for several trip counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import product
from math import gcd
from types import CodeType
from typing import Any

from tile_core.errors.lowering import UnprovenBarriers
from tile_core.ir import nodes
from tile_core.ir.program import cluster_of
from tile_core.simt.barrier_proof.agent import TooLong
from tile_core.simt.barrier_proof.execution import KernelExecution, Unordered, complete, shortened
from tile_core.simt.barrier_proof.expressions import Untranslated
from tile_core.simt.barrier_proof.instructions import AsyncInstructions
from tile_core.simt.barrier_proof.translation import Translated, translate
from tile_core.simt.barrier_proof.warp_classes import WarpClasses
from tile_core.simt.kernel_plan import KernelPlan

#: Trip counts, the largest value of a symbol that is tried for them, and executions at most.
_COUNTS = (0, 1, 2, 3, 4, 5, 8)
_LARGEST = 1200
_MOST = 8
_FEW = 3
#: Greatest values of elements of global memory that differ.
_DIFFERENT = (3, 1 << 13)
#: What a construct can raise that the translation does not foresee: the proof then does not cover the kernel.
_UNFORESEEN = (ArithmeticError, AttributeError, LookupError, NameError, RecursionError, TypeError, ValueError)


def check_emitted(plan: KernelPlan, instructions: AsyncInstructions) -> str:
    """Check a kernel as it is printed; return a reason if it is not covered.

    Raises
    ------
    UnprovenBarriers
        If it is wrong.
    """
    try:
        rings = {r.name for x in plan.pipeline.loops if x.schedule is not None for r in x.schedule.rings}
        kernel = translate(plan.body, instructions, plan.block.count, rings)
        if kernel is None:
            return ""
        cluster = cluster_of(plan.program.attrs)
        grid = tuple(n if isinstance(n, int) else 0 for n in map(nodes.as_int, plan.grid.extents))
        found = _found(kernel, plan.block.count, tuple(cluster), grid)
    except Untranslated as e:
        return str(e)
    except _UNFORESEEN as e:
        return f"{type(e).__name__}: {e}"
    if isinstance(found, Unordered):
        facts = {"kernel": plan.program.name, "role": found.role, "barrier": found.what, "step": found.step}
        raise UnprovenBarriers(**facts, reason=found.reason, where=plan.program.where)
    return found


@lru_cache(maxsize=256)
def _found(kernel: Translated, threads: int, cluster: tuple[int, ...], grid: tuple[int, ...]) -> Unordered | str:
    """Execute a kernel; return the mistake, or a reason why it is not covered."""
    code = compile(kernel.text, "<barrier proof>", "exec")
    classes = WarpClasses(kernel, threads)
    try:
        try:
            _execute(kernel, code, shortened, classes, cluster, grid)
        except Unordered:
            if "trips(" not in kernel.text:
                raise
            # Loops of roles may correspond in another way than by the numbers of iterations.
            _execute(kernel, code, complete, classes, cluster, grid)
    except Unordered as e:
        return e
    except TooLong:
        return "an execution takes too long"
    return ""


def _execute(
    kernel: Translated, code: CodeType, trips: Callable[..., Iterator[int]], classes: WarpClasses,
    cluster: tuple[int, ...], grid: tuple[int, ...],
) -> None:  # fmt: skip
    """Execute a kernel for all values of its symbols."""
    namespace: dict[str, Any] = {"trips": trips, "gcd": gcd}
    exec(code, namespace)
    values = _distinct(kernel, _values(kernel, cluster, grid))
    for blocks, number in values:
        KernelExecution(kernel, namespace["program"], classes, blocks, lambda name, *at, n=number: n).go()
    # Conditions and trip counts that are data differ from one execution of a loop to the next.
    for most in _DIFFERENT if "data(" in kernel.text else ():
        for blocks, _ in values[:1]:
            try:
                KernelExecution(kernel, namespace["program"], classes, blocks, _mixed(most)).go()
            except TooLong:
                continue


def _mixed(most: int) -> Callable[..., int]:
    """Return elements of global memory that differ, from 0 to a greatest value."""
    return lambda name, *at: sum((n + 1) * x for n, x in enumerate((len(name), *at), 3)) * 40503 // 7 % (most + 1)


def _values(
    kernel: Translated, cluster: tuple[int, ...], grid: tuple[int, ...]
) -> Iterator[tuple[list[dict[str, int]], int]]:  # fmt: skip
    """Yield values of symbols in each block, and of elements of global memory."""
    axes = [n for n in range(3) if f"block{n}" in kernel.symbols]
    sizes = [(cluster[n], (grid[n] if n < len(grid) else 1) or 2 * cluster[n]) for n in range(3)]
    ends = [sorted({0, (sizes[n][1] // sizes[n][0] - 1) * sizes[n][0]}) if n in axes else [0] for n in range(3)]
    bases = [tuple(e[0] for e in ends), tuple(e[-1] for e in ends)]
    ranks = [at[::-1] for at in product(*(range(n) for n in cluster[::-1]))]
    for number in _numbers(kernel):
        # A block whose loops have few iterations, if they depend on its number.
        near = tuple(min(number // cluster[n] * cluster[n], ends[n][-1]) if n in axes else 0 for n in range(3))
        for base in dict.fromkeys((*bases, near)):
            given = dict.fromkeys(kernel.symbols, number)
            if base != bases[0] and not _ends_early(kernel, given | {f"block{n}": base[n] for n in range(3)}):
                continue
            yield [given | {f"block{n}": base[n] + rank[n] for n in range(3)} for rank in ranks], number


def _distinct(
    kernel: Translated, values: Iterable[tuple[list[dict[str, int]], int]]
) -> list[tuple[list[dict[str, int]], int]]:  # fmt: skip
    """Return values without repetitions of the symbols and elements that the kernel reads."""
    found: dict[tuple[Any, ...], tuple[list[dict[str, int]], int]] = {}
    for blocks, number in values:
        symbols = tuple(values[s] for values in blocks for s in kernel.symbols)
        found.setdefault((symbols, number if "data(" in kernel.text else None), (blocks, number))
    return list(found.values())


def _ends_early(kernel: Translated, given: dict[str, int]) -> bool:
    """Whether a loop has fewer iterations than others show."""
    return any(eval(x, dict(given, data=lambda name, *at: 64)) < _FEW for x in kernel.extents)


def _numbers(kernel: Translated) -> list[int]:
    """Return values of symbols for which loops have few iterations, each number of them once."""
    chosen: dict[int, None] = {}
    for extent in kernel.extents:
        same = " ".join(f"for {s} in (n,)" for s in kernel.symbols)
        text = f"[{extent} for n in range({_LARGEST}) {same}]"
        counts = eval(text, {"data": lambda name, *at: 64})
        chosen |= dict.fromkeys(counts.index(c) for c in _COUNTS if c in counts)
    return list(chosen)[:_MOST] if chosen else [64]
