# One row per program: long rows stay in one line.
# ruff: noqa: E501
# fmt: off
"""Correct kernels, and wrong ones made of them by changing one line."""

#: Name -> the text of a module with one correct kernel ``k``.
BASES = {
    "gemm": """
@T.prim_func
def k(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
    with T.Kernel(2, 2, threads=64) as (bx, by):
        A_shared = T.alloc_shared((16, 8), "float16")
        B_shared = T.alloc_shared((8, 16), "float16")
        C_local = T.alloc_fragment((16, 16), "float32")
        T.clear(C_local)
        for ko in T.Pipelined(4, num_stages=2):
            T.copy(A[by * 16, ko * 8], A_shared)
            T.copy(B[ko * 8, bx * 16], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * 16, bx * 16])
""",
    "softmax": """
@T.prim_func
def k(X: T.Tensor((8, 32), "float32"), Y: T.Tensor((8, 32), "float32")):
    with T.Kernel(8, threads=32) as row:
        x = T.alloc_fragment((1, 32), "float32")
        top = T.alloc_fragment((1,), "float32")
        total = T.alloc_fragment((1,), "float32")
        T.copy(X[row, 0], x)
        T.reduce_max(x, top, dim=1)
        for i, j in T.Parallel(1, 32):
            x[i, j] = T.exp(x[i, j] - top[i])
        T.reduce_sum(x, total, dim=1)
        for i, j in T.Parallel(1, 32):
            Y[row, j] = x[i, j] / total[i]
""",
    "scan": """
@T.prim_func
def k(X: T.Tensor((16, 16), "int32"), Y: T.Tensor((16, 16), "int32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((16, 16), "int32")
        T.copy(X, s)
        T.cumsum(s, dim=1)
        T.copy(s, Y)
""",
    "histogram": """
@T.prim_func
def k(X: T.Tensor((64,), "int32"), H: T.Tensor((8,), "int32"), n: T.int32):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            if i < n:
                T.atomic_add(H[X[i] % 8], 1)
""",
    "views": """
@T.prim_func
def k(X: T.Tensor((8, 16), "float32"), Y: T.Tensor((16, 8), "int32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((8, 16), "float32")
        T.annotate_layout({s: lambda i, j: i * 16 + j})
        T.copy(X, s)
        bits = T.view(s, (8, 16), "int32")
        turned = T.alloc_shared((16, 8), "int32")
        T.transpose(bits, turned)
        T.copy(turned, Y)
""",
    "stencil": """
@T.prim_func
def k(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32"), alpha: T.float32):
    with T.Kernel(4, threads=16) as b:
        left = T.alloc_var("float32", 0.0)
        for i in T.serial(16):
            at = b * 16 + i
            if at > 0:
                left = X[at - 1]
            else:
                left = X[0]
            Y[at] = alpha * X[at] + (1.0 - alpha) * left
""",
    "threads": """
@T.prim_func
def k(X: T.Tensor((64,), "float32"), Y: T.Tensor((2,), "float32")):
    with T.Kernel(2, threads=32) as b:
        t = T.get_thread_binding(0)
        s = T.alloc_shared((32,), "float32")
        s[t] = X[b * 32 + t]
        T.sync_threads()
        v = s[t] + T.shfl_xor(s[t], 1)
        if t == 0:
            Y[b] = v
""",
    "sparse": """
@T.prim_func
def k(A: T.Tensor((16, 16), "float16"), E: T.Tensor((16, 2), "int16"), B: T.Tensor((32, 16), "float16"),
      C: T.Tensor((16, 16), "float32")):
    with T.Kernel(1, threads=32):
        a = T.alloc_shared((16, 16), "float16")
        e = T.alloc_shared((16, 2), "int16")
        b = T.alloc_shared((32, 16), "float16")
        c = T.alloc_fragment((16, 16), "float32")
        T.copy(A, a)
        T.copy(E, e)
        T.copy(B, b)
        T.clear(c)
        T.gemm_sp(a, e, b, c)
        T.copy(c, C)
""",
    "scaled": """
@T.prim_func
def k(A: T.Tensor((8, 16), "float8_e4m3fn"), sA: T.Tensor((8,), "float32"), B: T.Tensor((16, 8), "float8_e4m3fn"),
      sB: T.Tensor((8,), "float32"), C: T.Tensor((8, 8), "float32")):
    with T.Kernel(1, threads=32):
        T.fp8_scaled_matmul(A, sA, B, sB, C)
""",
    "blocks": """
@T.prim_func
def k(A: T.Tensor((8, 64), "float8_e4m3fn"), P: T.Tensor((8, 2), "float8_e8m0fnu"), C: T.Tensor((8, 8), "float32")):
    with T.Kernel(1, threads=32):
        c = T.alloc_fragment((8, 8), "float32")
        T.gemm_scaled(A, P, A, P, c, transpose_B=True, clear_accum=True)
        T.copy(c, C)
""",
    "rows": """
@T.prim_func
def k(X: T.Tensor((16, 8), "float32"), R: T.Tensor((4,), "int32"), Y: T.Tensor((16, 8), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((4, 8), "float32")
        T.gather(X, R, s)
        T.scatter(s, Y, R)
""",
    "macro": """
@T.macro
def twice(X, Y, i):
    Y[i] = X[i] * 2

@T.prim_func
def k(X: T.Tensor((T.dynamic("n"),), "float32"), Y: T.Tensor((T.dynamic("n"),), "float32")):
    with T.Kernel(T.ceildiv(T.dynamic("n"), 16), threads=16) as b:
        for i in T.Parallel(16):
            twice(X, Y, b * 16 + i)
""",
    "factory": """
@tile.jit(out_idx=-1, target="cpu")
def make(n, dtype="float32"):
    @T.prim_func
    def inner(X: T.Tensor((n,), dtype), Y: T.Tensor((n,), dtype)):
        with T.Kernel(1, threads=16):
            T.copy(X, Y)
    return inner

k = make.program(16)
""",
    "eager": """
@tile.jit(target="cpu")
def double(X, block: int = 16):
    N = T.const("N")
    X: T.Tensor[(N,), "float32"]
    Y = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=16) as b:
        for i in T.Parallel(block):
            Y[b * block + i] = X[b * block + i] * 2
    return Y

k = double.program(np.zeros(32, "float32"))
""",
}

