"""``T.numerics``: the operations of a strict region round as written on all targets, whatever the level around it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import ir, tirx
from tile_core.errors.language import BadArgument
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.numerics.levels import LEVELS
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reference import execute
from tile_core.reports.timing import timed
from tile_core.runtime.cache_key import content_hash, program_parts

#: Target -> runtime. The emulator never fuses: for its targets ``fusible`` looks at what is printed.
TARGETS = {
    "cpu": None, "cuda:sm_80": "emulator", "cuda:sm_90a": "emulator", "metal": "emulator", "rocm:gfx942": "emulator",
}  # fmt: skip
OPTIONS = ("standard", "strict", "fast")
_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div)
_HIDDEN = tuple(f"{nodes.FLOAT_PREFIX}{name}" for name in ("add", "sub", "mul", "div"))


def compiled(program: Any, target: str, numerics: str = "standard") -> Any:
    runtime = TARGETS[target]
    return tile.compile(program, target, options={"numerics": numerics}, **({"runtime": runtime} if runtime else {}))


def fusible(program: Any, target: str, numerics: str = "standard") -> int:
    """Return how many float operations of a target's finished program its compiler may fuse with others."""
    body = timed(program, make_context(target, {"numerics": numerics}), installed()).body
    found = [e for e in collect(body, _ARITHMETIC) if nodes.dtype_of(e).startswith(("float", "bfloat"))]
    negations = sum(type(e.a) is tirx.FloatImm and float(e.a.value) == 0 for e in found if type(e) is tirx.Sub)
    return len(found) - negations + sum(nodes.operator_name(e) in _HIDDEN for e in collect(body, ir.Call))


def ascending(terms: np.ndarray) -> np.ndarray:
    """Add along the last axis, one by one, each rounded to float32."""
    return np.add.accumulate(np.concatenate([np.zeros_like(terms[..., :1]), terms], -1), -1, dtype="float32")[..., 1:]


def residue(dtype: str = "float32") -> tuple[np.ndarray, ...]:
    """Return factors and the negative of their rounded products: what is fused leaves the rounding errors."""
    rng = np.random.default_rng()
    a, b = (rng.standard_normal(64).astype(dtype) for _ in range(2))
    return a, b, -(a * b)


@T.macro
def added(x: Any, y: Any) -> Any:
    return x + y


@T.prim_func
def crossing(A: T.Tensor((64,)), B: T.Tensor((64,)), C: T.Tensor((64,)), D: T.Tensor((5, 64))):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            with T.numerics("strict"):
                D[0, i] = A[i] * B[i] + C[i]
                inside = A[i] * B[i]
                with T.numerics("standard"):
                    D[1, i] = A[i] / B[i]
                D[2, i] = added(A[i] * B[i], C[i])
            D[3, i] = -(-inside - C[i])
        for i in T.Parallel(64):
            outside = A[i] * B[i]
            with T.numerics("strict"):
                D[4, i] = outside + C[i]


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("numerics", OPTIONS)
def test_an_operation_of_a_strict_region_rounds_its_operands_and_its_result(target, numerics):
    a, b, c = residue()
    found = np.full((5, 64), np.nan, "float32")
    compiled(crossing, target, numerics)(a, b, c, found)
    np.testing.assert_array_equal(found[[0, 2, 3, 4]], np.zeros((4, 64), "float32"))
    np.testing.assert_allclose(found[1], a / b, rtol=1e-6)
    execute(crossing, {"A": a, "B": b, "C": c, "D": (reference := np.full((5, 64), np.nan, "float32"))}, shake=1)
    np.testing.assert_array_equal(reference[[0, 2]], np.zeros((2, 64), "float32"))


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", [t for t in TARGETS if t != "cpu"])
def test_only_operations_outside_of_a_strict_region_may_be_fused(target):
    assert fusible(crossing, target) == 3  # two rows and a product outside; the quotient is a function's


