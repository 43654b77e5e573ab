"""Names that TileLang spells differently, each an alias or one call of tile."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.dtypes import dtype as to_dtype
from tile_core.values.builder import current
from tile_core.values.value import Value, constant_of
from tile_tilelang.errors import BadCall, NotOfFloats
from tile_tilelang.foreign import (
    attr,
    call_extern,
    comm_reducer,
    evaluate,
    import_source,
    reinterpret,
    tvm_thread_allreduce,
    tvm_warp_shuffle,
    tvm_warp_shuffle_down,
    tvm_warp_shuffle_up,
)
from tile_tilelang.instructions import access_ptr, cp_async_barrier_noinc, ptx_cp_async
from tile_tilelang.layout import (
    make_full_bank_swizzled_layout,
    make_half_bank_swizzled_layout,
    make_linear_layout,
    make_quarter_bank_swizzled_layout,
    make_swizzled_layout,
)
from tile_tilelang.reducers import finalize_reducer, reducer_init
from tile_tilelang.schedulers import BaseTileScheduler, PersistentTileScheduler

__all__ = [
    "__ffs",
    "__ldg",
    "Cast",
    "BaseTileScheduler",
    "PersistentTileScheduler",
    "PrimExpr",
    "Var",
    "WSID",
    "WSInstr",
    "WSOpRef",
    "WSPipeline",
    "WSRole",
    "WSSchedule",
    "WSScope",
    "WSSync",
    "WSSyncKind",
    "access_ptr",
    "alloc_buffer",
    "alloc_fragment",
    "alloc_tmem",
    "atomic_load",
    "atomic_store",
    "attr",
    "ballot_sync",
    "call_extern",
    "cast",
    "comm_reducer",
    "copy",
    "cp_async_barrier_noinc",
    "empty",
    "evaluate",
    "finalize_reducer",
    "gemm",
    "get_lane_idx",
    "get_warp_group_idx",
    "get_warp_idx",
    "get_warp_idx_sync",
    "import_source",
    "likely",
    "make_full_bank_swizzled_layout",
    "make_half_bank_swizzled_layout",
    "make_linear_layout",
    "make_quarter_bank_swizzled_layout",
    "make_swizzled_layout",
    "mbarrier_wait_parity",
    "meta_class",
    "ptx_cp_async",
    "reducer_init",
    "reinterpret",
    "rng_init",
    "round",
    "shuffle_elect",
    "tcgen05_gemm",
    "thread_binding",
    "tvm_thread_allreduce",
    "tvm_warp_shuffle",
    "tvm_warp_shuffle_down",
    "tvm_warp_shuffle_up",
    "unroll",
    "ws_op",
]

#: TileLang's name -> tile's. A name that tile has itself comes first.
RENAMED = {
    "FragmentBuffer": "Buffer",
    "LocalBuffer": "Buffer",
    "Serial": "serial",
    "SharedBuffer": "Buffer",
    "Unroll": "unroll",
    "Vectorized": "vectorized",
    "WarpSpecialize": "ws",
    "inline": "macro",
    "parallel": "Parallel",
    # The approximations of CUDA; tile's functions are more accurate, or as fast under `numerics="fast"`.
    **{f"__{name}": name for name in ("cos", "exp", "exp10", "log", "log10", "log2", "sin", "tan")},
}


class WithoutEffect:
    """A description that nothing reads: every call and attribute of it is another one."""

    def __call__(self, *args: object, **keywords: object) -> WithoutEffect:
        return self

    def __getattr__(self, name: str) -> WithoutEffect:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __enter__(self) -> None:
        """Begin a block as if it had no name."""

    def __exit__(self, *error: object) -> None:
        """End the block."""


class _VarType(type):
    """Makes values of the language instances of `Var`."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Value)


class Var(metaclass=_VarType):
    """A value by a name and a type; for other types than the language's, TVM's."""

    def __new__(cls, name: str, dtype: Any = "int32", span: Any = None) -> Any:
        """Return the value."""
        made = tirx.Var(name, str(dtype))
        return Value(made, DTYPES[str(dtype)]) if str(dtype) in DTYPES else made


