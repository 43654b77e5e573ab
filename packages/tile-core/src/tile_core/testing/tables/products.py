"""T.gemm: element types, awkward tiles, trip counts, scopes, slices, policies, and rejections.

Data are small integers: every product and sum is exact, so the result must be equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing import oracles
from tile_core.testing.case import VALUE, Data, Launch, Unit, one, output, refused, scalar, tensor
from tile_core.testing.data import Array, more_fp8, numbers, values
from tile_core.testing.source import lines

#: (A, B, accumulator).
TYPES = (
    ("float16", "float16", "float32"), ("bfloat16", "bfloat16", "float32"), ("float32", "float32", "float32"),
    ("int8", "int8", "int32"), ("float8_e4m3fn", "float8_e4m3fn", "float32"),
    ("float8_e5m2", "float8_e4m3fn", "float32"),
    ("float16", "float16", "float16"), ("uint8", "int8", "int32"), ("tfloat32", "tfloat32", "float32"),
    ("bfloat16", "float32", "float32"), ("float64", "float64", "float64"),
    ("float8_e4m3fn", "float8_e4m3fn", "float16"),
    ("float4_e2m1fn", "float4_e2m1fn", "float32"), ("int16", "int16", "int32"), ("uint8", "uint8", "uint32"),
    ("bfloat16", "bfloat16", "bfloat16"), ("int4", "int4", "int32"), ("float8_e4m3fnuz", "float8_e5m2fnuz", "float32"),
    *((name, "float8_e4m3fn", "float32")
      for name in more_fp8("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")),
)  # fmt: skip
SIZES = (1, 7, 8, 17, 24, 48, 63, 96, 127)
SCOPES = (("shared", "shared", "fragment"), ("fragment", "shared", "fragment"), ("shared", "fragment", "fragment"),
          ("shared", "shared", "shared"), ("fragment", "fragment", "fragment"))  # fmt: skip


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_types(), *_tiles(), *_trips(), *_scopes(), *_tall(), *_constant(), *_peers(), *_others(), *_refusals()]


def blocked(
    name: str, tile: tuple[int, int, int], types: tuple[str, str, str], sizes: Any, *, stages: int = 2,
    threads: int = 128, turned: tuple[bool, bool] = (False, False), scopes: tuple[str, str, str] = SCOPES[0],
    flags: str = "", out: str = "", fixed: bool = False, **rest: Any,
) -> Unit:  # fmt: skip
    """Return the usual blocked product of any size.

    ``sizes`` has a launch per (m, n, k).

    Parameters
    ----------
    out
        Element type of the result, if not that of the accumulator.
    fixed
        Whether the program has the one size of ``sizes`` as constants.
    """
    (bm, bn, bk), (a, b, c), (ta, tb) = tile, types, turned
    m, n, k = sizes[0] if fixed else ("m", "n", "k")
    left, right = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    body = f'''
        A_s = T.alloc_{scopes[0]}({(bk, bm) if ta else (bm, bk)}, "{a}")
        B_s = T.alloc_{scopes[1]}({(bn, bk) if tb else (bk, bn)}, "{b}")
        C_s = T.alloc_{scopes[2]}(({bm}, {bn}), "{c}")
        T.clear(C_s)
        for ko in T.Pipelined(T.ceildiv({k}, {bk}), num_stages={stages}):
            T.copy(A[{f"ko * {bk}, by * {bm}" if ta else f"by * {bm}, ko * {bk}"}], A_s)
            T.copy(B[{f"bx * {bn}, ko * {bk}" if tb else f"ko * {bk}, bx * {bn}"}], B_s)
            T.gemm(A_s, B_s, C_s, transpose_A={ta}, transpose_B={tb}{flags})
        T.copy(C_s, C[by * {bm}, bx * {bn}])
    '''

    def want(d: Data) -> Array:
        shapes = [tuple(d.get(s, s) for s in side) for side in (left, right)]
        x, y = values(d["A"], a, shapes[0]), values(d["B"], b, shapes[1])
        return oracles.gemm(x, y, transpose_a=ta, transpose_b=tb)

    def data(rng: Any, m: int, n: int, k: int) -> Data:
        sizes = {"m": m, "n": n, "k": k}
        x, y = (tuple(sizes.get(str(s), int(s) if fixed else 0) for s in side) for side in (left, right))
        low, high = (-2, 2) if c in ("float16", "bfloat16") else (-4, 4)
        return {**({} if fixed else sizes), "A": numbers(rng, x, a, low, high), "B": numbers(rng, y, b, low, high)}

    launches = {f"{m}x{n}x{k}": lambda rng, s=(m, n, k): data(rng, *s) for m, n, k in sizes}
    held = ((bm * bk, a), (bk * bn, b), (bm * bn, c))
    shared_bytes = sum(
        count * max(8, DTYPES[t].bits) // 8 for (count, t), scope in zip(held, scopes, strict=True) if scope == "shared"
    )
    params = [tensor("A", a, *left), tensor("B", b, *right), output("C", out or c, m, n)]
    return one(
        "gemm", name, params, body, want, launches, VALUE, threads=threads,
        symbols=() if fixed else ("m", "n", "k"),
        grid=f"T.ceildiv({n}, {bn}), T.ceildiv({m}, {bm})",
        axes="(bx, by)", needs=frozenset({f"shared:{shared_bytes}"}), **rest,
    )  # fmt: skip


def _constant() -> list[Unit]:
    """Products of several tiles and iterations of constant sizes, for persistent kernels and multicast."""
    half = ("float16", "float16", "float32")
    cases: tuple[tuple[str, tuple[int, int, int], tuple[str, str, str], tuple[int, int, int], dict[str, Any]], ...] = (
        ("f16", (64, 64, 32), half, (200, 136, 160), {"stages": 3, "turned": (False, True), "out": "float16"}),
        ("f16-nn", (64, 32, 32), half, (130, 104, 96), {"stages": 2, "out": "float16"}),
        ("f16-tn", (128, 64, 32), half, (200, 72, 104), {"stages": 4, "turned": (True, False), "threads": 256}),
        ("bf16", (64, 64, 64), ("bfloat16", "bfloat16", "float32"), (65, 200, 320),
         {"stages": 3, "turned": (False, True), "out": "bfloat16"}),
        ("fp8", (64, 64, 64), ("float8_e4m3fn", "float8_e4m3fn", "float32"), (136, 136, 256),
         {"stages": 4, "turned": (False, True), "out": "bfloat16"}),
        ("f16-rows", (128, 64, 32), half, (260, 72, 104), {"stages": 3, "turned": (False, True), "out": "float16"}),
        ("int8", (64, 32, 64), ("int8", "int8", "int32"), (136, 72, 192), {"stages": 2, "turned": (False, True)}),
        ("fp8-bytes", (64, 128, 64), ("float8_e4m3fn", "float8_e4m3fn", "float32"), (136, 144, 192),
         {"stages": 2, "turned": (False, True), "out": "float8_e5m2"}),
        ("int8-bytes", (64, 64, 32), ("int8", "int8", "int32"), (65, 208, 80),
         {"stages": 4, "turned": (False, True), "out": "int8"}),
        # Blocks of a row, of a column or of both may load for each other.
        ("rows", (128, 64, 64), half, (128, 248, 200), {"stages": 3, "turned": (False, True)}),
        ("columns", (128, 48, 32), half, (250, 40, 160), {"stages": 4, "turned": (False, True), "out": "float16"}),
        ("both", (128, 64, 32), ("bfloat16", "bfloat16", "float32"), (256, 120, 96), {"stages": 2}),
        ("both-fp8", (128, 64, 64), ("float8_e5m2", "float8_e4m3fn", "float32"), (240, 128, 320),
         {"stages": 3, "turned": (False, True)}),
        ("both-tf32", (128, 64, 32), ("tfloat32", "tfloat32", "float32"), (250, 124, 96),
         {"stages": 2, "turned": (False, True)}),
    )  # fmt: skip
    return [
        blocked(f"constant-{name}", tile, types, (size,), fixed=True, **how) for name, tile, types, size, how in cases
    ]


def _even(types: tuple[str, str, str], *sizes: int) -> tuple[int, ...]:
    """Sizes made even where two elements share a byte."""
    packed = any(DTYPES[t].is_packed for t in types)
    return tuple(s + s % 2 if packed else s for s in sizes)


def _types() -> list[Unit]:
    found = []
    for types in TYPES:
        sizes = [_even(types, *s) for s in ((32, 48, 32), (17, 24, 40), (33, 49, 97), (1, 1, 1))]
        found.append(blocked("-".join(types), (32, 48, 32), types, sizes))
    return found


def _tiles() -> list[Unit]:
    found = []
    for n in range(12):
        bm, bn, bk = SIZES[n * 2 % 9], SIZES[(n * 4 + 3) % 9], SIZES[(n * 5 + 1) % 9]
        types, turned = TYPES[n % 4], (n % 2 == 1, n // 2 % 2 == 1)
        scopes, threads = SCOPES[n % 5], (1, 31, 32, 96, 128, 384)[n % 6]
        name = f"tile-{bm}x{bn}x{bk}-{'t' if turned[0] else 'n'}{'t' if turned[1] else 'n'}-{types[0]}"
        sizes = [(bm, bn, bk), (bm + 5, bn, 2 * bk), (max(1, bm - 3), 2 * bn + 1, bk + 1)]
        found.append(
            blocked(name, (bm, bn, bk), types, sizes, turned=turned, scopes=scopes, threads=threads, stages=n % 5)
        )
    return found


def _trips() -> list[Unit]:
    """Trip counts of 0, 1, 2 and more in flight; #2566: exactly one iteration."""
    sizes = [(16, 24, k) for k in (0, 16, 32, 80)]
    types = TYPES[0]
    return [blocked(f"#2566-stages-{s}", (16, 24, 16), types, sizes, stages=s) for s in range(5)]