#: (kernel, text of a line that is replaced, what replaces it, code[, text of the line that the error names]).
#: Several lines may replace one; the error then names the first of them that ends in "# !", or the first.
CHANGES = [
    # shapes and types
    ("gemm", 'A_shared = T.alloc_shared((16, 8), "float16")', 'A_shared = T.alloc_shared((16, 9), "float16")', "K207", "T.gemm("),
    ("gemm", 'B_shared = T.alloc_shared((8, 16), "float16")', 'B_shared = T.alloc_shared((8, 16), "int8")', "K208", "T.gemm("),
    ("gemm", 'C_local = T.alloc_fragment((16, 16), "float32")', 'C_local = T.alloc_fragment((16, 16), "int32")', "K208", "T.gemm("),
    ("gemm", 'C_local = T.alloc_fragment((16, 16), "float32")', 'C_local = T.alloc_fragment((16,), "float32")', "K212", "T.gemm("),
    ("gemm", "T.gemm(A_shared, B_shared, C_local)", "T.gemm(A_shared, B_shared, C_local, transpose_B=True)", "K207"),
    ("gemm", "T.gemm(A_shared, B_shared, C_local)", "T.gemm(A_shared, B_shared)", "K126"),
    ("gemm", "T.gemm(A_shared, B_shared, C_local)", "T.gemm(A_shared, B_shared, C_local, transpose_b=True)", "K137"),
    ("gemm", "T.gemm(A_shared, B_shared, C_local)", "T.gemm(A_shared, B_shared, C_local, k_pack=0)", "K212"),
    ("gemm", "T.gemm(A_shared, B_shared, C_local)", "T.gemm(A_shared, B_shared, C_local, policy='square')", "K212"),
    ("gemm", "T.gemm(A_shared, B_shared, C_local)", "T.gemm(A_shared, B_shared, C_local, variant=3)", "K212"),
    ("gemm", "T.gemm(A_shared, B_shared, C_local)", "T.gemm(A_shared, B_shared, C_lokal)", "K126"),
    ("gemm", "T.gemm(A_shared, B_shared, C_local)", "T.gem(A_shared, B_shared, C_local)", "K129"),
    ("gemm", "T.gemm(A_shared, B_shared, C_local)", "C_local += A_shared @ B_shared", "K103"),
    ("gemm", "T.gemm(A_shared, B_shared, C_local)", "C_local = C_local + A_shared", "K144"),
    ("gemm", "T.copy(C_local, C[by * 16, bx * 16])", "T.copy(C_local, C[by * 16, bx * 16, 0])", "K107"),
    ("gemm", "T.copy(C_local, C[by * 16, bx * 16])", "T.copy(C_local, C[0:8, 0:8])", "K203"),
    ("gemm", "T.copy(C_local, C[by * 16, bx * 16])", "T.copy(C_local, C[0:32:2, 0:32:2])", "K108"),
    ("gemm", "T.copy(C_local, C[by * 16, bx * 16])", "T.copy(C_local, C[0:by, 0:16])", "K202"),
    ("gemm", "T.copy(C_local, C[by * 16, bx * 16])", "T.copy(C_local, C[32, 0])", "K106"),
    ("gemm", "T.copy(C_local, C[by * 16, bx * 16])", "T.copy(C_local, C[by * 1.5, 0])", "K103"),
    ("gemm", "T.copy(C_local, C[by * 16, bx * 16])", "T.copy(C_local, C, disable_tam=True)", "K137"),
    ("gemm", "T.copy(C_local, C[by * 16, bx * 16])", "C[0:16, 0:16] = A_shared", "K144"),
    ("gemm", "T.copy(C_local, C[by * 16, bx * 16])", "C[0, 0] == 1", "K114"),
    ("gemm", "T.copy(C_local, C[by * 16, bx * 16])", "T.copy(ko, C)", "K110"),
    ("gemm", "T.clear(C_local)", "T.fill(C_local)", "K126"),
    ("gemm", "T.clear(C_local)", "T.fill(C_local, 'zero')", "K103"),
    ("gemm", "T.clear(C_local)", "T.fill(A_shared, 70000.0)", "K104"),
    ("gemm", "for ko in T.Pipelined(4, num_stages=2):", "for ko in T.Pipelined(4, num_stages=-1):", "K119"),
    ("gemm", "for ko in T.Pipelined(4, num_stages=2):", "for ko in T.Pipelined(4, num_stages=bx):", "K119"),
    ("gemm", "for ko in T.Pipelined(4, num_stages=2):", "for ko in T.Pipelined(4, stages=2):", "K137"),
    ("gemm", "for ko in T.Pipelined(4, num_stages=2):", "for ko in T.Pipelined(4.0, num_stages=2):", "K119"),
    ("gemm", "for ko in T.Pipelined(4, num_stages=2):", "for ko in A_shared:", "K105"),
    ("gemm", "for ko in T.Pipelined(4, num_stages=2):", "for ko in [i for i in T.serial(4)]:", "K119"),
    ("gemm", "with T.Kernel(2, 2, threads=64) as (bx, by):", "with T.Kernel(2, -2, threads=64) as (bx, by):", "K120"),
    ("gemm", "with T.Kernel(2, 2, threads=64) as (bx, by):", "with T.Kernel(2, 2, threads=0) as (bx, by):", "K120"),
    ("gemm", "with T.Kernel(2, 2, threads=64) as (bx, by):", "with T.Kernel(2, 2, threads=2**40) as (bx, by):", "K120"),
    ("gemm", "with T.Kernel(2, 2, threads=64) as (bx, by):", "with T.Kernel(2, 2.5, threads=64) as (bx, by):", "K120"),
    ("gemm", "with T.Kernel(2, 2, threads=64) as (bx, by):", "with T.Kernel(2, 2**33, threads=64) as (bx, by):", "K120"),
    ("gemm", "with T.Kernel(2, 2, threads=64) as (bx, by):", "with T.Kernel(2, 2, 1, 1, threads=64) as (bx, by):", "K120"),
    ("gemm", "with T.Kernel(2, 2, threads=64) as (bx, by):", "with T.Kernel(2, 2, thread=64) as (bx, by):", "K137"),
    ("gemm", "with T.Kernel(2, 2, threads=64) as (bx, by):", "with T.Kernel(2, threads=64) as (bx, by):", "K120"),
    ("gemm", "with T.Kernel(2, 2, threads=64) as (bx, by):", "if True:", "K109", "T.alloc_shared((16, 8)"),
    ("gemm", "with T.Kernel(2, 2, threads=64) as (bx, by):", "for bx, by in T.Parallel(2, 2):", "K206", "T.clear(C_local)"),
    ("gemm", 'A_shared = T.alloc_shared((16, 8), "float16")', "A_shared = T.alloc_shared((16, bx), 'float16')", "K122"),
    ("gemm", 'A_shared = T.alloc_shared((16, 8), "float16")', "A_shared = T.alloc_shared((16, 0), 'float16')", "K122"),
    ("gemm", 'A_shared = T.alloc_shared((16, 8), "float16")', "A_shared = T.alloc_shared((2**20, 2**20), 'float16')", "K136"),
    ("gemm", 'A_shared = T.alloc_shared((16, 8), "float16")', "A_shared = T.alloc_shared((16, 8), 'float17')", "K101"),
    ("gemm", 'A_shared = T.alloc_shared((16, 8), "float16")', "A_shared = T.alloc_shared((16, 8))", "K126"),
    ("gemm", 'A_shared = T.alloc_shared((16, 8), "float16")', "A_shared = T.alloc_shared((16, 8), 'float16', scope='global')", "K123"),
    ("gemm", 'A_shared = T.alloc_shared((16, 8), "float16")', "A_shared = T.alloc_global((16, 8), 'float16')", "K135"),
    ("gemm", 'A_shared = T.alloc_shared((16, 8), "float16")', "T.use_swizzle(4, order='diagonal')", "K134"),
    ("gemm", 'A_shared = T.alloc_shared((16, 8), "float16")', "T.use_swizzle(4, enable='no')", "K128"),
    # Python in a kernel
    ("stencil", "at = b * 16 + i", "at = b * 16 + undefined", "K126"),
    ("stencil", "at = b * 16 + i", "at = [0, 1][b]", "K105"),
    ("stencil", "at = b * 16 + i", "at = {}[i]", "K126"),
    ("stencil", "at = b * 16 + i", "at = (b := i)", "K113"),
    ("stencil", "at = b * 16 + i", "at = range(i)[0]", "K105"),
    ("stencil", "at = b * 16 + i", "at = X.size", "K140"),
    ("stencil", "at = b * 16 + i", "at = 1 // 0", "K126"),
    ("stencil", "at = b * 16 + i", "at = i // 0", "K103"),
    ("stencil", "at = b * 16 + i", "at = i + None", "K103"),
    ("stencil", "at = b * 16 + i", "at = i + 'one'", "K103"),
    ("stencil", "at = b * 16 + i", "at = i << -1", "K103"),
    ("stencil", "at = b * 16 + i", "at = alpha & 1", "K103"),
    ("stencil", "at = b * 16 + i", "at = i + 2**40 * 2**40", "K104"),
    ("stencil", "at = b * 16 + i", "at = str(int(i))[i]", "K105"),
    ("stencil", "at = b * 16 + i", "at = '%d' % i", "K105"),
    ("stencil", "at = b * 16 + i", "at = sorted([i, b])[0]", "K105"),
    ("stencil", "at = b * 16 + i", "at = sum(X)", "K105"),
    ("stencil", "at = b * 16 + i", "at = max(X)", "K105"),
    ("stencil", "at = b * 16 + i", "at = [*X][0]", "K105"),
    ("stencil", "at = b * 16 + i", "at = dict(X)", "K105"),
    ("stencil", "at = b * 16 + i", "at = round(alpha, 3)", "K103"),
    ("stencil", "at = b * 16 + i", "at = np.zeros(4)[i]", "K140"),
    ("stencil", "at = b * 16 + i", "at = math.sin(alpha)", "K105"),
    ("stencil", "at = b * 16 + i", "at = i if X else b", "K105"),
    ("stencil", "at = b * 16 + i", "at = i if X[0:4] else b", "K105"),
    ("stencil", "at = b * 16 + i", "yield i", "K113"),
    ("stencil", "at = b * 16 + i", "global other", "K113"),
    ("stencil", "at = b * 16 + i", "del i", "K113"),
    ("stencil", "at = b * 16 + i", "import missing_module", "K126"),
    ("stencil", "at = b * 16 + i", "class P: pass", "K113"),
    ("stencil", "at = b * 16 + i", "try: at = i\n            except ValueError: pass", "K113"),
    ("stencil", "at = b * 16 + i", "raise ValueError('no')", "K116"),
    ("stencil", "at = b * 16 + i", "return i", "K116"),
    ("stencil", "at = b * 16 + i", "assert False, 'never'", "K126"),
    ("stencil", "at = b * 16 + i", "at: T.int33 = i", "K129"),
    ("stencil", "at = b * 16 + i", "X = Y", "K111"),
    ("stencil", "at = b * 16 + i", "alpha = 2.0", "K111"),
    ("stencil", "at = b * 16 + i", "X[0], Y = Y[0], X", "K111"),
    ("stencil", "at = b * 16 + i", "X[i].real = 3", "K126"),
    ("stencil", "at = b * 16 + i", "alpha[0] = 3", "K127"),
    ("stencil", "at = b * 16 + i", "X[i] = None", "K127"),
    ("stencil", "at = b * 16 + i", "X[i] = Y", "K127"),
    ("stencil", "at = b * 16 + i", "X[i] = object()", "K103"),
    ("stencil", "at = b * 16 + i", "X[i] = 10**60", "K104"),
    ("stencil", "at = b * 16 + i", "X['i'] = 1.0", "K103"),
    ("stencil", "at = b * 16 + i", "X[i, i] = 1.0", "K107"),
    ("stencil", "at = b * 16 + i", "X[64] = 1.0", "K106"),
    ("stencil", "at = b * 16 + i", "X[-65] = 1.0", "K139"),
    ("stencil", "at = b * 16 + i", "X[alpha] = 1.0", "K103"),
    ("stencil", "Y[at] = alpha * X[at] + (1.0 - alpha) * left", "Y[at] = lost", "K126"),
    ("stencil", "for i in T.serial(16):", "for i in T.serial(16, 0, 0):", "K119"),
    ("stencil", "for i in T.serial(16):", "for i in T.serial(alpha):", "K119"),
    ("stencil", "for i in T.serial(16):", "for i in T.unroll(b):", "K119"),
    ("stencil", "for i in T.serial(16):", "for i in T.vectorized(b):", "K119"),
    ("stencil", "for i in T.serial(16):", "for i in T.Parallel():", "K119"),
    ("stencil", "for i in T.serial(16):", "for i in T.Parallel(-1):", "K119"),
    ("stencil", "for i in T.serial(16):", "for i, j in T.serial(16):", "K119"),
    ("stencil", "for i in T.serial(16):", "for i in 16:", "K126"),
    ("stencil", "for i in T.serial(16):", "for i in X[0:4]:", "K105"),
    ("stencil", "for i in T.serial(16):", "for X[0] in T.serial(16):", "K113"),
    ("stencil", "for i in T.serial(16):", "while X:", "K105"),
    ("stencil", 'left = T.alloc_var("float32", 0.0)', 'left = T.alloc_var("float32", 0.0, init=1.0)', "K123"),
    ("stencil", 'left = T.alloc_var("float32", 0.0)', 'left = T.alloc_var("float32", "shared")', "K123"),
    ("stencil", 'left = T.alloc_var("float32", 0.0)', 'left = T.alloc_var("int32", 0.5)', "K104"),
    ("stencil", 'left = T.alloc_var("float32", 0.0)', "left = 0.0", "K111", "left = X[at - 1]"),
    # ops
    ("softmax", "T.reduce_max(x, top, dim=1)", "T.reduce_max(x, top, dim=2)", "K209"),
    ("softmax", "T.reduce_max(x, top, dim=1)", "T.reduce_max(x, top, dim=0)", "K210"),
    ("softmax", "T.reduce_max(x, top, dim=1)", "T.reduce_max(x, top, axis=1)", "K137"),
    ("softmax", "T.reduce_max(x, top, dim=1)", "T.reduce_max(x, top, dim='rows')", "K209"),
    ("softmax", "T.reduce_max(x, top, dim=1)", "T.reduce_max(x, x, dim=1)", "K210"),
    ("softmax", "T.reduce_max(x, top, dim=1)", "T.reduce_bitand(x, top, dim=1)", "K211"),
    ("softmax", "T.reduce_max(x, top, dim=1)", "T.reduce(x, top, 'mean', dim=1)", "K212"),
    ("softmax", "T.reduce_max(x, top, dim=1)", "T.reduce_max(x, top, dim=1, clear=row)", "K212"),
    ("softmax", "T.reduce_max(x, top, dim=1)", "T.finalize_reducer(top)", "K212"),
    ("softmax", 'top = T.alloc_fragment((1,), "float32")', 'top = T.alloc_fragment((1,), "int32")', "K211", "T.reduce_max("),
    ("softmax", "x[i, j] = T.exp(x[i, j] - top[i])", "x[i, j] = T.exp(x - top)", "K103"),
    ("softmax", "x[i, j] = T.exp(x[i, j] - top[i])", "x[i, j] = np.exp(x[i, j])", "K140"),
    ("softmax", "x[i, j] = T.exp(x[i, j] - top[i])", "break", "K115"),
    ("softmax", "x[i, j] = T.exp(x[i, j] - top[i])", "top[i] = T.exp(x[i, j])", "K214"),
    ("softmax", "Y[row, j] = x[i, j] / total[i]", "Y[row, j] = total", "K127"),
    ("softmax", "Y[row, j] = x[i, j] / total[i]", "Y[0, 0] = x[i, j]", "K214"),
    ("scan", "T.cumsum(s, dim=1)", "T.cumsum(s, dim=5)", "K209"),
    ("scan", "T.cumsum(s, dim=1)", "T.cumsum(X, Y[0:8], dim=1)", "K203"),
    ("scan", "T.cumsum(s, dim=1)", "T.cumsum(s, reverse=s)", "K212"),
    ("scan", "T.cumsum(s, dim=1)", "T.cummin(s)", "K129"),
    ("scan", "T.cumsum(s, dim=1)", "T.cumsum(3)", "K201"),
    ("histogram", "T.atomic_add(H[X[i] % 8], 1)", "T.atomic_add(i, 1)", "K201"),
    ("histogram", "T.atomic_add(H[X[i] % 8], 1)", "T.atomic_add(H[0], 1.5)", "K104"),
    ("histogram", "T.atomic_add(H[X[i] % 8], 1)", "T.atomic_add(H[0], 1, memory_order='strict')", "K212"),
    ("histogram", "T.atomic_add(H[X[i] % 8], 1)", "T.atomic_add(H[0:2], X[0:4])", "K203"),
    ("histogram", "T.atomic_add(H[X[i] % 8], 1)", "T.atomic_add(H, 1, return_prev=True)", "K213"),
    ("histogram", "T.atomic_add(H[X[i] % 8], 1)", "T.atomic_addx2(H[1], X[0])", "K217"),
    ("histogram", "T.atomic_add(H[X[i] % 8], 1)", "T.atomic_load(H)", "K213"),
    ("histogram", "T.atomic_add(H[X[i] % 8], 1)", "T.atomic_load(H[0], 'release')", "K212"),
    ("histogram", "if i < n:", "if H:", "K105"),
    ("histogram", "if i < n:", "if (T.atomic_add(H[0], 1) if i else 0):", "K118"),
    ("histogram", 'H: T.Tensor((8,), "int32"), n: T.int32', "H: T.Tensor((8,), 'bool'), n: T.int32", "K211", "T.atomic_add("),
    ("views", 'bits = T.view(s, (8, 16), "int32")', "bits = T.view(s, (8, 17), 'int32')", "K215"),
    ("views", 'bits = T.view(s, (8, 16), "int32")', "bits = T.view(s[0:4], (4, 16), 'int32')", "K216"),
    ("views", 'bits = T.view(s, (8, 16), "int32")', "bits = T.view(s, (8, -16), 'int32')", "K212"),
    ("views", 'bits = T.view(s, (8, 16), "int32")', "bits = T.view(s, 'all', 'int32')", "K212"),
    ("views", 'bits = T.view(s, (8, 16), "int32")', "bits = T.view(X[0, 0], (8, 16), 'int32')", "K201"),
    ("views", 'bits = T.view(s, (8, 16), "int32")', "bits = T.reshape(s, None)", "K216"),
    ("views", "T.annotate_layout({s: lambda i, j: i * 16 + j})", "T.annotate_layout({s: lambda i, j: i * 15 + j})", "K303"),
    ("views", "T.annotate_layout({s: lambda i, j: i * 16 + j})", "T.annotate_layout({s: lambda i, j: i / j})", "K305"),
    ("views", "T.annotate_layout({s: lambda i, j: i * 16 + j})", "T.annotate_layout({s: lambda i: i})", "K305"),
    ("views", "T.annotate_layout({s: lambda i, j: i * 16 + j})", "T.annotate_layout({s: 'row'})", "K134"),
    ("views", "T.annotate_layout({s: lambda i, j: i * 16 + j})", "T.annotate_layout(s)", "K134"),
    ("views", "T.annotate_layout({s: lambda i, j: i * 16 + j})", "T.annotate_layout({s: T.Layout((4, 4), lambda i, j: i * 4 + j)})", "K134"),
    ("views", "T.annotate_layout({s: lambda i, j: i * 16 + j})", "T.Layout((0, 4), lambda i, j: i)", "K301"),
    ("views", "T.annotate_layout({s: lambda i, j: i * 16 + j})", "T.Layout((4, 4), '(4,4)')", "K302"),
    ("views", "T.annotate_layout({s: lambda i, j: i * 16 + j})", "tile.layout.Swizzle(3, 3, 1)", "K308"),
    ("views", "T.annotate_layout({s: lambda i, j: i * 16 + j})", "T.annotate_safe_value({X: s[0, 0]})", "K134"),
    ("views", "T.annotate_layout({s: lambda i, j: i * 16 + j})", "T.annotate_l2_hit_ratio({X: 1.5})", "K134"),
    ("views", "T.transpose(bits, turned)", "T.transpose(turned, turned)", "K203"),
    ("views", "T.transpose(bits, turned)", "T.transpose(bits, 3)", "K201"),
    ("threads", "t = T.get_thread_binding(0)", "t = T.get_thread_binding(3)", "K128"),
    ("threads", "t = T.get_thread_binding(0)", "t = T.get_thread_binding('x')", "K128"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.shfl_xor(s[t], 1, width=3)", "K128"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.shfl_xor(s[t], 1.5)", "K128"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.shfl_xor(s, 1)", "K103"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.warp_reduce_bitand(s[t])", "K128"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.ballot('yes')", "K128"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.reinterpret(s[t], 'int8')", "K128"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.infinity('int32')", "K128"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.ceildiv(t, 0)", "K103"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.ceildiv(8, 0)", "K128"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.simdgroup_nothing(s)", "K129"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.device_assert(t < 3, 5)", "K128"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.assume(False)", "K128"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.const('N')", "K102"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.dynamic(5)", "K128"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.dynamic('n', 'float32')", "K128"),
    ("threads", "v = s[t] + T.shfl_xor(s[t], 1)", "v = T.make_tensor(s, (4,))", "K128"),
    ("threads", "if t == 0:", "while t == 0:\n            T.sync_threads()", "K218"),
    ("threads", "with T.Kernel(2, threads=32) as b:", "with T.Kernel(2, threads=(1, 2, 3, 4)) as b:", "K120"),
    ("threads", "with T.Kernel(2, threads=32) as b:", "with T.Kernel(2, threads='many') as b:", "K120"),
    ("threads", "Y[b] = v", "with T.Kernel(1): pass", "K121"),
    ("sparse", "T.gemm_sp(a, e, b, c)", "T.gemm_sp(a, e, b)", "K126"),
    ("sparse", "T.gemm_sp(a, e, b, c)", "T.gemm_sp(a, e, b, c, transpose_E=True)", "K219"),
    ("sparse", "T.gemm_sp(a, e, b, c)", "T.gemm_sp(a, a, b, c)", "K211"),
    ("sparse", "T.gemm_sp(a, e, b, c)", "T.gemm_sp(b, e, a, c)", "K219"),
    ("sparse", "T.gemm_sp(a, e, b, c)", "T.gemm_sp(a, e, b, c, wg_wait='no')", "K212"),
    ("sparse", 'e = T.alloc_shared((16, 2), "int16")', 'e = T.alloc_shared((16, 2), "int8")', "K219", "T.gemm_sp("),
    ("sparse", 'a = T.alloc_shared((16, 16), "float16")', 'a = T.alloc_shared((16, 16), "float64")', "K208", "T.gemm_sp("),
    ("scaled", "T.fp8_scaled_matmul(A, sA, B, sB, C)", "T.fp8_scaled_matmul(C, sA, B, sB, C)", "K222"),
    ("scaled", "T.fp8_scaled_matmul(A, sA, B, sB, C)", "T.fp8_scaled_matmul(A, sA[0:3], B, sB, C)", "K223"),
    ("scaled", "T.fp8_scaled_matmul(A, sA, B, sB, C)", "T.fp8_scaled_matmul(A, A, B, sB, C)", "K222"),
    ("scaled", "T.fp8_scaled_matmul(A, sA, B, sB, C)", "T.fp8_scaled_matmul(A, sA, A, sB, C)", "K207"),
    ("scaled", "T.fp8_scaled_matmul(A, sA, B, sB, C)", "T.fp8_scaled_matmul(A, 1.0, B, sB, C)", "K201"),
    ("scaled", "T.fp8_scaled_matmul(A, sA, B, sB, C)", "T.fp8_scaled_matmul(A, sA, B, sB, C, A_format=3)", "K101"),
    ("scaled", "T.fp8_scaled_matmul(A, sA, B, sB, C)", "T.fp8_scaled_matmul(A, sA, B, sB, C, A_format='float8_e5m2')", "K222"),
    ("scaled", "T.fp8_scaled_matmul(A, sA, B, sB, C)", "T.fp8_scaled_matmul(A, sA, B, sB, C, transpose_B=sB)", "K212"),
    ("blocks", "T.gemm_scaled(A, P, A, P", "T.gemm_scaled(A, A, A, P", "K211"),
    ("blocks", "T.gemm_scaled(A, P, A, P", "T.gemm_scaled(P, P, A, P", "K211"),
    ("blocks", "T.gemm_scaled(A, P, A, P", "T.gemm_scaled(A, P[0:8, 0:1], A, P", "K223"),
    ("blocks", "T.gemm_scaled(A, P, A, P", "T.gemm_scaled(A, P[0:4, 0:2], A, P", "K223"),
    ("blocks", "T.gemm_scaled(A, P, A, P", "T.gemm_scaled(A, 1.0, A, P", "K201"),
    ("blocks", "T.gemm_scaled(A, P, A, P", "T.gemm_scaled(A, P, A", "K126"),
    ("blocks", "transpose_B=True", "transpose_B=False", "K207"),
    ("blocks", 'c = T.alloc_fragment((8, 8), "float32")', 'c = T.alloc_fragment((8, 8), "float64")', "K208", "T.gemm_scaled("),
    ("rows", "T.gather(X, R, s)", "T.gather(X, 3, s)", "K221"),
    ("rows", "T.gather(X, R, s)", "T.gather(X, X, s)", "K221"),
    ("rows", "T.gather(X, R, s)", "T.gather(X, [0, 1], s)", "K203"),
    ("rows", "T.gather(X, R, s)", "T.gather(X, ['a'], s)", "K221"),
    ("rows", "T.scatter(s, Y, R)", "T.scatter(s, Y, [1, 1, 2, 3])", "K220"),
    ("rows", "T.scatter(s, Y, R)", "T.scatter(s, R, Y)", None),
    # parameters
    ("rows", 'def k(X: T.Tensor((16, 8), "float32"), R', "def k(X, R", "K124"),
    ("rows", 'def k(X: T.Tensor((16, 8), "float32"), R', "def k(X: 5, R", "K124"),
    ("rows", 'def k(X: T.Tensor((16, 8), "float32"), R', "def k(X: None, R", "K124"),
    ("rows", 'def k(X: T.Tensor((16, 8), "float32"), R', "def k(*X: T.Tensor((16, 8)), R", "K124"),
    ("rows", 'def k(X: T.Tensor((16, 8), "float32"), R', "def k(X: T.Tensor((16, -8)), R", "K124"),
    ("rows", 'def k(X: T.Tensor((16, 8), "float32"), R', "def k(X: T.Tensor((16, 8.0)), R", "K124"),
    ("rows", 'def k(X: T.Tensor((16, 8), "float32"), R', "def k(X: T.Tensor((16, 2**70)), R", "K124"),
    ("rows", 'def k(X: T.Tensor((16, 8), "float32"), R', "def k(X: T.Tensor((16, None)), R", "K124"),
    ("rows", 'def k(X: T.Tensor((16, 8), "float32"), R', "def k(X: T.StridedTensor((16, 8), (8, -1)), R", "K124"),
    ("rows", 'def k(X: T.Tensor((16, 8), "float32"), R', "def k(X: T.float8_e4m3fn, R", "K124"),
    ("rows", 'def k(X: T.Tensor((16, 8), "float32"), R', "def k(X: 'T.Tenser((16, 8))', R", "K129"),
    ("rows", 'def k(X: T.Tensor((16, 8), "float32"), R', "def k(X: 'Tenser', R", "K126"),
    ("rows", 'def k(X: T.Tensor((16, 8), "float32"), R', "def k(X: T.Tensor((2**40, 2**40)), R", "K124"),
    ("rows", "T.scatter(s, Y, R)", "return Y", "K132"),
    # macros, factories, eager kernels
    ("macro", "Y[i] = X[i] * 2", "Y[i] = X[i] * unknown", "K126"),
    ("macro", "Y[i] = X[i] * 2", "twice(X, Y, i)", "K126"),
    ("macro", "twice(X, Y, b * 16 + i)", "twice(X, Y)", "K126"),
    ("macro", "twice(X, Y, b * 16 + i)", "twice(X, Y, b, z=i)", "K126"),
    ("macro", "twice(X, Y, b * 16 + i)", "twice(Y, 5, b)", "K126", "Y[i] = X[i] * 2"),
    ("macro", 'with T.Kernel(T.ceildiv(T.dynamic("n"), 16), threads=16) as b:', 'with T.Kernel(T.dynamic("m")) as b:', "K125", "def k("),
    ("macro", 'with T.Kernel(T.ceildiv(T.dynamic("n"), 16), threads=16) as b:', "with T.Kernel(X[0]) as b:", "K120"),
    ("factory", "return inner", "return 5", "K132", None),
    ("factory", "k = make.program(16)", "k = make.program()", "K126", None),
    ("factory", "k = make.program(16)", "k = make.program(16, 'float77')", "K101", None),
    ("factory", "k = make.program(16)", "k = make.program(-16)", "K124", "def inner("),
    ("factory", "k = make.program(16)", "k = make.program(16, typo=3)", "K126", None),
    ("factory", "T.copy(X, Y)", "make(8)", "S209", None),  # it calls itself without an end
    ("eager", 'N = T.const("N")', "N = T.const(5)", "K128"),
    ("eager", 'N = T.const("N")', 'N = T.const("N M")', "K131", "def double("),
    ("eager", 'N = T.const("N")', 'N, M = T.const("N, M")', "K131", "def double("),
    ("eager", 'X: T.Tensor[(N,), "float32"]', 'X: T.Tensor[(N, N), "float32"]', "K130"),
    ("eager", 'X: T.Tensor[(N,), "float32"]', 'X: T.Tensor[(N,), "float16"]', "K130"),
    ("eager", 'X: T.Tensor[(N,), "float32"]', "pass", "K131", "def double("),
    ("eager", 'Y = T.empty((N,), "float32")', 'Y = T.empty((N,), "float99")', "K101"),
    ("eager", 'Y = T.empty((N,), "float32")', 'Y = T.empty((-N,), "float32")', "K124"),
    ("eager", "return Y", "return X", "K132"),
    ("eager", "return Y", "return None", "K132"),
    ("eager", "return Y", "return Y, Y", "K132"),
]
