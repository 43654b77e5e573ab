"""Long code is built with less effort, and gives the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.cpu import long_code
from tile_core.cpu.build import EFFORTS, _effort
from tile_core.ir.visit import collect

pytestmark = pytest.mark.sweep(6)


def statements(count: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((count,), "float32"), B: T.Tensor((count,), "float32")):
        with T.Kernel(1):
            for i in T.static_range(count):
                B[i] = A[i] * 2.5 + A[(i + 1) % count]

    return main


def test_levels() -> None:
    assert [_effort(n) for n in (10, 2_000, 2_001, 8_001)] == [{}, {}, {"opt-level": 1}, {"opt-level": 0}]


@pytest.mark.parametrize("count", [3, EFFORTS[-1][0] + 1])
def test_numbers_are_the_same(count: int) -> None:
    a = np.random.default_rng(count).integers(-99, 99, count).astype(np.float32)
    b = np.zeros(count, np.float32)
    tile.compile(statements(count), target="cpu")(a, b)
    np.testing.assert_array_equal(b, a * np.float32(2.5) + np.roll(a, -1))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences of a few statements are long."""
    monkeypatch.setattr(long_code, "LONGEST", 6)
    monkeypatch.setattr(long_code, "PART", 4)


def parts_of(program: Any) -> tuple[Any, int]:
    """Compile, and count the functions that the text of the module calls parts."""
    from tile_core.cpu import build

    found = []
    real = build.cut_long_code

    def counted(body: Any) -> Any:
        new = real(body)
        found.append(sum(s.attr_key == "compute_scope" for s in collect(new, tirx.AttrStmt)))
        return new

    with pytest.MonkeyPatch.context() as patch, tile.disable_cache():
        patch.setattr(build, "cut_long_code", counted)
        kernel = tile.compile(program, target="cpu")
    return kernel, sum(found)


@pytest.mark.sweep(0.25)
def test_functions_of_long_code_see_names_and_memory(short: None) -> None:
    """Definitions that one part makes and others use, with branches and loops inside."""
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m,), "int32"), B: T.Tensor((m, 40), "int32"), v: T.int32):
        with T.Kernel(m, threads=1) as bx:
            s = T.alloc_local((8,), "int32")
            n = T.alloc_var("int32", init=v)
            first = A[bx] * 3 - v
            T.clear(s)
            for i in T.static_range(40):
                x = (first + i) // (v + 2)
                n = n + x
                s[i % 8] = s[(i + 3) % 8] + n
                if x > i:
                    B[bx, i] = s[i % 8] + first
                else:
                    B[bx, i] = n - m

    kernel, parts = parts_of(main)
    assert parts > 5
    a, b = np.random.default_rng(0).integers(-50, 50, 7).astype("int32"), np.full((7, 40), -1, "int32")
    kernel(a, b, 5)
    want = np.zeros((7, 40), int)
    for block in range(7):
        s, n, first = [0] * 8, 5, int(a[block]) * 3 - 5
        for i in range(40):
            x = (first + i) // 7
            n += x
            s[i % 8] = s[(i + 3) % 8] + n
            want[block, i] = s[i % 8] + first if x > i else n - 7
    np.testing.assert_array_equal(b, want)


def test_names_that_each_statement_hands_to_the_next(short: None) -> None:
    """Each gap between statements has a name in use on both sides.

    One name is used everywhere.
    """

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1):
            first = A[0] * 2
            x = first
            for i in T.static_range(60):
                y = x * 3 + A[i % 8]
                big = y > first
                B[i % 8] = B[(i + 1) % 8] + T.if_then_else(big, y, first)
                x = y

    kernel, parts = parts_of(main)
    assert parts > 5
    a, b = (np.random.default_rng(n).integers(-99, 99, 8).astype("int32") for n in range(2))
    want = b.copy()
    with np.errstate(over="ignore"):
        x = first = a[0] * np.int32(2)
        for i in range(60):
            x = x * np.int32(3) + a[i % 8]
            want[i % 8] = want[(i + 1) % 8] + max(x, first)
    kernel(a, b)
    np.testing.assert_array_equal(b, want)


def test_what_leaves_a_loop_or_has_two_names_stays(short: None) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=1):
            s = T.alloc_shared((8, 8), "int32")
            T.copy(A, T.reshape(s, (64,)))
            flat = T.view(s, (64,))
            for k in T.serial(3):
                for i in T.static_range(20):
                    s[i % 8, i // 8] = s[i // 8, i % 8] + flat[(i * 5) % 64] + 1
                    flat[63 - i] = s[7 - i % 8, 7] * 2
                if s[0, 0] > 100:
                    break
                for i in T.static_range(20):
                    flat[i] = flat[i + 1] - k
            T.copy(flat, B)

    kernel, _ = parts_of(main)
    a, b = np.random.default_rng(1).integers(0, 60, 64).astype("int32"), np.zeros(64, "int32")
    kernel(a, b)
    flat = a.copy()
    s = flat.reshape(8, 8)
    with np.errstate(over="ignore"):
        for k in range(3):
            for i in range(20):
                s[i % 8, i // 8] = s[i // 8, i % 8] + flat[(i * 5) % 64] + 1
                flat[63 - i] = s[7 - i % 8, 7] * 2
            if s[0, 0] > 100:
                break
            for i in range(20):
                flat[i] = flat[i + 1] - k
    np.testing.assert_array_equal(b, flat)


def test_long_code_is_cut_where_it_is_straight() -> None:
    """Return the sizes of `statements`; a sum that LLVM would unroll is not long code."""
    kernel, parts = parts_of(statements(long_code.LONGEST + 1))
    assert parts >= 2
    a = np.random.default_rng(2).integers(-99, 99, long_code.LONGEST + 1).astype(np.float32)
    b = np.zeros_like(a)
    kernel(a, b)
    np.testing.assert_array_equal(b, a * np.float32(2.5) + np.roll(a, -1))
    assert parts_of(statements(long_code.LONGEST // 2))[1] == 0


def test_a_module_that_llvm_makes_invalid_is_built_without_optimisation() -> None:
    @T.prim_func
    def main(X: T.Tensor((3, 32), "float32"), Y: T.Tensor((3, 32), "float16")):
        with T.Kernel(1, threads=32):
            y = T.alloc_shared((3, 32), "float16")
            for i, o in T.grid(3, 2):
                for j in T.Parallel(16):
                    y[i, 16 - o * 16 + j] = T.cast(X[i, 16 - o * 16 + j] + 1.0, "float16")
            T.copy(y, Y)

    x = np.random.default_rng(0).standard_normal((3, 32), "float32")
    y = np.zeros((3, 32), "float16")
    tile.compile(main, target="cpu")(x, y)
    np.testing.assert_array_equal(y, (x + 1).astype("float16"))