def _scopes() -> list[Unit]:
    """Operands and accumulators in every scope, with transposes; the policy changes nothing (#2522)."""
    found = []
    for n, scopes in enumerate(SCOPES):
        turned = (n % 2 == 0, n % 3 == 0)
        name = "scopes-" + "-".join(s[0] for s in scopes)
        found.append(
            blocked(name, (32, 24, 48), TYPES[n % 4], [(32, 24, 48), (37, 23, 51)], scopes=scopes, turned=turned)
        )
    for policy in ("Square", "FullRow", "FullCol"):
        flags = f", policy=T.GemmWarpPolicy.{policy}, k_pack=1, wg_wait=0"
        found.append(blocked(f"#2522-{policy}", (256, 24, 16), TYPES[0], [(256, 24, 32)], threads=256, flags=flags))
    return found


_LARGE = ("float16", "bfloat16", "tfloat32", "int8", "float8_e4m3fn")


def _tall() -> list[Unit]:
    """Tall tiles, where groups of warps share an instruction: every type, orientation and group."""
    found = []
    for n, types in enumerate(t for t in TYPES if t[0] == t[1] or "8" in t[0]):
        tile = (64, (24, 64, 40)[n % 3], 64)
        sizes = [tile, (67, tile[1] + 3, 130)]
        for turned in ((n % 2 == 1, True), (n % 3 == 1, False)):
            name = f"tall-{'-'.join(types)}-{'t' if turned[0] else 'n'}{'t' if turned[1] else 'n'}"
            sizes_of_type = [_even(types, *s) for s in sizes]
            found.append(
                blocked(name, tile, types, sizes_of_type, turned=turned, threads=(128, 256)[n % 2], stages=n % 4)
            )
    for n, types in enumerate(t for t in TYPES if t[0] in _LARGE and t[0] == t[1] and DTYPES[t[2]].bits == 32):
        tile = (128, (48, 64)[n % 2], 64)  # an instruction may take no fewer rows
        sizes = [(128, 64, 128), (131, 61, 70)]
        found.append(blocked(f"tall-rows-{types[0]}", tile, types, sizes, turned=(False, True), stages=n % 3))
    for n, (tile, threads) in enumerate((
        ((128, 96, 32), 256), ((128, 256, 16), 256), ((192, 16, 64), 384), ((64, 192, 48), 256), ((128, 64, 64), 160),
        ((64, 264, 16), 128), ((128, 240, 32), 128), ((128, 48, 48), 128),
        ((80, 64, 32), 128),
    )):  # fmt: skip
        scopes = SCOPES[n % 2]
        name = f"tall-{'x'.join(map(str, tile))}-{scopes[0]}-{threads}"
        stages = 2 + n % 3 if tile[0] < 192 else 3  # some targets have 99 KiB of shared memory
        found.append(blocked(name, tile, TYPES[n % 2], [tile, (tile[0] + 1, tile[1] - 7, 3 * tile[2] - 8)],
                             threads=threads, scopes=scopes, turned=(False, n % 3 == 0), stages=stages))  # fmt: skip
    return found


