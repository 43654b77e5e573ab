"""One example per name of the language, and programs that compile and run them.

Examples of tile ops are in their docstrings, all others here. An example is code outside of a kernel, a statement of a
block, or an expression of a parallel loop or of a thread. Each kind has a frame that declares what its lines use. The
page of names shows the frames; every example is compiled for every target, and run on the CPU.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from functools import cache

from pages.docstrings import docstring_of
from pages.example_values import STEPS, THREAD, VALUE
from tile_core.vocabulary import NAMES, word

#: What a frame begins with.
HEAD = "import numpy as np\n\nimport tile_core as tile\nimport tile_core.language as T\n\n"

#: Kind of an example -> the frame around its lines, without ``HEAD``.
FRAMES = {
    "file": "{line}",
    "block": """
@T.prim_func
def kernel(
    A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), n: T.Tensor((64,), "int32"),
    values: T.Tensor((64, 32), "float16"), meta: T.Tensor((64, 4), "int16"), codes: T.Tensor((64, 64), "uint8"),
    scale: T.Tensor((64,), "float32"), image: T.Tensor((1, 8, 8, 16), "float32"), bytes: T.Tensor((2, 4), "int8"),
):
    with T.Kernel(1, threads=128) as bx:
        S, H = T.alloc_shared((64, 64), "float32"), T.alloc_shared((64, 64), "float16")
        F, v = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64,), "float32")
        T.copy(A, S)
        T.copy(A, H)
        T.copy(A, F)
        T.copy(scale, v)
{line}
""",
    "value": """
@T.prim_func
def kernel(X: T.Tensor((3, 128), "float32"), N: T.Tensor((2, 128), "int32"), out: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        for i in T.Parallel(128):
            x, y, z = X[0, i], X[1, i], X[2, i]
            m, n = N[0, i], N[1, i]
            c = x < y
            out[i] = {line}
""",
    "thread": """
@T.prim_func
def kernel(X: T.Tensor((128,), "float32"), N: T.Tensor((128,), "int32"), out: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        t = T.get_thread_binding()
        x, n = X[t], N[t]
        c = x > 0
        out[t] = {line}
""",
}


@dataclass(frozen=True)
class Example:
    """One example.

    Attributes
    ----------
    name, kind
        What it shows, and its frame.
    line
        What a reader sees; may have several lines.
    """

    name: str
    kind: str
    line: str

    @property
    def program(self) -> str:
        """The file that compiles it: one that defines ``kernel``, but for kind ``file``."""
        line = textwrap.indent(self.line, " " * 8) if self.kind == "block" else self.line
        return HEAD + FRAMES[self.kind].format(line=line).lstrip("\n") + ("" if self.kind == "file" else "\n")


def example_of(name: str) -> Example | None:
    """Return the example of ``T.<name>``, or of ``tile.<name>`` for a name that begins with ``tile.``.

    That of an op is in its docstring, or in the docstring to which it refers by "see ``name``".
    """
    return _examples().get(name) or _of_docstring(name) or _of_type(name)


def _of_docstring(name: str) -> Example | None:
    module, function = NAMES.get(name, ("", ""))
    if not module.startswith("ops."):
        return None
    found = docstring_of(word(name))
    if "Examples" in found.sections:
        line = "\n".join(line[4:] for line in found.sections["Examples"].splitlines())
        return Example(name, "block", line.replace(f"T.{function}(", f"T.{name}("))
    other = re.search(r"[Ss]ee ``(\w+)``", f"{found.summary} {found.body}")
    example = example_of(other[1]) if other else None
    return example and Example(name, "block", example.line.replace(f"T.{example.name}(", f"T.{name}("))


def _of_type(name: str) -> Example | None:
    if NAMES.get(name, ("", ""))[0] != "dtypes":
        return None
    return Example(name, "block", f"T.clear(T.alloc_shared((64, 64), T.{name}))")


@cache
def _examples() -> dict[str, Example]:
    found: dict[str, Example] = {}
    for kind, text in (("file", _FILE), ("block", _BLOCK + STEPS), ("value", VALUE), ("thread", THREAD)):
        name = ""
        for line in text.strip("\n").splitlines():
            if not line.startswith(" ") and line:
                name, _, first = line.partition(":")
                found[name] = Example(name, kind, first.strip())
            else:
                before = found[name]
                found[name] = Example(name, kind, f"{before.line}\n{line[4:]}".strip("\n"))
    return found


_EAGER = """
    @tile.jit(target="cpu")
    def double(A):
        N = T.const("N")
        A: T.Tensor[(N,), "float32"]
        B = T.empty((N,), "float32")
        with T.Kernel(T.ceildiv(N, 64), threads=32) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] * 2
        return B


    double(np.ones(100, "float32"))
"""
_POINTER = """
    @T.prim_func
    def kernel(p: T.ptr):
        with T.Kernel(1, threads=32):
            T.clear(T.make_tensor(p, (64,), "float32"))
"""
_PRODUCT = """
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, 4, threads=128) as (bx, by):
            A[by, bx] = 1
