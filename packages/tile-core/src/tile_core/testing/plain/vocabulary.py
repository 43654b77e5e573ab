"""The names of ``T`` in plain Python."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from tile_core.compat.types import DTypeLike
from tile_core.dtypes import DTYPES
from tile_core.testing.plain import rare, tiles
from tile_core.testing.plain.memory import Memory, Variable, allocate
from tile_core.testing.plain.numbers import (
    BITS,
    Computed,
    Illegal,
    Number,
    arith,
    convert,
    extreme,
    fit,
    is_float,
    number,
    pair,
    shift,
)
from tile_core.testing.plain.random import Sequences
from tile_core.testing.plain.roundings import rounded
from tile_runtime.dtype_table import WORDS

_HINTS = (
    "use_swizzle", "annotate_layout", "annotate_l2_hit_ratio", "assume", "device_assert", "print",
)  # fmt: skip

_RANDOM = ("philox", "uniform_of", "normal_of", "rng_init", "rng_rand", "rng_rand_float")
_BARRIERS = (
    "sync_threads", "barrier_arrive", "barrier_wait", "cluster_arrive", "cluster_arrive_relaxed", "cluster_wait",
    "cluster_sync",
)  # fmt: skip
_LAYOUTS = ("alloc_barrier", "Layout", "Fragment", "GemmWarpPolicy")

#: Functions of one float.
UNARY: dict[str, Any] = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.float64(10.0) ** x, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "cbrt": np.cbrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)), "erf": lambda x: math.erf(x), "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "nearbyint": np.rint, "rint": np.rint,
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)) if abs(x) < 2.0**52 else x,
}  # fmt: skip
#: Functions of two floats.
BINARY: dict[str, Any] = {
    "atan2": np.arctan2, "hypot": np.hypot, "copysign": np.copysign, "fmod": np.fmod,

}  # fmt: skip
_INTEGER = {
    "floordiv": "//", "floormod": "%", "ceildiv": "ceil", "truncdiv": "truncdiv", "truncmod": "truncmod",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
}  # fmt: skip
_PREDICATES = {"isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite}


class Grid:
    """A launch: extents of the grid and threads of a block."""

    def __init__(self, *extents: Any, threads: Any = 128, cluster_dims: Any = 1, **rest: object) -> None:
        self.cluster = tuple(cluster_dims) if isinstance(cluster_dims, (tuple, list)) else (int(cluster_dims),)
        self.extents = [max(0, int(e)) for e in extents] or [1]
        self.named = len(extents)
        self.threads = tuple(threads) if isinstance(threads, (tuple, list)) else (int(threads),)


class Ignored:
    """Names without effect here: layouts, policies and barriers."""

    def __getattr__(self, name: str) -> Any:
        """Return itself."""
        return self

    def __call__(self, *args: Any, **words: object) -> Any:
        """Return itself."""
        return self

    def __getitem__(self, index: Any) -> Any:
        """Return itself."""
        return self


class Schedule:
    """The tiles of a block as a state."""

    def __init__(self, rows: int, columns: int, wave: int, first: int) -> None:
        self.tiles = [(i, j) for i in range(rows) for j in range(columns)][first::wave]

    def valid(self) -> bool:
        """Return whether there is a tile left."""
        return bool(self.tiles)

    @property
    def m_idx(self) -> Number:
        """Row of the tile."""
        return Number(self.tiles[0][0], "int32")

    @property
    def n_idx(self) -> Number:
        """Column of the tile."""
        return Number(self.tiles[0][1], "int32")

    def next_tile(self) -> None:
        """Go on."""
        self.tiles = self.tiles[1:]


class Language:
    """``T`` in plain Python: the state of a launch and the names."""

    Kernel = ClusterKernel = Grid

    def __init__(self, sizes: dict[str, int], lanes: int = 32, names: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.sizes, self.lanes, self.names = sizes, lanes, names
        self.block: tuple[int, ...] = ()
        self.cluster: tuple[int, ...] = (1,)
        self.blocks = 1
        self.threads: tuple[int, ...] = (1,)
        self.thread = 0
        self.shared: list[Memory] = []
        self.made: dict[int, int] = {}
        self.random = Sequences()

    def begin(self, block: tuple[int, ...], threads: tuple[int, ...]) -> None:
        """Begin a block."""
        self.block, self.threads, self.thread, self.shared, self.made = block, threads, 0, [], {}

    def enter(self, thread: int) -> None:
        """Go on as a thread."""
        self.thread = self.random.thread = thread

    def __getattr__(self, name: str) -> Any:
        """Return the definition of most names: types, hints, functions, tile ops."""
        if name in DTYPES:
            return name
        if name in WORDS:
            return WORDS[name]
        if name in _LAYOUTS:
            return Ignored()
        if name in _HINTS or name in _BARRIERS:
            return lambda *a, **k: None
        if name in _INTEGER:
            return lambda a, b: _integral(_INTEGER[name], a, b)
        if name in UNARY:
            return lambda x: _floating(UNARY[name], x)
        if name in BINARY:
            return lambda x, y: _floating(BINARY[name], x, y)
        if name in _PREDICATES:
            return lambda x: Number(bool(_PREDICATES[name](float(number(x).value))), "bool")
        if name in _RANDOM:
            return getattr(self.random, name)
        if name in tiles.OPS or name in rare.OPS:
            return tiles.OPS.get(name) or rare.OPS[name]
        if name in self.names:
            return getattr(self, self.names[name]) if isinstance(self.names[name], str) else self.names[name]
        raise AttributeError(name)

    def dtype(self, x: Computed) -> str:
        """Return the name of an element type."""
        return str(x)

    # Sizes, memory

    def dynamic(self, names: str, dtype: str = "int32") -> Any:
        """Return the sizes of the launch."""
        found = tuple(convert(self.sizes[n.strip()], dtype) for n in names.split(","))
        return found[0] if len(found) == 1 else found

    symbolic = dynamic

    def alloc_shared(self, shape: tuple[int, ...], dtype: DTypeLike, *rest: object, **words: object) -> Memory:
        """Return memory that the threads of the block share."""
        n = self.made.get(self.thread, 0)
        self.made[self.thread] = n + 1
        if n == len(self.shared):
            self.shared.append(allocate(shape, str(dtype), "shared"))
        return self.shared[n]

    alloc_fragment = alloc_shared

    def make_tensor(
        self, pointer: Memory, shape: Any, dtype: DTypeLike = None, strides: Any = None, align: int | None = None
    ) -> Memory:
        """Return a tensor where another one begins."""
        dims = [int(d) for d in shape]
        flat = pointer.data.reshape(-1)
        if strides is not None:
            steps = [int(s) * flat.itemsize for s in strides]
            return Memory(np.lib.stride_tricks.as_strided(flat, dims, steps), pointer.dtype, "global")
        return Memory(flat[: math.prod(dims)].reshape(dims), pointer.dtype, "global")

    def alloc_global(self, shape: tuple[int, ...], dtype: DTypeLike, *rest: object, **words: object) -> Memory:
        """Return memory of all blocks and launches."""
        return allocate(shape, str(dtype), "global")

    def alloc_local(self, shape: tuple[int, ...], dtype: DTypeLike, *rest: object, **words: object) -> Memory:
        """Return memory of the thread."""
        return allocate(shape, str(dtype), "local")

    def alloc_var(self, dtype: DTypeLike, first: Any = 0, *, init: Computed | None = None, **words: object) -> Variable:
        """Return a variable."""
        return Variable(str(dtype), first if init is None else init)

    def alloc_reducer(self, shape: tuple[int, ...], dtype: DTypeLike, op: str = "sum", **words: object) -> Memory:
        """Return a tile that starts as the neutral element."""
        made = self.alloc_shared(shape, dtype)
        made.operation = op
        self.reducer_init(made)
        return made

    def reducer_init(self, made: Memory) -> None:
        """Let every element of a reducer be the neutral one."""
        low, high = self.min_value(made.dtype).value, self.max_value(made.dtype).value
        if is_float(made.dtype):
            low, high = -math.inf, math.inf
        ones = high if low == 0 else -1
        every = {"sum": 0, "max": low, "min": high, "bitand": ones, "bitor": 0, "bitxor": 0}
        made.data[...] = every[made.operation]

    def reducer_update(self, element: Any, value: Any) -> None:
        """Combine an element with a value."""
        made, at = element.element
        kind, own = made.operation, convert(value, made.dtype)
        if kind in ("max", "min"):
            made[at] = extreme(element, own, 1 if kind == "max" else -1, False)
        else:
            other = value if kind == "sum" else own
            made[at] = arith({"sum": "+", "bitand": "&", "bitor": "|", "bitxor": "^"}[kind], element, other)

    def finalize_reducer(self, made: Memory, dst: Any = None, batch: int = 1) -> None:
        """End an epoch."""
        if dst is not None and not isinstance(dst, int):
            tiles.OPS["copy"](made, dst)

    def annotate_safe_value(self, fills: Any) -> None:
        """Set the value of reads outside of a tensor."""
        for memory, value in fills.items():
            memory.outside = value

    # Loops

    def serial(self, start: Computed, stop: Computed | None = None, step: int = 1, **words: object) -> Any:
        """Return the numbers of a loop."""
        bounds = [number(start), *([number(stop)] if stop is not None else [])]
        dtype = _counted_in(bounds)
        numbers = range(*(int(b) for b in bounds), *([step] if len(bounds) == 2 else []))
        return (convert(i, dtype) for i in numbers)  # possibly billions, evaluated lazily

    unroll = vectorized = serial

    def Pipelined(self, start: Computed, stop: Computed | None = None, num_stages: int = 0, **words: object) -> Any:
        """Return the numbers of a pipelined loop."""
        return self.serial(start, stop)

    def Parallel(self, *extents: Any, **words: object) -> Any:
        """Return the points of a domain in row-major order."""
        points = product(*(range(int(e)) for e in extents))
        dtype = _counted_in([number(e) for e in extents])
        made = (tuple(Number(i, dtype) for i in p) for p in points)
        return [p[0] for p in made] if len(extents) == 1 else list(made)

    grid = Parallel

    def static_range(self, *bounds: Any) -> range:
        """Return Python's range."""
        return range(*(int(b) for b in bounds))

    def PersistentTileScheduler(self, m_tiles: Any, n_tiles: Any, wave_size: Any = None, index: Any = None,
                                group_size: int = 8) -> Schedule:  # fmt: skip
        """Return the tiles of one block, one at a time."""
        wave = self.blocks if wave_size is None else int(wave_size)
        first = self.block[0] if index is None else int(index)
        return Schedule(max(int(m_tiles), 0), max(int(n_tiles), 0), wave, first)

    def Persistent(self, domain: Any, wave: Any, index: Any, group_size: int = 8) -> Any:
        """Return the tiles of one block."""
        every = list(product(*(range(int(d)) for d in domain)))
        mine = [tuple(Number(i, "int32") for i in p) for p in every[int(index) :: int(wave)]]
        return [p[0] for p in mine] if len(domain) == 1 else mine

    # Threads

    def get_thread_binding(self, dim: int = 0) -> Number:
        """Return the number of the thread along an axis."""
        dims = (*self.threads, 1, 1)[:3]
        below = math.prod(dims[:dim])
        return Number(self.thread // below % dims[dim], "int32")

    def get_thread_bindings(self) -> tuple[Number, ...]:
        """Return the three numbers of the thread."""
        return tuple(self.get_thread_binding(d) for d in range(3))

    def get_block_binding(self, dim: int = 0) -> Number:
        """Return the number of the block along an axis."""
        return Number((*self.block, 0, 0)[dim], "int32")

    def get_block_bindings(self) -> tuple[Number, ...]:
        """Return the three numbers of the block."""
        return tuple(self.get_block_binding(d) for d in range(3))

    def cluster_size(self) -> int:
        """Return the blocks of a cluster."""
        return math.prod(self.cluster)

    def block_rank_in_cluster(self) -> Number:
        """Return the number of the block in its cluster."""
        rank, step = 0, 1
        for at, size in zip(self.block, self.cluster, strict=False):
            rank, step = rank + at % size * step, step * size
        return Number(rank, "int32")

    def get_lane_idx(self) -> Number:
        """Return the number of the thread in its warp."""
        return Number(self.thread % self.lanes, "int32")

    def get_warp_idx(self) -> Number:
        """Return the number of the warp."""
        return Number(self.thread // self.lanes, "int32")

    # Scalars

    def cast(self, x: Computed, dtype: DTypeLike, round: Any = None, sat: Any = None, rbits: Any = None) -> Number:
        """Return a value as another type; a Python number must fit."""
        if round is not None or sat is not None:
            return rounded(x, dtype, round, sat, rbits)
        if type(x) is int and str(dtype) in BITS and fit(x, str(dtype)) != x:
            raise Illegal(f"{x} does not fit {dtype}")
        return convert(x if isinstance(x, (int, float)) else number(x), str(dtype))

    def round(self, x: Any, mode: str = "rna") -> Number:
        """Return a float rounded to an integer."""
        function = {"rna": "round", "rn": "rint", "rz": "trunc", "ru": "ceil", "rd": "floor"}[mode]
        return _floating(UNARY[function], x)

    def reinterpret(self, x: Computed, dtype: DTypeLike) -> Number:
        """Return the bits of a value as another type."""
        x = number(x)
        raw = np.array([x.value], DTYPES[x.dtype].numpy()).view(DTYPES[str(dtype)].numpy())[0]
        return Number(float(raw) if is_float(str(dtype)) else int(raw), str(dtype))

    def align_up(self, a: Computed, b: Computed) -> Any:
        """Return the next multiple."""
        return self.ceildiv(a, b) * b

    def abs(self, x: Any) -> Computed:
        """Return the size."""
        return abs(x)

    def max(self, a: Computed, *more: Computed, nan_propagate: bool = False) -> Computed:
        """Return the greatest; numbers beat NaN."""
        for b in more:
            a = extreme(a, b, 1, nan_propagate)
        return a

    def min(self, a: Computed, *more: Computed, nan_propagate: bool = False) -> Computed:
        """Return the least; numbers beat NaN."""
        for b in more:
            a = extreme(a, b, -1, nan_propagate)
        return a

    def clamp(self, x: Computed, min_val: Any = None, max_val: Any = None) -> Computed:
        """Clamp a value: raise it to one limit, lower it to another.

        Of equal values the first stays.
        """
        limits = [(limit, sign) for limit, sign in ((min_val, -1), (max_val, 1)) if limit is not None]
        known = all(isinstance(v, (int, float)) for v in (x, *(limit for limit, _ in limits)))
        for limit, sign in limits:
            value, other = (x, limit) if known else pair(x, limit)
            x = other if (value < other if sign < 0 else value > other) else value
        return x

    def fma(self, a: Computed, b: Computed, c: Computed) -> Computed:
        """Return a product and a sum."""
        return a * b + c

    def if_then_else(self, condition: Computed, a: Computed, b: Computed) -> Computed:
        """Return one of two values in their common type."""
        if isinstance(condition, bool):
            return a if condition else b
        x, y = pair(a, b)
        return x if condition else y

    Select = if_then_else

    def any_of(self, *conditions: Any) -> Number:
        """Return whether one holds."""
        return Number(any(bool(c) for c in conditions), "bool")

    def all_of(self, *conditions: Any) -> Number:
        """Return whether all hold."""
        return Number(all(bool(c) for c in conditions), "bool")

    def truth(self, x: Any) -> Any:
        """Return whether a number is not zero, as a number; Python's values as they are."""
        return convert(x, "bool") if isinstance(x, Number) else x

    def negation(self, x: Any) -> Any:
        """Return ``not x``: of a number a number."""
        return Number(not x, "bool") if isinstance(x, Number) else not x

    def shift_left(self, a: Computed, b: Computed) -> Computed:
        """Return a shift."""
        return a << b if type(a) is int and type(b) is int else shift("<<", a, b)

    def shift_right(self, a: Computed, b: Computed) -> Computed:
        """Return a shift."""
        return a >> b if type(a) is int and type(b) is int else shift(">>", a, b)

    def bitwise_not(self, a: Any) -> Computed:
        """Return all bits exchanged."""
        return ~a

    def pow(self, x: Computed, y: Computed) -> Computed:
        """Return a power: of a constant exponent by products."""
        return number(x) ** y if isinstance(y, int) and y >= 0 else _floating(np.power, x, y)

    power = pow

    def popcount(self, x: Computed) -> Computed:
        """Return the number of bits that are 1; for a Python int a Python int."""
        if type(x) is int:
            if x < 0:
                raise Illegal("the bits of a negative Python int")
            return x.bit_count()
        x = number(x)
        return Number(bin(int(x.value) & ((1 << BITS.get(x.dtype, 1)) - 1)).count("1"), "int32")

    def infinity(self, dtype: DTypeLike) -> Number:
        """Return an infinity."""
        return Number(math.inf, str(dtype))

    def max_value(self, dtype: DTypeLike) -> Number:
        """Return the greatest finite value."""
        return _limit(str(dtype), 1)

    def min_value(self, dtype: DTypeLike) -> Number:
        """Return the least finite value."""
        return _limit(str(dtype), -1)

    def nextafter(self, x: Computed, y: Any) -> Number:
        """Return the next value of the type."""
        a, b = pair(x, y)
        kind = DTYPES[a.dtype].numpy()
        return Number(float(np.nextafter(kind.type(a.value), kind.type(b.value))), a.dtype)


def _counted_in(bounds: list[Number]) -> str:
    return "int64" if any(b.dtype in ("int64", "uint64", "uint32") for b in bounds) else "int32"


def _limit(dtype: str, sign: int) -> Number:
    if dtype in BITS:
        bits, signed = BITS[dtype], dtype[0] == "i"
        high = (1 << (bits - signed)) - 1
        return Number(high if sign > 0 else -high - 1 if signed else 0, dtype)
    import ml_dtypes

    kind = DTYPES[dtype].numpy()
    return Number(sign * float(ml_dtypes.finfo(kind).max), dtype if DTYPES[dtype].bits >= 16 else "float32")


def _integral(symbol: str, a: Computed, b: Computed) -> Computed:
    if isinstance(a, int) and isinstance(b, int):
        return arith(symbol, Number(a, "int64"), b).value
    return arith(symbol, a, b)


def _floating(function: Any, *operands: Computed) -> Number:
    if len(operands) == 2:
        operands = pair(*operands)
    values = [number(x) for x in operands]
    dtype = values[0].dtype
    if not is_float(dtype):
        dtype = "float64" if dtype in ("int64", "uint64") else "float32"
    elif dtype not in ("float64", "float32", "float16", "bfloat16"):
        dtype = "float32"
    with np.errstate(all="ignore"):
        result = float(function(*(np.float64(convert(x, dtype).value) for x in values)))
    return Number(fit(result, dtype), dtype)