def _peers() -> list[Unit]:
    """Sizes that broke another compiler."""
    found = [
        blocked(f"#2381-k{k}-{t[0]}", (64, 64, k), t, [(64, 64, k), (64, 64, 2 * k + 8)])
        for k, t in ((24, TYPES[0]), (40, TYPES[1]), (56, TYPES[0]))
    ]
    found.append(blocked("#2537-twelve-warps", (16, 104, 32), TYPES[0], [(16, 104, 64)], threads=384))
    for k, types in ((8, TYPES[3]), (16, TYPES[3]), (16, TYPES[4]), (8, TYPES[1]), (8, TYPES[0])):
        found.append(blocked(f"#3032-k{k}-{types[0]}", (32, 32, k), types, [(32, 32, k), (32, 32, 3 * k)]))
    for types in (("bfloat16", "bfloat16", "float16"), ("tfloat32", "tfloat32", "float16")):
        found.append(blocked(f"#3004-{types[0]}", (32, 32, 32), types, [(32, 32, 64)]))
    sizes = [(128, 128, 128), (100, 130, 200)]
    found.append(blocked("#2172-int8", (128, 128, 128), TYPES[3], sizes, stages=3, turned=(False, True)))
    found.append(blocked("#2421-bfloat16", (32, 64, 16), TYPES[1], [(32, 64, 16), (32, 64, 48)], threads=64))
    found.append(blocked("pr2141-two-stages", (32, 32, 32), TYPES[0], [(64, 64, 96)], stages=2, threads=64))
    return found