"""

_CLUSTERS = """
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32")):
        with T.ClusterKernel(4, cluster_dims=2, threads=32) as bx:
            A[bx] = T.block_rank_in_cluster()
"""
_EXCHANGE = """
    @T.prim_func
    def kernel(A: T.Tensor((4, 8, 32), "float32"), B: T.Tensor((4, 8, 32), "float32")):
        with T.ClusterKernel(4, cluster_dims=2, threads=32) as bx:
            S = T.alloc_shared((8, 32), "float32")
            R = T.alloc_shared((8, 32), "float32")
            arrived = T.alloc_cluster_barrier(1)
            T.copy(A[bx, :, :], S)
            T.copy_cluster(S, R, dst_block=1 - T.block_rank_in_cluster(), remote_barrier=arrived)
            T.mbarrier_wait_parity(arrived, 0)
            T.copy(R, B[bx, :, :])
"""
_DEPENDENT = """
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            T.pdl_sync()  # nothing of A or B is accessed before it
            S = T.alloc_shared((64, 64), "float32")
            T.copy(A, S)
            T.pdl_trigger()
            T.copy(S, B)
"""

_FILE = f"""
prim_func:{_PRODUCT}
PrimFunc:
    def doubled(n: int) -> T.PrimFunc:
        @T.prim_func
        def kernel(A: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
                for i in T.Parallel(64):
                    A[bx * 64 + i] *= 2

        return kernel
Kernel:{_PRODUCT}
ClusterKernel:{_CLUSTERS}
copy_cluster:{_EXCHANGE}
pdl_sync:{_DEPENDENT}
pdl_trigger:{_DEPENDENT}
macro:
    @T.macro
    def square(x):
        for i in T.Parallel(64):
            x[i] = x[i] * x[i]
Ref:
    @T.macro
    def count(n: T.Ref):
        n = n + 1  # the caller's variable
Tensor: T.Tensor((128, 64), "float16")
StridedTensor: T.StridedTensor((128, 64), (80, 1), "float16")
Buffer: T.Buffer((128, 64), "float16")  # the same as T.Tensor
ptr:{_POINTER}
make_tensor:{_POINTER}
dynamic: m = T.dynamic("m")
symbolic: m = T.symbolic("m")  # the same as T.dynamic
const:{_EAGER}
empty:{_EAGER}
PersistentTileScheduler:
    @T.prim_func
    def kernel(A: T.Tensor((512, 512), "float32")):
        with T.Kernel(4, threads=128):
            tiles = T.PersistentTileScheduler(8, 8)
            while tiles.valid():
                T.clear(A[tiles.m_idx * 64 : tiles.m_idx * 64 + 64, tiles.n_idx * 64 : tiles.n_idx * 64 + 64])
                tiles.next_tile()
Persistent:
    @T.prim_func
    def kernel(A: T.Tensor((8, 8), "float32")):
        with T.Kernel(4, threads=32) as block:
            for bx, by in T.Persistent((8, 8), 4, block):
                A[by, bx] = 1
alloc_global:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        W = T.alloc_global((64,), "float32")
        with T.Kernel(2, threads=32) as bx:
            W[bx * 32 : bx * 32 + 32] = A[bx * 32 : bx * 32 + 32] * 2
        with T.Kernel(threads=32):
            B[...] = W[0] + W
sync_grid:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=32) as bx:
            A[bx * 32 : bx * 32 + 32] = bx
            T.sync_grid()
            B[bx * 32 : bx * 32 + 32] = A[32 - bx * 32 : 64 - bx * 32]