def ops(level: str, dtype: str = "float16") -> Any:
    """Return a kernel of a pipelined product, reductions, scans and combinations in a region."""

    @T.prim_func
    def k(
        A: T.Tensor((32, 64), dtype), B: T.Tensor((64, 16), dtype), C: T.Tensor((32, 16)), S: T.Tensor((3, 32)),
        R: T.Tensor((32, 16)),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((32, 32), dtype), T.alloc_shared((32, 16), dtype)
            c = T.alloc_fragment((32, 16), "float32")
            r = T.alloc_shared((32, 16), "float32")
            rows = T.alloc_fragment((32,), "float32")
            total = T.alloc_fragment((32,), "float32")
            T.clear(c)
            for n in T.Pipelined(2, num_stages=2):
                T.copy(A[0, n * 32], a)
                T.copy(B[n * 32, 0], b)
                with T.numerics(level):
                    T.gemm(a, b, c)
            T.copy(c, r)
            with T.numerics(level):
                T.reduce_sum(c, rows, dim=1)
                T.reduce_with(lambda x, y: x + y, c, total, dim=1, identity=0)
                T.cumsum(r, r, dim=1)
                for i in T.Parallel(32):
                    S[2, i] = rows[i] * total[i] - rows[i]
            T.copy(c, C)
            T.copy(r, R)
            for i in T.Parallel(32):
                S[0, i] = rows[i]
                S[1, i] = total[i]

    return k


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("numerics", OPTIONS)
def test_ops_of_a_strict_region_add_in_ascending_order(target, numerics):
    rng = np.random.default_rng()
    a, b = (rng.standard_normal(s).astype("float16") for s in ((32, 64), (64, 16)))
    c, s, r = (np.full(shape, np.nan, "float32") for shape in ((32, 16), (3, 32), (32, 16)))
    compiled(ops("strict"), target, numerics)(a, b, c, s, r)
    np.testing.assert_array_equal(c, ascending(a.astype("float32")[:, None, :] * b.T.astype("float32")[None])[..., -1])
    states = ascending(c)
    np.testing.assert_array_equal(r, states)
    np.testing.assert_array_equal(s, [states[:, -1], states[:, -1], states[:, -1] ** 2 - states[:, -1]])


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", [t for t in TARGETS if t != "cpu"])
def test_nothing_of_a_strict_region_may_be_fused(target):
    assert fusible(ops("strict", "float32"), target) == 0 < fusible(ops("standard", "float32"), target)


def test_a_product_of_a_looser_region_uses_the_tensor_cores_of_a_strict_kernel():
    assert "mma_sync" not in (strict := compiled(ops("strict"), "cuda:sm_80")).source
    assert 'numerics="strict"' in strict.explain()
    loose = compiled(ops("standard"), "cuda:sm_80", "strict")
    assert "mma.sync" in loose.source or "mma_sync" in loose.source


@T.macro
def fused(x: Any, y: Any, z: Any) -> Any:
    with T.numerics("strict"):
        return x * y + z


def around(dtype: str, roles: bool) -> Any:
    """Return a kernel with regions in loops, roles, branches, macros, expressions of tiles and grid barriers."""

    @T.prim_func
    def k(A: T.Tensor((64,), dtype), B: T.Tensor((64,), dtype), C: T.Tensor((64,), dtype), D: T.Tensor((6, 64), dtype)):
        with T.numerics("strict"), T.Kernel(1, threads=64):
            a, b, c = (T.alloc_fragment((64,), dtype) for _ in range(3))
            T.copy(A, a)
            T.copy(B, b)
            T.copy(C, c)
            d = a * b + c
            with T.numerics("fast"):
                T.copy(d, D[0, :])
            for i in T.Parallel(64):
                for j in T.unroll(2):
                    if j == 1:
                        D[1, i] = A[i] * B[i] + C[i]
            for i in T.serial(64):
                D[2, i] = A[i] * B[i]
                D[2, i] += C[i]
            with T.numerics("standard"):
                for i in T.vectorized(64):
                    D[3, i] = fused(A[i], B[i], C[i])
            T.sync_grid()
            for i in T.Parallel(64):
                D[4, i] = A[i] * B[i] - (C[i] - C[i] - C[i])
            if roles:
                with T.ws(0, size=32):
                    for i in T.Parallel(64):
                        D[5, i] = A[i] * B[i] + C[i]

    return k


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_region_holds_in_whatever_is_written_inside_it(target, dtype):
    a, b, c = residue(dtype)
    roles = target.startswith(("cpu", "cuda"))
    found, program = np.zeros((6, 64), dtype), around(dtype, roles)
    found[: 5 + roles] = np.nan
    compiled(program, target)(a, b, c, found)
    np.testing.assert_array_equal(found, np.zeros((6, 64), dtype))
    if target != "cpu":
        assert [fusible(one, target) for one in program.stages] == [0, 0]


@T.prim_func
def reducing(A: T.Tensor((64,)), B: T.Tensor((64,)), C: T.Tensor((1,))):
    with T.Kernel(1, threads=32):
        r = T.alloc_reducer((1,), "float32", op="sum")
        T.clear(r)
        with T.numerics("strict"):
            for i in T.Parallel(64):
                r[0] += A[i] * B[i]
            T.finalize_reducer(r)
        C[0] = r[0]


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
def test_a_reducer_is_updated_by_all_threads_in_a_region(target):
    a, b = (np.random.default_rng().integers(-9, 9, 64).astype("float32") for _ in range(2))
    found = np.full(1, np.nan, "float32")
    kernel = compiled(reducing, target)
    kernel(a, b, found)
    assert found[0] == a @ b
    assert "one copy" not in kernel.explain()


@T.prim_func
def functions(A: T.Tensor((64,)), B: T.Tensor((64,)), C: T.Tensor((64,), "float16"), D: T.Tensor((4, 64))):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            D[0, i] = T.exp(A[i]) / B[i]
            before = T.exp(B[i])
            with T.numerics("fast"):
                D[1, i] = T.exp(A[i]) / before
            with T.numerics("strict"):
                D[2, i] = T.exp(A[i]) / B[i]
            with T.numerics("standard"):
                D[3, i] = T.exp(A[i]) / T.cast(T.exp(C[i]), "float32")


@T.prim_func
def plain(A: T.Tensor((64,))):
    with T.Kernel(1, threads=64):
        T.fill(A, 1)


#: Target -> names of its precise and approximate exponentials, and of its approximate quotients, if any.
NAMES = {
    "cuda:sm_80": (r"\bexpf\(", r"\b__expf\(", r"\b__fdividef\("), "metal": (r"precise::exp\(", r"fast::exp\(", "")
}  # fmt: skip


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("numerics", OPTIONS)
def test_functions_of_a_region_are_as_its_level_says(target, numerics):
    kernel = compiled(functions, target, numerics)
    precise, fast, quotient = (len(re.findall(name, kernel.source)) for name in NAMES[target])
    # Outside of regions there are two exponentials and a quotient.
    assert (precise, fast) == ((3, 3) if numerics == "fast" else (5, 1))
    assert not NAMES[target][2] or quotient == (2 if numerics == "fast" else 1)
    a, b = (np.random.default_rng().uniform(0.5, 2, 64).astype("float32") for _ in range(2))
    found = np.full((4, 64), np.nan, "float32")
    kernel(a, b, b.astype("float16"), found)
    wide = np.exp(b.astype("float16").astype("float64")).astype("float16")
    for row, divisor in enumerate((b, np.exp(b), b, wide)):
        np.testing.assert_allclose(found[row], np.exp(a) / divisor, rtol=1e-5)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("numerics", OPTIONS)
def test_a_text_with_a_stricter_region_is_compiled_without_fast_math(numerics):
    from tile_cuda.build import flags
    from tile_cuda.options import CudaOptions
    from tile_metal.options import MetalOptions

    cuda, metal = (
        timed(functions, make_context(target, {"numerics": numerics}), installed()).lowered for target in NAMES
    )
    options = CudaOptions.from_attributes(cuda.facts.attributes)
    assert f"--fmad={'false' if numerics == 'strict' else 'true'}" in flags("sm_80", options)
    assert not MetalOptions.from_attributes(metal.facts.attributes).is_fast
    assert "math_mode(safe)" in metal.text


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
def test_reports_name_the_levels_of_regions(target):
    for numerics, how in (
        ("standard", ""),
        ("strict", "nothing is fused in looser ones"),
        ("fast", "those of level standard"),
    ):
        text = " ".join(compiled(functions, target, numerics).explain().split())
        assert "regions of numerics: strict, standard, fast" in text
        assert how in text
    assert "regions of numerics" not in compiled(plain, target).explain()


@pytest.mark.parametrize("level", ["exact", None, 1, "STRICT"])
def test_other_levels_are_refused(level):
    with pytest.raises(BadArgument, match=" or ".join(map(repr, LEVELS))) as caught:

        @T.prim_func
        def k(A: T.Tensor((4,))):
            with T.Kernel(1, threads=32), T.numerics(level):
                A[0] = 1.0

    assert caught.value.code == "K128"


def test_kernels_that_differ_in_a_level_differ_in_their_keys():
    assert len({content_hash(program_parts(ops(level))) for level in LEVELS}) == len(LEVELS)


def test_the_reference_changes_functions_by_the_bounds_of_their_region():
    a, b = np.linspace(20, 60, 64, dtype="float32"), np.ones(64, "float32")
    rows = {}
    for shake in (None, 0):
        found = rows[shake] = np.zeros((4, 64), "float32")
        execute(functions, {"A": a, "B": b, "C": b.astype("float16"), "D": found}, shake=shake)
    _, fast, strict, standard = np.abs(rows[0] / rows[None] - 1).max(1)
    assert fast > 4 * max(strict, standard) > 0
    compiled(functions, "metal").verify(a, b, b.astype("float16"), np.zeros((4, 64), "float32"))


@T.prim_func
def sigmoids(A: T.Tensor((4096,)), B: T.Tensor((3, 4096))):
    with T.Kernel(1, threads=128):
        for i in T.Parallel(4096):
            B[0, i] = T.sigmoid(A[i])
            with T.numerics("strict"):
                B[1, i] = T.sigmoid(A[i])
            with T.numerics("standard"):
                B[2, i] = T.sigmoid(A[i])


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", ["cpu", "rocm:gfx942", "metal"])
def test_a_function_of_a_strict_region_has_the_bits_of_the_level_strict(target):
    """Where the core expands functions, strict regions keep the expansion whose bits are the language's."""
    a = np.random.default_rng(0).uniform(-110, 90, 4096).astype("float32")
    b, strict = np.full((2, 3, 4096), np.nan, "float32")
    compiled(sigmoids, target)(a, b)
    compiled(sigmoids, target, "strict")(a, strict)
    np.testing.assert_array_equal(b[1], strict[0])
    np.testing.assert_array_equal(b[1], strict[1])
    np.testing.assert_array_equal(b[0], b[2])
    np.testing.assert_array_equal(b[0], strict[2])
    assert (b[0] != b[1]).any()