def _whole(name: str, body: str, m: int, n: int, k: int, want: Any, outs: tuple[Any, ...] = (), **rest: Any) -> Unit:
    params = [tensor("A", "float16", m, k), tensor("B", "float16", k, n), *(outs or (output("C", "float32", m, n),))]
    start = f"""
        A_s = T.alloc_shared(({m}, {k}), "float16")
        B_s = T.alloc_shared(({k}, {n}), "float16")
        C_f = T.alloc_fragment(({m}, {n}), "float32")
        T.copy(A, A_s)
        T.copy(B, B_s)
    """
    data = {"": lambda rng: {"A": numbers(rng, (m, k), "float16"), "B": numbers(rng, (k, n), "float16")}}
    unit = one("gemm", name, params, body, want, data, VALUE, **rest)
    unit.body = start
    return unit


def _product(d: Data) -> Array:
    return oracles.gemm(values(d["A"], "float16"), values(d["B"], "float16"))


def _others() -> list[Unit]:
    """Accumulation, elementwise work on an accumulator, slices, views, operands that are used again."""
    fill = "T.fill(C_f, 7.0)\n"
    cleared = lines("""
        B_f = T.alloc_fragment((48, 17), "float16")
        T.copy(B_s, B_f)
        T.gemm(A_s, B_f, C_f, clear_accum=True)
        T.copy(C_f, C)
    """)
    a_f = 'A_f = T.alloc_fragment((24, 48), "float16")\nT.copy(A_s, A_f)\nT.clear(C_f)\nT.gemm(A_f, B_s, C_f)\n'
    slices = lines("""
        for k in range(3):
            T.gemm(A_s[:, k * 16 : k * 16 + 16], B_s[k * 16 : k * 16 + 16, :], C_f{flag})
        T.copy(C_f, C)
    """)
    return [
        _whole("#2627-clear", fill + cleared, 17, 17, 48, _product),
        _whole("accumulate", fill + "T.gemm(A_s, B_s, C_f)\nT.copy(C_f, C)", 17, 24, 48, lambda d: _product(d) + 7),
        _whole("#2627-first-slice", fill + slices.format(flag=", clear_accum=k == 0"), 17, 24, 48, _product),
        _whole("slices", fill + slices.format(flag=""), 17, 24, 48, lambda d: _product(d) + 7),
        _whole(
            "pr3199-scaled", lines("""
                T.clear(C_f)
                T.gemm(A_s, B_s, C_f)
                for i, j in T.Parallel(32, 32):
                    C_f[i, j] = C_f[i, j] * 2.0
                T.copy(C_f, C)
            """), 32, 32, 32, lambda d: _product(d) * 2, threads=32,
        ),
        _whole(
            "#2954-operand-again", a_f + lines("""
                S = T.alloc_shared((24, 48), "float16")
                T.copy(A_f, S)
                T.copy(S, D)
                T.copy(C_f, C)
            """),
            24, 17, 48, lambda d: {"C": _product(d), "D": values(d["A"], "float16")},
            (output("C", "float32", 24, 17), output("D", "float16", 24, 48)),
        ),
        _whole(
            "#2547-before-and-inside", lines("""
                T.clear(C_f)
                T.gemm(A_s, B_s, C_f)
                for k in T.Pipelined(3, num_stages=2):
                    T.copy(A[:, k * 16 : k * 16 + 16], A_s[:, 0:16])
                    T.copy(B[k * 16 : k * 16 + 16, :], B_s[0:16, :])
                    T.gemm(A_s[:, 0:16], B_s[0:16, :], C_f)
                T.copy(C_f, C)
            """), 64, 64, 48, lambda d: 2 * _product(d),
        ),
        _chain(), *_chained_loops(), _reshaped(), _infinities(), _runtime_clear(),
    ]  # fmt: skip