Layout: T.Layout((16, 64), lambda i, j: j * 16 + i)
Fragment: T.Fragment((4, 8), lambda i, j: (i * 4 + j // 2, j % 2))
dtype: T.dtype("float16").bits
tile.__version__: tile.__version__
tile.Kernel:
    @T.prim_func
    def clear(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            T.clear(A)


    kernel = tile.compile(clear, target="cpu")
    assert isinstance(kernel, tile.Kernel)
    kernel(np.ones(64, "float32"))
tile.Layout: tile.Layout((16, 64), lambda i, j: j * 16 + i)
tile.PassConfigKey: tile.PassConfigKey.TL_ENABLE_FAST_MATH
tile.TileError:
    try:
        tile.compile(None, target="cpu")
    except tile.TileError as error:
        print(error.code, error.message)
tile.autotune:
    @tile.autotune([dict(block=32), dict(block=64)], inputs=lambda N: (np.ones(N, "float32"),))
    @tile.jit(target="cpu")
    def scale(N, block=64):
        @T.prim_func
        def scaled(A: T.Tensor((N,), "float32")):
            with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
                for i in T.Parallel(block):
                    A[bx * block + i] = A[bx * block + i] * 2

        return scaled


    scale(1000)(np.ones(1000, "float32"))
tile.tilings:
    def matmul(M, N, K, block_M=64, block_N=64, block_K=32, threads=128):
        @T.prim_func
        def gemm(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float32")):
            with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
                A_s, B_s = T.alloc_shared((block_M, block_K), "float16"), T.alloc_shared((block_N, block_K), "float16")
                C_f = T.alloc_fragment((block_M, block_N), "float32")
                T.clear(C_f)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                    T.copy(A[by * block_M, k * block_K], A_s)
                    T.copy(B[bx * block_N, k * block_K], B_s)
                    T.gemm(A_s, B_s, C_f, transpose_B=True)
                T.copy(C_f, C[by * block_M, bx * block_N])

        return gemm


    for tiling in tile.tilings(matmul, dict(M=4096, N=4096, K=4096), target="cuda:sm_90a", most=2):
        print(tiling)  # block_M=128, block_N=256, ...: about 236 us, ...
tile.compile:
    @T.prim_func
    def clear(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            T.clear(A)


    kernel = tile.compile(clear, target="cpu")
tile.disable_cache:
    with tile.disable_cache():
        ...  # everything is compiled anew
tile.errors: tile.errors.KernelError
tile.explain:
    @T.prim_func
    def clear(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            T.clear(A)


    print(tile.explain(clear, "cpu"))
tile.find_nan:
    @T.prim_func
    def logarithm(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = T.log(A[bx * 32 + i])


    A = np.ones(64, "float32")
    A[40] = -1
    found = tile.find_nan(logarithm, A, np.zeros(64, "float32"))
    assert (found.operation, found.operands, found.block, found.index) == ("log", (-1,), (1,), (40,))
tile.watch:
    @T.prim_func
    def totals(A: T.Tensor((4, 32), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(4, threads=32) as bx:
            total = T.alloc_fragment((1,), "float32")
            T.reduce_sum(A[bx, 0:32], total)
            B[bx] = total[0]


    for snapshot in tile.watch(totals, "total", np.ones((4, 32), "float32"), np.zeros(4, "float32"), block=2):
        print(snapshot)  # total after line 5, block 2: [32.]
tile.jit:{_EAGER}
tile.language: import tile_core.language as T
tile.layout: tile.layout.make_swizzled_layout((64, 64), element_bits=16)
tile.load:
    import tempfile

    @T.prim_func
    def clear(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            T.clear(A)


    with tempfile.TemporaryDirectory() as folder:
        path = tile.compile(clear, target="cuda:sm_80").export(f"{{folder}}/clear.tile")
        tile.load(path, runtime="emulator")(np.ones(64, "float32"))
tile.pointers:
    @T.prim_func
    def kernel(P: T.Tensor((2,), T.ptr("float32")), B: T.Tensor((2, 8), "float32")):
        with T.Kernel(2, threads=32) as bx:
            T.copy(T.make_tensor(P[bx], (8,)), B[bx, 0])


    print(tile.compile(kernel, "cpu", out_idx=1)(tile.pointers([np.ones(8, "float32"), np.zeros(8, "float32")])))
tile.numerics: tile.numerics.codecs.decode(np.array([56], "uint8"), "float8_e4m3fn")
tile.pack_weights: packed = tile.pack_weights(np.zeros((64, 32), "uint8"))  # rows of 64 elements of 4 bits
tile.unpack_weights: codes = tile.unpack_weights(np.zeros((64, 8), "uint32"))
tile.with_packed_weights:
    @T.prim_func
    def widened(W: T.Tensor((4, 64), "int4"), B: T.Tensor((4, 64), "int32")):
        with T.Kernel(4, threads=32) as i:
            for j in T.Parallel(64):
                B[i, j] = T.cast(W[i, j], "int32")

    kernel = tile.compile(tile.with_packed_weights(widened, "W"), "cpu", out_idx=1)
    print(kernel(tile.pack_weights(np.zeros((4, 32), "uint8"))))
tile.sparse: values, metadata = tile.sparse.compress(tile.sparse.prune(np.ones((64, 64), "float16")))
tile.targets: tile.targets()
simdgroup_gemm:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            F = T.alloc_fragment((64, 64), "float32")
            T.simdgroup_gemm(A, A, F, clear_accum=True)
            T.copy(F, C)
cooperative_tensor_gemm:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            F = T.alloc_fragment((64, 64), "float32")
            T.cooperative_tensor_gemm(A, A, F, clear_accum=True)
            T.copy(F, C)
"""

_BLOCK = """
alloc_reducer:
    r = T.alloc_reducer((64,), "float32", op="sum")
    T.clear(r)
    for i, j in T.Parallel(64, 64):
        r[i] += F[i, j]
    T.finalize_reducer(r)
reducer_init: T.reducer_init(T.alloc_reducer((64,), "float32", op="max"))
reducer_update:
    total = T.alloc_reducer((64,), "int32", op="bitor")
    for i, j in T.Parallel(64, 64):
        T.reducer_update(total[i], T.cast(A[i, j], "int32"))
    T.finalize_reducer(total)
finalize_reducer:
    r = T.alloc_reducer((64,), "float32", op="sum")
    T.clear(r)
    for i, j in T.Parallel(64, 64):
        r[i] += F[i, j]
    T.finalize_reducer(r)
rng_init:
    for i in T.Parallel(64):
        T.rng_init(7, i)
        scale[i] = T.rng_rand_float()
rng_rand:
    for i in T.Parallel(64):
        T.rng_init(7, i)
        n[i] = T.rng_rand() % 10
rng_rand_float:
    for i in T.Parallel(64):
        T.rng_init(7, i)
        scale[i] = T.rng_rand_float(dist="normal")
alloc_shared: tile_of_A = T.alloc_shared((64, 64), "float16")
alloc_fragment: total = T.alloc_fragment((64, 64), "float32")
alloc_local: mine = T.alloc_local((4,), "float32")
alloc_var: count = T.alloc_var("int32", init=0)
annotate_layout: T.annotate_layout({S: tile.layout.make_swizzled_layout(S)})
annotate_safe_value: T.annotate_safe_value({A: -1.0})
annotate_l2_hit_ratio: T.annotate_l2_hit_ratio({A: 0.8})
use_swizzle: T.use_swizzle(8)
serial:
    for i in T.serial(64):
        v[i] = i
Parallel:
    for i, j in T.Parallel(64, 64):
        F[i, j] = F[i, j] * 2
Pipelined:
    for k in T.Pipelined(4, num_stages=2):
        T.copy(A[0:64, k * 16 : k * 16 + 16], H[0:64, 0:16])
unroll:
    for i in T.unroll(4):
        v[i] = i
vectorized:
    for i in T.vectorized(4):
        v[i] = 0
grid:
    for i, j in T.grid(8, 8):
        F[i, j] = 0
static_range:
    for i in T.static_range(4):
        v[i] = i
print: T.print(n[0], msg="first")
device_assert: T.device_assert(n[0] >= 0, "a row number is negative")
assume: T.assume(n[0] >= 0)
get_block_binding: b = T.get_block_binding(0)
get_block_bindings: bx, by, bz = T.get_block_bindings()
get_thread_binding: t = T.get_thread_binding(0)
get_thread_bindings: tx, ty, tz = T.get_thread_bindings()
get_lane_idx: lane = T.get_lane_idx()
get_warp_idx: warp = T.get_warp_idx()
sync_threads: T.sync_threads()
sync_warp: T.sync_warp()
numerics:
    with T.numerics("strict"):
        for i, j in T.Parallel(64, 64):
            S[i, j] = A[i, j] * A[i, j] + A[i, j]
ws:
    with T.ws(0, size=64):
        T.copy(A, S)
simdgroup_load: T.simdgroup_load(F, A)
simdgroup_store: T.simdgroup_store(F, B)
simdgroup_fill: T.simdgroup_fill(F, 0.0)
simdgroup_multiply_accumulate:
    a = T.alloc_fragment((64, 64), "float16")
    T.simdgroup_load(a, H)
    T.simdgroup_multiply_accumulate(F, a, a)
"""
