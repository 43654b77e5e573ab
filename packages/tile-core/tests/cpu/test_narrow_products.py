"""Products of 8-bit and 4-bit floats: awkward sizes, all codes, scales of every kind, and other processors."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compiler import lower, make_context
from tile_core.cpu import target as cpu_target
from tile_core.cpu.build import build
from tile_core.cpu.dots import products_of
from tile_core.cpu.isa import Isa, detect
from tile_core.cpu.micro_rows import FEW_ROWS
from tile_core.numerics import codecs
from tile_core.ops.gemm_scaled import ELEMENTS, SCALES
from tile_core.plugins.manager import installed

pytestmark = pytest.mark.sweep(0.5)

FLIPS = [*itertools.product((False, True), repeat=2)]
#: This processor, and one without dot products.
TARGETS = ["cpu", "cpu:x86-64-v3"]
E2M1, E8M0 = "float4_e2m1fn", "float8_e8m0fnu"


@pytest.fixture
def seed() -> int:
    """A fresh seed, printed with a failure."""
    value = random.SystemRandom().randrange(2**32)
    print(f"seed {value}")
    return value


def stored(lines: int, k: int, flip: bool) -> tuple[int, int]:
    """Return the shape of rows of A, or columns of B, as stored."""
    return (k, lines) if flip else (lines, k)


def codes_of(shape: tuple[int, int], dtype: str, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 16 if dtype == E2M1 else 256, shape, "uint8")


def finite(codes: np.ndarray, dtype: str) -> np.ndarray:
    """Replace NaN and infinities by ones."""
    one = codecs.encode(np.ones(1, "float32"), dtype)[0] & (15 if dtype == E2M1 else 255)
    return np.where(np.isfinite(codecs.decode(codes, dtype)), codes, one).astype("uint8")


def passed(codes: np.ndarray, dtype: str) -> np.ndarray:
    """Return an argument: 4-bit codes in pairs."""
    return codecs.pack4(codes) if dtype == E2M1 else codes


def exact(codes: np.ndarray, dtype: str) -> np.ndarray:
    return codecs.decode(codes, dtype).astype("float64")


def plain(m: int, n: int, k: int, types: tuple[str, str, str], flips: tuple[bool, bool]) -> Any:
    a_type, b_type, c_type = types
    a_shape, b_shape = stored(m, k, flips[0]), stored(n, k, not flips[1])

    @T.prim_func
    def main(A: T.Tensor(a_shape, a_type), B: T.Tensor(b_shape, b_type), C: T.Tensor((m, n), c_type)):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared(a_shape, a_type), T.alloc_shared(b_shape, b_type)
            c = T.alloc_fragment((m, n), c_type)
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c, *flips)
            T.copy(c, C)

    return main


def same(found: np.ndarray, want: np.ndarray, magnitude: np.ndarray, k: int, about: object) -> None:
    """Compare with an exact result within the error of its accumulation and one rounding to its type."""
    unit = 2.0**-8 if found.dtype == ml_dtypes.bfloat16 else 2.0**-11 if found.dtype == "float16" else 0.0
    allowed = magnitude * (k + 4) * 2.0**-24 + np.abs(want) * unit + 2.0**-149
    with np.errstate(all="ignore"):
        error = np.abs(found.astype("float64") - want)
        right = (error <= allowed) | (found == want.astype(found.dtype)) | (np.isnan(found) & np.isnan(want))
    assert right.all(), (about, np.argwhere(~right)[:5], found[~right][:5], want[~right][:5])


@pytest.mark.sweep(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("flips", FLIPS)
def test_products_of_narrow_floats(flips: tuple[bool, bool], target: str, seed: int) -> None:
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    m, n = choose.choice([1, 4, 5, 7, 13, 33, 61, 65, 97]), choose.choice([1, 8, 16, 17, 31, 48, 65, 127])
    k = choose.choice([2, 3, 5, 31, 64, 127, 259, 601])
    types = choose.choice(ELEMENTS[:-1]), choose.choice(ELEMENTS), choose.choice(["float32", "bfloat16", "float16"])
    if E2M1 in types:  # rows of whole bytes
        k, n = k + k % 2, n + n % 2
    a = finite(codes_of(stored(m, k, flips[0]), types[0], rng), types[0])
    b = finite(codes_of(stored(n, k, not flips[1]), types[1], rng), types[1])
    x, y = exact(a, types[0]), exact(b, types[1])
    x, y = x.T if flips[0] else x, y.T if flips[1] else y
    c = np.full((m, n), np.nan, T.dtype(types[2]).numpy())
    kernel = tile.compile(plain(m, n, k, types, flips), target=target, options={"poison": True})
    kernel(passed(a, types[0]), passed(b, types[1]), c)
    with np.errstate(over="ignore"):
        same(c, x @ y, np.abs(x) @ np.abs(y), k, (m, n, k, types))
    dots = target == "cpu" and m > FEW_ROWS and n >= detect().lanes(32) and products_of(detect(), *types) is not None
    found = [name for name in ("cpu.gemm.packed ", "cpu.gemm.dot ", "cpu.gemm.tiles ") if name in str(kernel.explain())]
    assert (found[0] != "cpu.gemm.packed ") == dots


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ELEMENTS)
def test_every_pair_of_codes(dtype: str, target: str) -> None:
    count = 16 if dtype == E2M1 else 256
    code = np.arange(count, dtype="uint8")
    a = np.stack([code, np.zeros(count, "uint8")], 1)
    assert not exact(a, dtype)[:, 1].any()
    c = np.empty((count, count), "float32")
    tile.compile(plain(count, count, 2, (dtype, dtype, "float32"), (False, True)), target=target)(
        passed(a, dtype), passed(a, dtype), c
    )
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(c, (exact(a, dtype) @ exact(a, dtype).T).astype("float32"))


@pytest.mark.parametrize("flips", FLIPS)
def test_a_narrow_operand_beside_tiny_ones(flips: tuple[bool, bool], seed: int) -> None:
    """Products with bfloat16 may be subnormal."""
    rng = np.random.default_rng(seed)
    m, n, k = 9, 48, 37
    a = finite(codes_of(stored(m, k, flips[0]), "float8_e4m3fn", rng), "float8_e4m3fn")
    b = (rng.integers(-3, 4, stored(n, k, not flips[1])) * 2.0**-125).astype(ml_dtypes.bfloat16)
    x, y = exact(a, "float8_e4m3fn"), b.astype("float64")
    x, y = x.T if flips[0] else x, y.T if flips[1] else y
    c = np.empty((m, n), "float32")
    tile.compile(plain(m, n, k, ("float8_e4m3fn", "bfloat16", "float32"), flips), target="cpu")(a, b, c)
    assert np.abs(c).max() > 0
    same(c, x @ y, np.abs(x) @ np.abs(y), k, (m, n, k))


def scaled(
    m: int, n: int, k: int, block: int, types: tuple[str, str, str, str], flips: tuple[bool, bool], clear: Any,
    tiles: tuple[int, int, int], coded: bool = False,
) -> Any:  # fmt: skip
    """A loop of scaled products, whose last iteration may be partly outside."""
    a_type, b_type, scale, c_type = types
    block_m, block_n, each = tiles
    depth, ta, tb = each * block, flips[0], not flips[1]
    halved = [2 if coded and d == E2M1 else 1 for d in (a_type, b_type)]
    a_held, b_held = ("uint8" if coded else d for d in (a_type, b_type))

    def held(lines: int, extent: int, flip: bool, half: int) -> tuple[int, int]:
        rows, columns = stored(lines, extent, flip)
        return rows, columns // half

    shapes = [held(m, k, ta, halved[0]), held(n, k, tb, halved[1])]
    parts = [held(block_m, depth, ta, halved[0]), held(block_n, depth, tb, halved[1])]
    formats = {"A_format": a_type, "B_format": b_type} if coded else {}

    @T.prim_func
    def main(
        A: T.Tensor(shapes[0], a_held), P: T.Tensor(stored(m, k // block, ta), scale), B: T.Tensor(shapes[1], b_held),
        Q: T.Tensor(stored(n, k // block, tb), scale), C: T.Tensor((m, n), c_type), flag: T.int32,
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, block_n), T.ceildiv(m, block_m), threads=128) as (bx, by):
            a, b = T.alloc_shared(parts[0], a_held), T.alloc_shared(parts[1], b_held)
            p, q = T.alloc_shared(stored(block_m, each, ta), scale), T.alloc_shared(stored(block_n, each, tb), scale)
            c = T.alloc_fragment((block_m, block_n), c_type)
            T.copy(C[by * block_m, bx * block_n], c)
            for o in T.Pipelined(T.ceildiv(k // block, each), num_stages=2):
                if ta:
                    T.copy(A[o * depth, by * (block_m // halved[0])], a)
                    T.copy(P[o * each, by * block_m], p)
                else:
                    T.copy(A[by * block_m, o * (depth // halved[0])], a)
                    T.copy(P[by * block_m, o * each], p)
                if tb:
                    T.copy(B[o * depth, bx * (block_n // halved[1])], b)
                    T.copy(Q[o * each, bx * block_n], q)
                else:
                    T.copy(B[bx * block_n, o * (depth // halved[1])], b)
                    T.copy(Q[bx * block_n, o * each], q)
                if clear == "runtime":
                    T.gemm_scaled(a, p, b, q, c, *flips, clear_accum=flag > o, **formats)
                else:
                    T.gemm_scaled(a, p, b, q, c, *flips, clear_accum=clear, **formats)
            T.copy(c, C[by * block_m, bx * block_n])

    return main


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("flips", FLIPS)
def test_scaled_products(flips: tuple[bool, bool], scale: str, target: str, seed: int) -> None:
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    block_m, block_n = choose.choice([1, 4, 5, 8, 13, 33, 64]), choose.choice([1, 8, 16, 17, 34, 65, 96])
    block, each, blocks = choose.choice([1, 3, 16, 17, 32, 50, 128]), choose.choice([1, 2, 4]), choose.choice([1, 2, 5])
    m, n = block_m * choose.choice([1, 2]), block_n * choose.choice([1, 2]) - choose.choice([0, 1]) * (block_n > 1)
    a_type, b_type = choose.choice(ELEMENTS), choose.choice(ELEMENTS)
    c_type, coded = choose.choice(["float32", "float32", "bfloat16", "float16"]), choose.random() < 0.5
    if E2M1 in (a_type, b_type):  # rows of whole bytes
        block, block_m, block_n, m, n = (x + x % 2 for x in (block, block_m, block_n, m, n))
    k, clear, flag = block * blocks, choose.choice([False, True, "runtime"]), choose.choice([0, 1])
    if c_type != "float32" or clear is True:  # one product
        each = blocks
    flip_b = not flips[1]
    a = finite(codes_of(stored(m, k, flips[0]), a_type, rng), a_type)
    b = finite(codes_of(stored(n, k, flip_b), b_type, rng), b_type)
    p, q = (
        codecs.encode((2.0 ** rng.integers(-3, 3, stored(x, blocks, f))).astype("float32"), scale)
        for x, f in ((m, flips[0]), (n, flip_b))
    )
    if scale != E8M0:
        p, q = (x ^ (rng.integers(0, 2, x.shape, "uint8") << 7) for x in (p, q))  # a sign does not count
    start = rng.integers(-3, 4, (m, n)).astype(T.dtype(c_type).numpy())
    wide = []
    for x, dtype, s, flip in ((a, a_type, p, flips[0]), (b, b_type, q, flip_b)):
        one, factors = exact(x, dtype), np.abs(exact(s, scale))
        one, factors = (one.T, factors.T) if flip else (one, factors)
        wide.append(one * np.repeat(factors, block, axis=1))
    cleared = clear is True or (clear == "runtime" and flag > 0)
    want = (0 if cleared else start.astype("float64")) + wide[0] @ wide[1].T
    c = start.copy()
    about = (m, n, k, block, (a_type, b_type, scale, c_type), clear, (block_m, block_n, each), coded)
    program = scaled(m, n, k, block, (a_type, b_type, scale, c_type), flips, clear, (block_m, block_n, each), coded)
    kernel = tile.compile(program, target=target, options={"poison": True})
    given = [passed(a, a_type), p, passed(b, b_type), q]
    kernel(*given, c, flag)
    with np.errstate(over="ignore"):
        same(c, want, np.abs(start.astype("float64")) + np.abs(wide[0]) @ np.abs(wide[1]).T, k, about)
    assert "cpu.gemm_scaled.packed " in str(kernel.explain())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block", [2, 6])
def test_every_pair_of_powers_of_two(block: int, target: str) -> None:
    """Products of two scales leave float32, and NaN fills its row and column."""
    every, k = np.arange(256, dtype="uint8"), 6
    for code in (0x01, 0x78, 0x00):
        element = np.full((256, k), code, "uint8")
        scale = np.repeat(every[:, None], k // block, 1)
        c = np.full((256, 256), np.nan, "float32")
        types = ("float8_e5m2", "float8_e5m2", E8M0, "float32")
        program = scaled(256, 256, k, block, types, (False, True), True, (256, 256, k // block))
        tile.compile(program, target=target)(element, scale, element, scale, c, 0)
        x, powers = float(codecs.decode(element[:1, :1], "float8_e5m2")[0, 0]), exact(every, E8M0)
        want = np.zeros((256, 256), "float32")
        with np.errstate(all="ignore"):
            for _ in range(k // block):
                want += (block * x * x * powers[:, None] * powers).astype("float32")
        np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("scale", SCALES)
def test_special_elements_under_scales(scale: str) -> None:
    """Infinities and NaN of elements reach their row or column only; a scale of zero makes an infinity NaN."""
    m, n, k, block = 9, 32, 32, 16
    one = codecs.encode(np.ones(1, "float32"), "float8_e5m2")[0]
    a, b = np.full((m, k), one, "uint8"), np.full((n, k), one, "uint8")
    a[1, 3], a[2, 20], a[4, 5], a[5] = 0x7C, 0x7E, 0xFC, 0x80
    b[3, 3], b[6, 20] = 0xFC, 0x7F
    p, q = (np.full((x, 2), codecs.encode(np.ones(1, "float32"), scale)[0], "uint8") for x in (m, n))
    if scale != E8M0:
        p[4, 0] = 0
    c = np.zeros((m, n), "float32")
    types = ("float8_e5m2", "float8_e5m2", scale, "float32")
    tile.compile(scaled(m, n, k, block, types, (False, True), True, (m, n, 2)), target="cpu")(a, p, b, q, c, 0)
    with np.errstate(all="ignore"):
        wide = [exact(x, types[0]) * np.repeat(np.abs(exact(s, scale)), block, axis=1) for x, s in ((a, p), (b, q))]
        np.testing.assert_array_equal(c, wide[0] @ wide[1].T)
    assert np.isnan(c[4]).all() == (scale != E8M0)


def test_strict_products_add_in_order() -> None:
    program = scaled(
        8, 16, 32, 32, ("float8_e4m3fn", "float8_e4m3fn", E8M0, "float32"), (False, True), True, (8, 16, 1)
    )
    report = str(tile.compile(program, target="cpu", options={"numerics": "strict"}).explain())
    assert "cpu.gemm_scaled.loops " in report


def test_machine_code_for_other_processors() -> None:
    """Machine code has each processor's instruction of bfloat16, in a process of its own: LLVM may end it."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == [x for x in ("tdpbf16ps", "vdpbf16ps", "vfmadd", "fmla") for _ in range(3)]