def _chain() -> Unit:
    return _whole(
        "chain", lines("""
            T.clear(C_f)
            T.gemm(A_s, B_s, C_f)
            P = T.alloc_shared((24, 24), "float16")
            D_f = T.alloc_fragment((24, 48), "float32")
            T.copy(C_f, P)
            T.gemm(P, B_s, D_f, transpose_B=True, clear_accum=True)
            T.copy(D_f, D)
        """), 24, 24, 48,
        lambda d: {"D": oracles.cast(_product(d), "float16").astype(np.float64) @ values(d["B"], "float16").T},
        (output("D", "float32", 24, 48),),
    )  # fmt: skip


def _chained_loops() -> list[Unit]:
    """The shape of attention: the second product uses a function of the first accumulator."""

    def want(d: Data) -> dict[str, Array]:
        a, b, c = (values(d[name], "float16") for name in "ABC")
        made = np.clip(a @ b.T, -9, 9)
        return {"D": made @ c, "E": made.sum(1)}

    found = []
    for m, n, k, keys, stages in (
        (64, 32, 32, 93, 2),
        (64, 16, 64, 104, 3),
        (128, 64, 16, 200, 2),
        (40, 24, 16, 70, 2),
    ):
        body = f"""
            A_s = T.alloc_shared(({m}, {k}), "float16")
            B_s = T.alloc_shared(({n}, {k}), "float16")
            C_s = T.alloc_shared(({n}, {k}), "float16")
            S_f = T.alloc_fragment(({m}, {n}), "float32")
            P_f = T.alloc_fragment(({m}, {n}), "float16")
            D_f = T.alloc_fragment(({m}, {k}), "float32")
            added = T.alloc_fragment(({m},), "float32")
            total = T.alloc_fragment(({m},), "float32")
            T.copy(A, A_s)
            T.clear(D_f)
            T.clear(total)
            for o in T.Pipelined(T.ceildiv({keys}, {n}), num_stages={stages}):
                T.copy(B[o * {n}, 0], B_s)
                T.copy(C[o * {n}, 0], C_s)
                T.gemm(A_s, B_s, S_f, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel({m}, {n}):
                    S_f[i, j] = T.min(T.max(S_f[i, j], -9), 9)
                T.reduce_sum(S_f, added, dim=1)
                for i in T.Parallel({m}):
                    total[i] += added[i]
                T.copy(S_f, P_f)
                T.gemm(P_f, C_s, D_f)
            T.copy(D_f, D)
            T.copy(total, E)
        """
        params = [tensor("A", "float16", m, k), tensor("B", "float16", keys, k), tensor("C", "float16", keys, k)]
        params += [output("D", "float32", m, k), output("E", "float32", m)]

        def data(rng: Any, m: int = m, k: int = k, keys: int = keys) -> Data:
            shapes = {"A": (m, k), "B": (keys, k), "C": (keys, k)}
            return {name: rng.integers(-2, 3, shape).astype(np.float16) for name, shape in shapes.items()}

        name = f"chained-loop-{m}x{n}x{k}-{keys}"
        found.append(one("gemm", name, params, body, want, {"": data}, VALUE, threads=128))
    return found