PrimExpr = Value

#: Schedules of roles: a program has its meaning without them, and tile chooses the roles of warps itself.
WSInstr = WSOpRef = WSPipeline = WSRole = WSSchedule = WSScope = WSSync = WSSyncKind = ws_op = WithoutEffect()
WSID = "tl.ws_op_id"

#: Accumulators of `alloc_tmem` by identity: a buffer compares by elements.
_tensor_memory: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

#: Directions of rounding by the names of instructions.
_MODES: dict[Any, Any] = {"rm": "rd", "rp": "ru", "ties-to-even": "rn", "ties-away-from-zero": "rna", "": None}


def Cast(dtype: Any, value: Any) -> Any:
    """Return ``T.cast(value, dtype)``."""
    return T.cast(value, dtype)


def cast(value: Any, dtype: Any, round: Any = None, sat: Any = None, rbits: Any = None) -> Any:
    """Return ``T.cast(value, dtype, round, sat, rbits)``; ``"rm"`` rounds down and ``"rp"`` up.

    8-bit floats saturate, as conversions of NVIDIA's compilers do.
    """
    if sat is None and _narrows(value, dtype):
        sat = True
    return T.cast(value, dtype, _MODES.get(round, round), sat, rbits)


def round(x: Any, rounding_mode: Any = "ties-to-even") -> Any:
    """Return ``T.round(x, mode)``, by default with ties to even; ``"rm"`` rounds down and ``"rp"`` up."""
    return T.round(x, _MODES.get(rounding_mode, rounding_mode))


def copy(
    src: Any, dst: Any, coalesced_width: int | None = None, *, variant: str | None = None, **hints: object
) -> None:
    """Copy by ``T.copy``; values that become 8-bit floats saturate, as in `cast`."""
    narrows = hasattr(src, "shape") and hasattr(dst, "dtype") and _narrows(src, dst.dtype)
    T.copy(cast(src, dst.dtype) if narrows else src, dst, coalesced_width=coalesced_width, variant=variant, **hints)


def alloc_buffer(shape: Any, dtype: Any = "float32", *, scope: str = "global", **hints: Any) -> Any:
    """Allocate memory of a scope, by default a workspace of the launch."""
    made = {"local": T.alloc_local, "local.fragment": T.alloc_fragment, "global": T.alloc_global}
    return made.get(scope, T.alloc_shared)(shape, dtype, scope)


def alloc_fragment(shape: Any, dtype: Any, scope: str = "local.fragment") -> Any:
    """Allocate a tile in registers; of scope ``"local"`` an array of each thread, by ``T.alloc_local``."""
    return T.alloc_local(shape, dtype) if scope == "local" else T.alloc_fragment(shape, dtype, scope)


def alloc_tmem(shape: Any, dtype: Any) -> Any:
    """Allocate an accumulator in tensor memory by ``T.alloc_tmem``, also for products of `gemm`.

    One of other than a multiple of 128 rows is a fragment, see `tcgen05_gemm`.
    """
    if len(shape) == 2 and shape[0] % 128:
        return T.alloc_fragment(shape, dtype)
    made = T.alloc_tmem(shape, dtype)
    _tensor_memory[id(made)] = made
    return made


def atomic_load(src: Any, memory_order: str = "seq_cst") -> Any:
    """Load an element atomically, in TileLang's default order."""
    return T.atomic_load(src, memory_order)


def atomic_store(dst: Any, value: Any, memory_order: str = "seq_cst") -> None:
    """Store an element atomically, in TileLang's default order."""
    T.atomic_store(dst, value, memory_order)


def ballot_sync(condition: Any) -> Any:
    """Return ``T.ballot(condition)``."""
    return T.ballot(condition)


def empty(*shape: Any, dtype: Any = "float32") -> Any:
    """Declare an output of an eager kernel: ``T.empty((M, N), dtype)``, or ``T.empty(M, N, dtype=dtype)``."""
    if shape and isinstance(shape[0], (tuple, list)):
        return T.empty(shape[0], *(shape[1:] or (dtype,)))
    return T.empty(shape, dtype)


