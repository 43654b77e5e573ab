"""Names that TileLang spells differently, each an alias or one call of tile."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import tile_core.language as T
from tile_core.values.builder import current
from tile_tilelang.errors import BadCall
from tile_tilelang.layout import (
    make_full_bank_swizzled_layout,
    make_half_bank_swizzled_layout,
    make_linear_layout,
    make_quarter_bank_swizzled_layout,
    make_swizzled_layout,
)

__all__ = [
    "Cast",
    "atomic_load",
    "atomic_store",
    "cast",
    "empty",
    "gemm",
    "make_full_bank_swizzled_layout",
    "make_half_bank_swizzled_layout",
    "make_linear_layout",
    "make_quarter_bank_swizzled_layout",
    "make_swizzled_layout",
    "mbarrier_wait_parity",
    "round",
    "tcgen05_gemm",
    "thread_binding",
]

#: TileLang's name -> tile's. A name that tile has itself comes first.
RENAMED = {
    "FragmentBuffer": "Buffer",
    "LocalBuffer": "Buffer",
    "Serial": "serial",
    "SharedBuffer": "Buffer",
    "Unroll": "unroll",
    "Vectorized": "vectorized",
    "parallel": "Parallel",
}

#: Directions of rounding by the names of instructions.
_MODES = {"rm": "rd", "rp": "ru"}


def Cast(dtype: Any, value: Any) -> Any:
    """Return ``T.cast(value, dtype)``."""
    return T.cast(value, dtype)


def cast(value: Any, dtype: Any, round: Any = None, sat: Any = None, rbits: Any = None) -> Any:
    """Return ``T.cast(value, dtype, round, sat, rbits)``; ``"rm"`` rounds down and ``"rp"`` up."""
    return T.cast(value, dtype, _MODES.get(round, round), sat, rbits)


def round(x: Any, mode: Any = "rna") -> Any:
    """Return ``T.round(x, mode)``; ``"rm"`` rounds down and ``"rp"`` up."""
    return T.round(x, _MODES.get(mode, mode))


def atomic_load(src: Any, memory_order: str = "seq_cst") -> Any:
    """Load an element atomically, in TileLang's default order."""
    return T.atomic_load(src, memory_order)


def atomic_store(dst: Any, value: Any, memory_order: str = "seq_cst") -> None:
    """Store an element atomically, in TileLang's default order."""
    T.atomic_store(dst, value, memory_order)


def empty(*shape: Any, dtype: Any = "float32") -> Any:
    """Declare an output of an eager kernel: ``T.empty((M, N), dtype)``, or ``T.empty(M, N, dtype=dtype)``."""
    if shape and isinstance(shape[0], (tuple, list)):
        return T.empty(shape[0], *(shape[1:] or (dtype,)))
    return T.empty(shape, dtype)


def gemm(*operands: Any, mbar: Any = None, **keywords: Any) -> None:
    """Multiply by ``T.gemm``; with ``mbar`` by ``T.tcgen05_gemm``, which arrives there when it is complete."""
    if mbar is None:
        T.gemm(*operands, **keywords)
    else:
        keywords.pop("wg_wait", None)
        tcgen05_gemm(*operands, mbar=mbar, **keywords)


def mbarrier_wait_parity(barrier: Any, parity: Any) -> None:
    """Wait by ``T.mbarrier_wait_parity``; in ``T.Pipelined``, whose barriers tile makes, where the data is used."""
    if not _in_pipeline():
        T.mbarrier_wait_parity(barrier, parity)


def tcgen05_gemm(*operands: Any, mbar: Any = None, use_2cta: bool = False, **keywords: Any) -> None:
    """Multiply by ``T.tcgen05_gemm``; in ``T.Pipelined`` tile waits for products, so that ``mbar`` has no meaning.

    Raises
    ------
    BadCall
        For ``use_2cta=True``.
    """
    if use_2cta:
        instead = "leave it out: each block multiplies for itself"
        raise BadCall(function="T.tcgen05_gemm", name="use_2cta", found="True", expected="False", instead=instead)
    T.tcgen05_gemm(*operands, mbar=None if _in_pipeline() else mbar, **keywords)


def _in_pipeline() -> bool:
    return any(scope.loop == "Pipelined" for scope in current("T.Pipelined").scope.ancestors())


def thread_binding(start: Any, stop: Any = None, thread: str = "threadIdx.x", **hints: Any) -> list[Any]:
    """Return the index of a thread or block.

    It is named by ``for t in T.thread_binding(0, n, thread=...)``.

    Parameters
    ----------
    start, stop
        0 and the number of threads of the axis; or that number alone.
    thread
        ``threadIdx`` or ``blockIdx``, with ``.x``, ``.y`` or ``.z``.
    **hints
        ``annotations``; of no effect.

    Raises
    ------
    BadCall
        For another name, or another number than the launch has.
    """
    kind, _, letter = thread.partition(".")
    axis = "xyz".find(letter or "?")
    bindings = {"threadIdx": T.get_thread_binding, "blockIdx": T.get_block_binding}
    if kind not in bindings or axis < 0:
        expected, instead = "threadIdx.x and the like", "write T.get_thread_binding(0)"
        raise BadCall(
            function="T.thread_binding", name="thread", found=repr(thread), expected=expected, instead=instead
        )
    first, count = (0, start) if stop is None else (start, stop)
    threads = (*(current("T.thread_binding").threads or ()), 1, 1, 1)
    if kind == "threadIdx" and (first != 0 or count != threads[axis]):
        expected = f"0, {threads[axis]}, the number of T.Kernel(threads=...)"
        instead = "launch T.Kernel with this number of threads, and test the index where fewer take part"
        found = f"{first}, {count}"
        raise BadCall(function="T.thread_binding", name="the range", found=found, expected=expected, instead=instead)
    return [bindings[kind](axis)]


def without_meaning(name: str) -> Callable[..., None]:
    """Return a call that does nothing, for a hint of `tile_tilelang.words.HINTS`."""

    def hint(*args: object, **keywords: object) -> None:
        return None

    hint.__name__ = name
    return hint


def tolerant(function: Callable[..., Any], dropped: Mapping[str, str]) -> Callable[..., Any]:
    """Return a function that leaves out some keywords, for `tile_tilelang.words.KEYWORDS`."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        return function(*args, **{k: v for k, v in keywords.items() if k not in dropped})

    return call