def _reshaped() -> Unit:
    body = """
        line = T.alloc_shared((1024,), "float16")
        B_s = T.alloc_shared((32, 24), "float16")
        C_f = T.alloc_fragment((32, 24), "float32")
        T.copy(A, line)
        T.copy(B, B_s)
        T.clear(C_f)
        T.gemm(T.reshape(line, (32, 32)), B_s, C_f)
        T.copy(C_f, C)
    """
    params = [tensor("A", "float16", 1024), tensor("B", "float16", 32, 24), output("C", "float32", 32, 24)]
    data = {"": lambda rng: {"A": numbers(rng, (1024,), "float16"), "B": numbers(rng, (32, 24), "float16")}}
    return one(
        "gemm", "#3012-reshaped", params, body,
        lambda d: values(d["A"], "float16").reshape(32, 32) @ values(d["B"], "float16"), data, VALUE,
    )  # fmt: skip


def _infinities() -> Unit:
    """Elements beyond a tail must not enter the sum: 0 * inf is NaN."""
    unit = blocked("infinity-beside-a-tail", (8, 17, 16), TYPES[2], [])

    def data(rng: Any) -> Data:
        b = np.ones((18, 17), np.float32)
        b[17, 3], b[0, 5] = np.inf, np.nan
        return {"m": 9, "n": 17, "k": 18, "A": np.zeros((9, 18), np.float32), "B": b}

    unit.launches = {"": Launch(data)}
    return unit


def _runtime_clear() -> Unit:
    body = """
        A_s = T.alloc_shared((9, 16), "float32")
        B_s = T.alloc_shared((16, 11), "float32")
        C_f = T.alloc_fragment((9, 11), "float32")
        T.copy(A, A_s)
        T.copy(B, B_s)
        T.fill(C_f, 3.0)
        T.gemm(A_s, B_s, C_f, clear_accum=flag > 0)
        T.copy(C_f, C)
    """
    params = [
        tensor("A", "float32", 9, 16),
        tensor("B", "float32", 16, 11),
        scalar("flag"),
        output("C", "float32", 9, 11),
    ]
    launches = {
        str(f): lambda rng, f=f: {
            "flag": f,
            "A": numbers(rng, (9, 16), "float32"),
            "B": numbers(rng, (16, 11), "float32"),
        }
        for f in (0, 1)
    }

    def want(d: Data) -> Array:
        product: Array = values(d["A"], "float32") @ values(d["B"], "float32")
        return product + (0 if d["flag"] else 3)

    return one("gemm", "runtime-clear", params, body, want, launches, VALUE)  # type: ignore[arg-type]


def _refusals() -> list[Unit]:
    def body(a: Any, b: Any, c: Any, types: tuple[str, str, str], flags: str = "") -> str:
        lines = [f"{n} = T.alloc_shared({s}, '{t}')" for n, s, t in zip("abc", (a, b, c), types, strict=True)]
        return "\n".join([*lines, f"T.gemm(a, b, c{flags})"])

    f = ("float16", "float16", "float32")
    m = (16, 16)
    found = [
        refused("gemm", "illegal-k", body(m, (8, 16), m, f), "K207"),
        refused("gemm", "illegal-m", body(m, m, (8, 16), f), "K207"),
        refused("gemm", "illegal-n", body(m, m, (16, 8), f), "K207"),
        refused("gemm", "illegal-transpose", body((8, 16), m, (8, 16), f, ", transpose_A=True"), "K207"),
        refused("gemm", "illegal-rank", body((16,), m, m, f), "K212"),
        refused("gemm", "illegal-batch", body((2, 16, 16), m, m, f), "K212"),
        refused("gemm", "illegal-k-pack", body(m, m, m, f, ", k_pack=0"), "K212"),
    ]
    for types in (
        ("float16", "int8", "float32"), ("int8", "int8", "float32"), ("float16", "float16", "int32"),
        ("int8", "int8", "int16"), ("float64", "float64", "float32"), ("bool", "int8", "int32"),
        ("float16", "float16", "float8_e5m2"), ("float8_e8m0fnu", "float16", "float32"), ("int64", "int64", "int32"),
    ):  # fmt: skip
        found.append(refused("gemm", "illegal-types-" + "-".join(types), body(m, m, m, types), "K208"))
    return found