def gemm(*operands: Any, mbar: Any = None, **keywords: Any) -> None:
    """Multiply by ``T.gemm``; with ``mbar`` or into tensor memory by ``T.tcgen05_gemm``, which arrives at ``mbar``."""
    accumulator = _accumulator(operands, keywords)
    if mbar is None and id(accumulator) not in _tensor_memory:
        T.gemm(*operands, **keywords)
    else:
        hints = {"annotations", "prefer_instruction", "wg_wait"}
        tcgen05_gemm(*operands, mbar=mbar, **{k: v for k, v in keywords.items() if k not in hints})


def __ffs(value: Any) -> Any:
    """Return the position of the lowest set bit, from 1; 0 without one."""
    return T.if_then_else(value == 0, 0, T.cast(T.popcount(value ^ (value - 1)), "int32"))


def get_lane_idx(warp_size: Any = None) -> Any:
    """Return ``T.get_lane_idx()``, or the index in a group of another size."""
    return T.get_lane_idx() if warp_size is None else T.get_thread_binding() % warp_size


def get_warp_idx(warp_size: Any = None) -> Any:
    """Return the same as `get_warp_idx_sync`."""
    return get_warp_idx_sync(warp_size)


def get_warp_idx_sync(warp_size: Any = None) -> Any:
    """Return ``T.get_warp_idx()``, or the index among groups of another size."""
    return T.get_warp_idx() if warp_size is None else T.get_thread_binding() // warp_size


def get_warp_group_idx(warp_size: Any = None, warps_per_group: int = 4) -> Any:
    """Return the index of this thread's group of four warps, or of another number."""
    return get_warp_idx_sync(warp_size) // (4 if warps_per_group is None else warps_per_group)


def rng_init(seed: Any, seq: Any = None, off: Any = 0, generator: Any = None) -> None:
    """Start a generator by ``T.rng_init``; without a sequence, one of its own for each thread."""
    if seq is None:
        threads = (*(current("T.rng_init").threads or ()), 1)[0]
        seq = T.get_thread_binding() + T.get_block_binding() * threads
    T.rng_init(seed, seq, off, generator)


def shuffle_elect(thread_extent: int) -> Any:
    """Return whether this thread is the first of its group; with 0, of the block."""
    thread = T.get_thread_binding()
    return (thread if thread_extent == 0 else thread % thread_extent) == 0


def likely(condition: Any, span: Any = None) -> Any:
    """Return the condition; which side is likely is a hint."""
    return condition


def mbarrier_wait_parity(barrier: Any, parity: Any) -> None:
    """Wait by ``T.mbarrier_wait_parity``; in ``T.Pipelined``, whose barriers tile makes, where the data is used."""
    if not _in_pipeline():
        T.mbarrier_wait_parity(barrier, parity)


def tcgen05_gemm(*operands: Any, mbar: Any = None, use_2cta: bool = False, **keywords: Any) -> None:
    """Multiply by ``T.tcgen05_gemm``; in ``T.Pipelined`` tile waits for products, so that ``mbar`` has no meaning.

    A product of other than a multiple of 128 rows, which it does not have, into a fragment is ``T.gemm``; one thread
    arrives behind it.

    Raises
    ------
    BadCall
        For ``use_2cta=True``.
    """
    if use_2cta:
        instead = "leave it out: each block multiplies for itself"
        raise BadCall(function="T.tcgen05_gemm", name="use_2cta", found="True", expected="False", instead=instead)
    accumulator, at = _accumulator(operands, keywords), None if _in_pipeline() else mbar
    if accumulator is not None and accumulator.scope == "local.fragment" and accumulator.shape[0] % 128:
        T.gemm(*operands, **keywords)
        if at is not None:
            _arrived(at)
    else:
        T.tcgen05_gemm(*operands, mbar=at, **keywords)