def _main() -> None:
    """Print the instructions that the machine code of each processor has."""
    x86, arm, whole, plugins = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", Isa.target, installed()
    types = ("float8_e4m3fn", "float8_e5m2", E8M0, "float32")
    programs = [
        plain(33, 48, 37, (*types[:2], "float32"), (False, False)),
        scaled(33, 48, 64, 32, types, (False, True), False, (33, 48, 2)),
        scaled(33, 48, 64, 16, (E2M1, E2M1, SCALES[1], "float32"), (False, True), False, (33, 48, 2)),
    ]
    for name, triple, instruction in (
        ("sapphirerapids", x86, "tdpbf16ps"), ("znver4", x86, "vdpbf16ps"), ("alderlake", x86, "vfmadd"),
        ("neoverse-n1", arm, "fmla"),
    ):  # fmt: skip
        Isa.target = lambda self, triple=triple: {**whole(self), "mtriple": triple}  # type: ignore[method-assign]
        isa = Isa.for_cpu(name, triple)
        cpu_target._isa = lambda _, isa=isa: isa  # type: ignore[assignment]
        for program in programs:
            plan = lower(program, make_context(f"cpu:{name}", plugins=plugins), plugins)
            if f"\t{instruction}" in build(plan.lowered, isa).inspect_source("asm"):
                print(instruction)


if __name__ == "__main__":
    _main()