@T.macro
def _arrived(barrier: Any) -> None:
    if T.get_thread_binding() == 0:
        T.mbarrier_arrive(barrier)


def _accumulator(operands: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the buffer that a product adds to, if it is given."""
    found = keywords.get("C", operands[2] if len(operands) > 2 else None)
    return getattr(found, "buffer", found)


def _narrows(value: Any, dtype: Any) -> bool:
    """Return whether floats become 8-bit floats, which saturate there."""
    to, found = to_dtype(dtype), getattr(value, "dtype", "float32" if isinstance(value, float) else None)
    return found is not None and to.is_float and to.bits == 8 and to_dtype(found).is_float and to_dtype(found).bits > 8


def _in_pipeline() -> bool:
    return any(scope.loop == "Pipelined" for scope in current("T.Pipelined").scope.ancestors())


def thread_binding(start: Any, stop: Any = None, thread: str = "threadIdx.x", **hints: Any) -> _BoundIndex:
    """Return the index of a thread or block.

    ``for t in T.thread_binding(0, n, thread=...)`` names it as well.

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
    index: Any = bindings[kind](axis)
    return _BoundIndex(index)


class _BoundIndex(Value):
    """The index of a thread or block, which a loop names."""

    def __init__(self, index: Value) -> None:
        super().__init__(index.expr, index.dtype)

    def __iter__(self) -> Iterator[Value]:  # type: ignore[override]
        yield Value(self.expr, self.dtype)


def __ldg(buffer: Any, index: Any = None) -> Any:
    """Return an element of memory that the kernel does not write."""
    return buffer if index is None else buffer[index]


def unroll(start: Any, stop: Any = None, step: Any = 1, *, explicit: bool = False, unroll_factor: Any = None) -> Any:
    """Iterate by ``T.unroll``; four at a time if the trip count is a runtime value."""
    bounds = (start,) if stop is None else (start, stop)
    if unroll_factor is None and any(constant_of(bound) is None for bound in bounds):
        unroll_factor = 4
    return T.unroll(start, stop, step, explicit=explicit, unroll_factor=unroll_factor)


def meta_class(cls: type) -> type:
    """Return a class as it is: its methods are traced where a kernel calls them."""
    return cls


def without_meaning(name: str) -> Callable[..., None]:
    """Return a call that does nothing, for a hint of `tile_tilelang.words.HINTS`."""

    def hint(*args: object, **keywords: object) -> None:
        return None

    hint.__name__ = name
    return hint


def into_variable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reduction that also writes scalar variables of ``T.alloc_var``."""

    @functools.wraps(function)
    def call(buffer: Any, out: Any, *args: Any, **keywords: Any) -> None:
        if getattr(out, "scope", "") != "local.var":
            function(buffer, out, *args, **keywords)
            return
        element = T.alloc_local((1,), out.dtype)
        if not keywords.get("clear", args[1] if len(args) > 1 else True):
            element[0] = out.value()
        function(buffer, element, *args, **keywords)
        out[0] = element[0]

    return call


def of_floats(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that refuses integers and 8-bit floats, whose results have another type there."""

    @functools.wraps(function)
    def call(x: Any) -> Any:
        found = to_dtype(getattr(x, "dtype", "int32" if isinstance(x, int) else "float32"))
        if not found.is_float or found.bits < 16:
            raise NotOfFloats(name=name, found=str(found))
        return function(x)

    return call


def saturating(launch: Callable[..., Any]) -> Callable[..., Any]:
    """Return a launch in which values stored as 8-bit floats saturate, as in `cast`."""

    @functools.wraps(launch, updated=())
    def call(*args: Any, **keywords: Any) -> Any:
        current("T.Kernel").saturates = True
        return launch(*args, **keywords)

    return call


def tolerant(function: Callable[..., Any], dropped: Mapping[str, str]) -> Callable[..., Any]:
    """Return a function that leaves out some keywords, for `tile_tilelang.words.KEYWORDS`."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        return function(*args, **{k: v for k, v in keywords.items() if k not in dropped})

    return call
